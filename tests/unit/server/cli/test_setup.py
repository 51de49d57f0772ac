"""`weft import` prints what is left, and `weft setup` asks for it one by one: a real server, and one that stands in for
Slack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from server import cli
from server.cli import setup
from tests.support.server import SyncServerProcess
from tests.support.sim_templates import tell_slack
from tests.support.slack import TOKEN, Slack, slack_beside


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Slack]]:
    """A converted export, beside a server."""
    path = tmp_path / "sim.json"
    path.write_text(json.dumps(tell_slack()))
    with slack_beside() as service:
        server = SyncServerProcess(tmp_path, service.environ(tmp_path / "connectors"))
        monkeypatch.setenv("WEFT_URL", server.url)
        code, said = weft("import", str(path), "-o", str(tmp_path / "flow.json"))
        assert code == 1 and "[ ] Connect Slack" in said and '[ ] Choose Channel in "slackNotify"' in said
        yield tmp_path / "flow.json", service
        server.stop(30)


def weft(*arguments: str, typed: str = "") -> tuple[int, str]:
    result = CliRunner().invoke(cli.weft, list(arguments), input=typed, standalone_mode=False)
    if result.exception is not None:
        return getattr(result.exception, "code", 1), str(result.exception)
    return result.return_value or 0, result.output


def test_tasks_are_done_in_a_terminal(world: tuple[Path, Slack], monkeypatch: pytest.MonkeyPatch) -> None:
    path, service = world
    assert weft("setup", str(path)) == (1, '[ ] Connect Slack\n[ ] Choose Channel in "slackNotify"\n')
    monkeypatch.setattr(setup, "is_terminal", lambda: True)
    answers = ["new", "", "", TOKEN, "eu", "1"]  # the name and the host are those that it offers
    code, said = weft("setup", str(path), typed="\n".join(answers) + "\n")
    assert code == 0 and "Connected as weft" in said and "orders-eu" in said and "Nothing is left" in said
    params = json.loads(path.read_text())["blocks"]["c"]["params"]
    assert (params["connection"], params["channel"]) == ("slack", "C003") and TOKEN not in path.read_text()
    assert not service.sent


def test_a_draft_is_saved_and_what_is_skipped_stays(world: tuple[Path, Slack], monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = world
    document = json.loads(path.read_text())
    document["blocks"]["c"]["params"]["channel"] = "C001"
    path.write_text(json.dumps(document))
    assert weft("deploy", str(path), "--name", "tell")[0] == 0
    monkeypatch.setattr(setup, "is_terminal", lambda: True)
    code, said = weft("setup", "tell", typed="\n")
    assert code == 1 and "[ ] Connect Slack" in said
    code, said = weft("setup", "tell", typed=f"new\nwork\n\n{TOKEN}\n")
    assert code == 0 and "Nothing is left" in said
    assert weft("setup", str(path.with_name("sim.json")))[0] == 4  # it has to be converted first
