"""The command line without a server: what it reads, what it prints, how it exits."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import click
import pytest

from server import cli
from server.cli import SECTIONS, inbox
from server.reach import DEFAULT_URL

HELLO: dict[str, Any] = {
    "format": "weft/1",
    "name": "hello",
    "blocks": {"start": {"type": "start"}, "greet": {"type": "set", "params": {"value": "Hello <start.who>"}}},
    "edges": [{"source": "start", "target": "greet"}],
}


class Ran:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


class Weft:
    """Runs the command line in this process. Nothing listens at its server address."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Ran:
        with pytest.raises(SystemExit) as exit:
            cli.main(list(arguments))
        out, err = self._capsys.readouterr()
        return Ran(int(exit.value.code or 0), out, err)


@pytest.fixture
def weft(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Weft:
    monkeypatch.setenv("WEFT_URL", "http://127.0.0.1:9")  # "discard": nothing listens there
    return Weft(capsys)


@pytest.fixture
def hello(tmp_path: Path) -> Path:
    path = tmp_path / "hello.json"
    path.write_text(json.dumps(HELLO))
    return path


def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.json"
    document = HELLO | {"edges": [{"source": "start", "target": "gret"}]}
    path.write_text(json.dumps(document))
    return path


HEAVY = ("asyncio", "httpx", "importlib.metadata", "rich", "secrets", "uvicorn", "wasmtime", "zoneinfo")


def loaded(*arguments: str, **environ: str) -> list[str]:
    """Run the command line in a process of its own, and return the modules that it has imported."""
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}from server.cli import main; main({list(arguments)})"],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return ran.stderr.splitlines()[-1].split()


@pytest.mark.parametrize("typed", ["", "weft ru"])
def test_help_and_completion_of_names_import_no_command(typed: str) -> None:
    modules = loaded("--help", **completing(typed) if typed else {})
    assert not {*HEAVY, "msgspec"} & {*modules}
    assert [name for name in modules if name.startswith("server.")] == ["server.cli"]


@pytest.mark.parametrize("typed", ["", "weft run --in"])
def test_help_and_completion_of_a_command_import_its_module_alone(typed: str) -> None:
    modules = loaded("run", "--help", **completing(typed) if typed else {})
    assert not {*HEAVY} & {*modules}
    assert "server.cli.runs" in modules and "server.cli.processes" not in modules


def completing(typed: str) -> dict[str, str]:
    """Return the variables by which a shell asks for completions of what was typed."""
    return {"_WEFT_COMPLETE": "bash_complete", "COMP_WORDS": typed, "COMP_CWORD": f"{typed.count(' ')}"}


def test_a_command_that_asks_the_server_imports_no_other_command_and_not_that_of_httpx() -> None:
    modules = loaded("--url", "http://127.0.0.1:9", "runs")
    assert "httpx" in modules
    assert not {"rich", "pygments", "uvicorn", "starlette", "server.cli.processes"} & {*modules}


def test_help_names_every_command(weft: Weft) -> None:
    ran = weft("--help")
    assert ran.code == 0
    assert DEFAULT_URL in ran.out
    for command in ("serve", "deploy", "run", "plan", "validate", "events", "why", "inbox", "answer", "cancel", "runs"):
        assert f"  {command} " in ran.out


def test_help_shows_the_summary_of_each_command_in_its_section(weft: Weft) -> None:
    shown = " ".join(weft("--help").out.split())
    assert all(f"{title}: " in shown for title in SECTIONS)
    for name, command in cli.weft.commands.items():
        assert command.name == name
        assert f" {name} {command.get_short_help_str(200)}" in shown


def test_each_command_of_a_module_is_in_the_table(weft: Weft) -> None:
    modules = [import_module(f"server.cli.{path.stem}") for path in Path(cli.__file__).parent.glob("[a-z]*.py")]
    defined = [each for module in modules for each in vars(module).values() if isinstance(each, click.Command)]
    inside = {id(sub) for each in defined if isinstance(each, click.Group) for sub in each.commands.values()}
    assert {each.name for each in defined if id(each) not in inside} == set(cli.weft.commands)


def test_a_name_that_is_no_command_gets_those_that_are_like_it(weft: Weft) -> None:
    assert "Did you mean" in weft("servee").err
    assert "'serve'" in weft("servee").err


@pytest.mark.parametrize("url", ["foo", "ftp://127.0.0.1:8765", "http://", "http://[::1", "http://127.0.0.1:99999"])
def test_what_is_no_address_is_reported_before_anything_is_sent(weft: Weft, url: str) -> None:
    ran = weft("--url", url, "runs")
    assert ran.code == 4
    assert "is not the address of a server" in ran.err
    assert "http://127.0.0.1:8765" in ran.err


def test_an_impossible_token_is_reported(weft: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_TOKEN", "t\u00f6ken")
    ran = weft("runs")
    assert ran.code == 4
    assert "WEFT_TOKEN" in ran.err


def test_something_else_that_answers_is_reported(weft: Weft) -> None:
    def shout(listener: socket.socket) -> None:
        taken, _ = listener.accept()
        with taken:
            taken.recv(4096)
            taken.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=shout, args=(listener,))
        thread.start()
        ran = weft("--url", f"http://127.0.0.1:{listener.getsockname()[1]}", "runs")
        thread.join()
    assert ran.code == 5
    assert "is that of a weft server" in ran.err


def test_version(weft: Weft) -> None:
    assert weft("--version").out.startswith("weft 0.")


@pytest.mark.parametrize(
    "arguments", [["run"], ["nonsense"], ["plan", "x.json", "--format", "pdf"], ["runs", "--limit", "0"]]
)
def test_wrong_arguments_exit_with_4(weft: Weft, arguments: list[str]) -> None:
    assert weft(*arguments).code == 4


def test_a_valid_document(weft: Weft, hello: Path) -> None:
    ran = weft("validate", str(hello))
    assert (ran.code, ran.out) == (0, "")
    assert "0 errors" in ran.err


def test_an_error_is_shown_with_place_and_hint(weft: Weft, tmp_path: Path) -> None:
    ran = weft("validate", str(broken(tmp_path)))
    assert ran.code == 1
    assert "error /edges/0/target: " in ran.out
    assert "gret" in ran.out


def test_findings_as_json(weft: Weft, tmp_path: Path) -> None:
    ran = weft("validate", str(broken(tmp_path)), "--json")
    assert ran.code == 1
    found = json.loads(ran.out)
    assert any(one["severity"] == "error" and one["pointer"] == "/edges/0/target" for one in found)


def test_stdin_is_a_file_too(weft: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        def read(self) -> str:
            return json.dumps(HELLO)

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert weft("validate", "-").code == 0


def test_no_file_and_no_json(weft: Weft, tmp_path: Path) -> None:
    ran = weft("validate", str(tmp_path / "none.json"))
    assert ran.code == 4
    assert "There is no file" in ran.err
    (tmp_path / "bad.json").write_text('{"a": }')
    ran = weft("validate", str(tmp_path / "bad.json"))
    assert ran.code == 4
    assert "line 1, column 7" in ran.err


@pytest.mark.parametrize("form", ["text", "json", "dot", "mermaid"])
def test_plan_in_every_form(weft: Weft, hello: Path, form: str) -> None:
    ran = weft("plan", str(hello), "--format", form)
    assert ran.code == 0
    assert "greet" in ran.out
    if form == "json":
        json.loads(ran.out)


def test_plan_of_a_broken_document_says_why(weft: Weft, tmp_path: Path) -> None:
    ran = weft("plan", str(broken(tmp_path)))
    assert (ran.code, ran.out) == (1, "")
    assert "gret" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["runs"],
        ["inbox"],
        ["events", "r"],
        ["why", "r"],
        ["cancel", "r"],
        ["run", "hello"],
        ["answer", "t"],
        ["signal", "r", "paid"],
        ["signals", "r"],
        ["withdraw", "r", "ask"],
    ],
)
def test_without_a_server_it_says_how_to_start_one(weft: Weft, arguments: list[str]) -> None:
    ran = weft(*arguments)
    assert ran.code == 5
    assert "No weft server answers at http://127.0.0.1:9" in ran.err
    assert "weft serve" in ran.err


def test_input_must_be_json(weft: Weft) -> None:
    ran = weft("run", "hello", "--input", "{amount: 3}")
    assert ran.code == 4
    assert "--input is not JSON" in ran.err


@pytest.mark.parametrize("link", ["http://127.0.0.1:9/runs/1", "http://127.0.0.1:9/resume/"])
def test_a_link_that_is_none(weft: Weft, link: str) -> None:
    assert weft("answer", link).code == 4


def test_a_field_without_a_value(weft: Weft) -> None:
    assert weft("answer", "token", "--field", "note").code == 4


def test_serve_refuses_to_be_open_to_all(weft: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_TOKEN", "off")
    ran = weft("serve", "--host", "0.0.0.0", "--port", "0")
    assert ran.code == 2
    assert "without a token" in ran.err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tok", (None, "tok")),
        ("/resume/tok", (None, "tok")),
        ("http://a:1/resume/tok", ("http://a:1", "tok")),
        ("https://a.b/weft/resume/tok/", ("https://a.b/weft", "tok")),
        ("http://a:1/api/resume/tok", ("http://a:1", "tok")),
    ],
)
def test_token_of_a_link(text: str, expected: tuple[str | None, str]) -> None:
    assert inbox._split_link(text) == expected


def test_fields_get_the_type_the_form_wants() -> None:
    schema = {"properties": {"n": {"type": "integer"}, "ok": {"type": "boolean"}, "zip": {"type": "string"}}}
    pairs = [("n", "3"), ("ok", "true"), ("zip", "01234"), ("other", "5"), ("n2", "x")]
    assert inbox._typed(pairs, schema) == {"n": 3, "ok": True, "zip": "01234", "other": "5", "n2": "x"}
    assert inbox._typed([("n", "three")], schema) == {"n": "three"}
