"""`weft import` prints what is left, and `weft setup` asks for it one by one: a real server, and one that stands in for
Slack."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from click.testing import CliRunner

from server import cli
from server.cli import credentials, setup
from server.cli.common import call
from tests.support.endpoints import beside
from tests.support.oauth_provider import CLIENT_ID, CLIENT_SECRET, Provider, oauth_provider
from tests.support.server import SyncServerProcess
from tests.support.sim_templates import tell_slack
from tests.support.slack import TOKEN, Slack, slack_beside


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Slack, Provider]]:
    """A converted export, beside a server, and a provider of its tokens."""
    path = tmp_path / "sim.json"
    path.write_text(json.dumps(tell_slack()))
    with slack_beside() as service, beside(oauth_provider()) as provider:
        environ = service.environ(tmp_path / "connectors")
        environ["WEFT_ALLOW_PRIVATE"] += f",{provider.place}"
        server = SyncServerProcess(tmp_path, environ)
        monkeypatch.setenv("WEFT_URL", server.url)
        code, said = weft("import", str(path), "-o", str(tmp_path / "flow.json"))
        assert code == 1 and "[ ] Connect Slack" in said and '[ ] Choose Channel in "slackNotify"' in said
        yield tmp_path / "flow.json", service, provider
        server.stop(30)


class Typed(io.RawIOBase):
    """Lines that are typed when they are asked for: some depend on what was printed before."""

    def __init__(self, *lines: str | Callable[[], str]) -> None:
        self.lines = iter(lines)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        line = next(self.lines, None)
        data = b"" if line is None else f"{line if isinstance(line, str) else line()}\n".encode()
        buffer[: len(data)] = data
        return len(data)


def weft(*arguments: str, typed: Any = "") -> tuple[int, str]:
    result = CliRunner().invoke(cli.weft, list(arguments), input=typed, standalone_mode=False)
    if result.exception is not None:
        return getattr(result.exception, "code", 1), result.output + str(result.exception)
    return result.return_value or 0, result.output


def test_tasks_are_done_in_a_terminal(world: tuple[Path, Slack, Provider], monkeypatch: pytest.MonkeyPatch) -> None:
    path, service, _ = world
    assert weft("setup", str(path)) == (1, '[ ] Connect Slack\n[ ] Choose Channel in "slackNotify"\n')
    monkeypatch.setattr(setup, "is_terminal", lambda: True)
    answers = ["new", "", "", "", TOKEN, "eu", "1"]  # the name, the host and the token are what it offers
    code, said = weft("setup", str(path), typed="\n".join(answers) + "\n")
    assert code == 0 and "Connected as weft" in said and "orders-eu" in said and "Nothing is left" in said
    params = json.loads(path.read_text())["blocks"]["c"]["params"]
    assert (params["connection"], params["channel"]) == ("slack", "C003") and TOKEN not in path.read_text()
    assert not service.sent


def test_a_person_signs_in_with_a_client_of_the_provider(
    world: tuple[Path, Slack, Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, service, provider = world
    service.tokens = provider.access
    begun: list[str] = []

    def called(url: str, action: Any) -> Any:
        """The server's answers, but the known providers have the addresses of this one."""
        found = call(url, action)
        if "providers" in found:
            mine = {key: value for key, value in provider.spec().items() if key.endswith("_url") or key == "issuer"}
            return {**found, "providers": [{**one, **mine} for one in found["providers"]]}
        if "redirect_uri" in found:
            begun.append(found["url"])
        return found

    monkeypatch.setattr(setup, "call", called)
    monkeypatch.setattr(credentials, "call", called)
    monkeypatch.setattr(setup, "is_terminal", lambda: True)
    client = [CLIENT_ID, "chat:write channels:read", CLIENT_SECRET]
    answers = ["new", "", f"{service.server.url} {provider.url}", "sign-in", *client]
    typed = Typed(*answers, lambda: f"http://127.0.0.1/back?{urlencode(provider.sign_in(begun[0]))}", "eu", "1")
    code, said = weft("setup", str(path), typed=io.BufferedReader(typed))
    assert code == 0 and "Connected as weft" in said and "Nothing is left" in said, said
    assert parse_qs(urlsplit(begun[0]).query)["scope"] == ["chat:write channels:read"]
    assert [one["grant_type"] for one in provider.asked] == ["authorization_code"]
    assert CLIENT_SECRET not in path.read_text()


def test_a_draft_is_saved_and_what_is_skipped_stays(
    world: tuple[Path, Slack, Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _, _ = world
    document = json.loads(path.read_text())
    document["blocks"]["c"]["params"]["channel"] = "C001"
    path.write_text(json.dumps(document))
    assert weft("deploy", str(path), "--name", "tell")[0] == 0
    monkeypatch.setattr(setup, "is_terminal", lambda: True)
    code, said = weft("setup", "tell", typed="\n")
    assert code == 1 and "[ ] Connect Slack" in said
    code, said = weft("setup", "tell", typed=f"new\nwork\n\ntoken\n{TOKEN}\n")
    assert code == 0 and "Nothing is left" in said
    assert weft("setup", str(path.with_name("sim.json")))[0] == 4  # it has to be converted first
