"""Workflows in Python files, read by commands."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from server import cli
from server.cli.common import Refused
from server.cli.reading import read_flow

NUMBERS = count(1)
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """A file with a name of its own, as modules are known by name."""
    monkeypatch.setattr(sys, "path", [*sys.path])

    def write(text: str) -> Path:
        path = tmp_path / f"flow_{next(NUMBERS)}.py"
        path.write_text(text)
        return path

    return write


def weft(*arguments: str) -> Result:
    return CliRunner().invoke(cli.weft, arguments, prog_name="weft", standalone_mode=False)


def names(document: Any) -> tuple[str, list[str]]:
    return document["name"], list(document["blocks"])


ONE = 'import weft\nflow = weft.draw.Workflow("one", weft.draw.Set(1))\n'


def test_the_only_workflow_of_a_file(write: Write) -> None:
    file = write(ONE + "also = flow\n_other = weft.draw.Workflow('x')\nkind = weft.draw.Workflow\n")
    assert names(read_flow(str(file))[0]) == ("one", ["start", "set"])
    assert names(read_flow(f"{file}:flow")[0]) == ("one", ["start", "set"])


def test_one_of_several(write: Write) -> None:
    file = write(ONE + 'two = weft.draw.Workflow("two", weft.draw.Set(2))\n')
    assert names(read_flow(f"{file}:two")[0])[0] == "two"
    with pytest.raises(Refused, match="has several workflows") as refused:
        read_flow(str(file))
    assert refused.value.hint == f"Name one: {file}:flow, {file}:two."
    with pytest.raises(Refused, match="has no 'three'") as refused:
        read_flow(f"{file}:three")
    assert f"{file}:two" in refused.value.hint


@pytest.mark.parametrize(
    "made",
    [
        'weft.draw.Sequence(weft.draw.Set(1, assign_to="$.seen"))',
        '[weft.draw.Set(1, assign_to="$.seen.at")]',
        'weft.draw.Workflow(None, weft.draw.Set(1, assign_to="$.seen"), variables={"seen": None})',
    ],
)
def test_a_function_that_returns_a_tree(write: Write, made: str) -> None:
    file = write(f"import weft\ndef workflow():\n    return {made}\n")
    document = read_flow(str(file))[0]
    assert names(document) == (file.stem, ["start", "set"])
    assert document["variables"] == {"seen": None}


def test_functions_that_are_traced(write: Write) -> None:
    file = write(
        "import weft\n@weft.step\ndef double(n: int) -> int:\n    return 2 * n\n"
        "@weft.workflow\nasync def twice(n: int):\n    return await double(await double(n))\n"
    )
    assert names(read_flow(str(file))[0])[0] == "twice"
    ran = weft("validate", str(file))
    assert (ran.return_value, ran.stdout) == (0, ""), ran.output


WRONG = [
    ("import weft\nx = 1\n", "has no workflow"),
    ("def workflow():\n    return 7\n", "is not a workflow: its type is int"),
    (
        "import weft\nflow = weft.draw.Workflow('x', weft.draw.Set(1, id='a'), weft.draw.Set(2, id='a'))\n",
        'The id "a" is used twice',
    ),
    ("flow = (\n", r"line 1: '\(' was never closed"),
    ("raise SystemExit(3)\n", "fails: SystemExit: 3"),
    ("import nothing_of_this_name\n", "fails: ModuleNotFoundError: No module named 'nothing_of_this_name'"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_wrong_with_a_file(write: Write, text: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        read_flow(str(write(text)))


def test_an_error_is_shown_with_the_lines_of_the_file_alone(write: Write) -> None:
    file = write("import json\n\ndef read(text):\n    return json.loads(text)\n\nrows = read('[1,')\n")
    with pytest.raises(Refused) as refused:
        read_flow(str(file))
    assert refused.value.message.startswith(f"{file} fails: json.decoder.JSONDecodeError: ")
    assert refused.value.hint.splitlines() == [
        "line 6, in <module>: rows = read('[1,')",
        "  line 4, in read: return json.loads(text)",
    ]


def test_there_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="There is no file"):
        read_flow(f"{tmp_path}/none.py:flow")


def test_a_file_imports_what_is_beside_it(write: Write, tmp_path: Path) -> None:
    (tmp_path / "beside_the_flow.py").write_text("URL = 'http://127.0.0.1/x'\n")
    file = write("import weft\nfrom beside_the_flow import URL\nflow = weft.draw.Workflow('x', weft.draw.Http(URL))\n")
    assert read_flow(str(file))[0]["blocks"]["http"]["params"] == {"url": "http://127.0.0.1/x"}


def test_commands_take_python(write: Write) -> None:
    file = write("print('hello')\n" + ONE)
    checked = weft("validate", str(file))
    assert (checked.return_value, checked.stdout) == (0, "")
    assert "hello" in checked.stderr and "0 errors, 0 warnings" in checked.stderr
    assert "set" in weft("plan", f"{file}:flow").stdout
    found = weft("validate", "--json", str(write("import weft\nflow = weft.draw.Workflow('x', weft.draw.Http(''))\n")))
    assert found.return_value == 1
    assert [one["code"] for one in json.loads(found.stdout)] == ["required"]


def test_the_pages_example_is_valid() -> None:
    root = Path(__file__).parents[4]
    checked = weft("validate", str(root / "examples" / "python" / "demo.py"))
    assert re.search("0 errors, 0 warnings", checked.stderr), checked.output


DURABLE = """\
import time
import weft

@weft.durable
async def first() -> float:
    return time.time()

@weft.durable
async def second() -> None:
    await weft.sleep(hours=1)
    time.sleep(1)
"""


def test_the_code_of_the_durable_function_that_is_named_is_checked(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(DURABLE)
    monkeypatch.chdir(file.parent)
    shown = weft("validate", f"{file.name}:second")
    assert shown.return_value == 0
    assert f"warning {file.name}:11: second: `time.sleep()` blocks all runs" in shown.output
    assert "first" not in shown.output
    assert weft("validate", f"{file.name}:second", "--strict").return_value == 1
    (one,) = json.loads(weft("validate", f"{file.name}:first", "--json").stdout)
    assert (one["code"], one["file"], one["line"], one["pointer"]) == (
        "durable_clock",
        file.name,
        6,
        "/blocks/body",
    )
