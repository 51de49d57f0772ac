"""`weft journals`, `weft replay` and `weft runs --lacking`: recorded runs against the code of now."""

from __future__ import annotations

import gzip
import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote

import click
import msgspec
import pytest
from psycopg.conninfo import conninfo_to_dict

from executor.blocks.types.python import load_module
from executor.open.embed import open_engine
from executor.open.engine import Engine
from executor.open.testing.replay import replay
from executor.service.replay.journals import load
from server.settings import Settings

FLOW = """
import weft

@weft.step(effect="none")
async def find(email: str, size: int = 1) -> dict[str, str]:
    return {"email": email, "text": "x" * size}

@weft.durable
async def order(email: str, size: int = 1) -> int:
    found = await find(email, size)
    if weft.patched("mail"):
        await find(found["email"])
    await weft.signal("courier")
    return len(found["text"])

@weft.durable
async def careful(email: str) -> None:
    await find(email)
    try:
        await weft.signal("never")
    except weft.Cancelled:
        await find("undone")
        raise
"""
CHANGED = FLOW.replace("find(email, size)", 'find("other", size)')
REMOVED = FLOW.replace('    await weft.signal("courier")\n', "")
ADA = "ada@example.org"

Weft = Callable[..., Any]


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    return written(tmp_path, FLOW)


def written(folder: Path, code: str) -> Path:
    """Write the file; the next `load_module` is to read it anew."""
    folder.mkdir(exist_ok=True)
    path = folder / "weft_replayed.py"
    path.write_text(code)
    sys.modules.pop("weft_replayed", None)
    return path


@pytest.fixture
def module(flow: Path) -> ModuleType:
    return load_module(str(flow))


@pytest.fixture
def settings(settings: Settings, flow: Path) -> Settings:
    """No lane is kept: a test changes the code of this process, as if it were one that has just begun."""
    return msgspec.structs.replace(settings, functions=(str(flow),), lanes=0)


async def run_of(engine: Engine, module: ModuleType, *, ends: bool = False, **input: Any) -> str:
    run = (await engine.submit(module.order, **{"email": ADA, **input})).run
    await engine.wait_finished(run, 30)
    if ends:
        await engine.signal(run, "courier", None)
        await engine.wait_finished(run, 30)
    return run


async def test_runs_that_fit_and_where_the_others_part(
    weft: Weft, engine: Engine, module: ModuleType, tmp_path: Path
) -> None:
    ended, waits = await run_of(engine, module, ends=True), await run_of(engine, module)
    shown = await weft("journals", "export", "--workflow", "order", "-o", "all.journals")
    assert shown.exit_code == 0 and "2 runs in all.journals" in shown.output
    shown = await weft("replay", "--all", "all.journals", "weft_replayed.py", standalone_mode=False)
    assert shown.return_value == 0, shown.output
    assert f"{ended}  order  fits  succeeded" in shown.output
    assert f"{waits}  order  fits  waits at weft_replayed.py:13: the wait `courier`" in shown.output
    for code, said in {CHANGED: 'call 1 is `weft_replayed.find(email="other"', REMOVED: "is not made now"}.items():
        path = written(tmp_path / "new", code)
        shown = await weft("replay", "--all", "all.journals", str(path), standalone_mode=False)
        assert shown.return_value == 1 and shown.stdout.count("parts ") == shown.stdout.count(said) == 2, shown.output
    shown = await weft("replay", str(path), "--json", standalone_mode=False)
    assert shown.return_value == 1 and [one["run"] for one in json.loads(shown.stdout)] == [waits]
    with pytest.raises(AssertionError, match="is not made now"):
        replay(load_module(str(path)).order, "all.journals")


async def test_runs_of_a_database_which_is_not_changed(
    weft: Weft,
    engine: Engine,
    settings: Settings,
    module: ModuleType,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended, waits = await run_of(engine, module, ends=True), await run_of(engine, module)
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(settings.db_path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    before = copy.read_bytes()
    for database in (settings.db_path, str(copy)):
        shown = await weft("replay", "--from", database, "weft_replayed.py", standalone_mode=False)
        assert shown.return_value == 0, shown.output
        assert f"{ended}  order  fits  succeeded" in shown.output and f"{waits}  order  fits  waits at" in shown.output
    path = written(tmp_path / "new", CHANGED)
    shown = await weft("replay", "--from", str(copy), str(path), "--last", "1", "--json", standalone_mode=False)
    assert shown.return_value == 1 and [one["run"] for one in json.loads(shown.stdout)] == [waits]
    assert copy.read_bytes() == before
    assert not caplog.records
    shown = await weft("replay", "--from", "none.db", str(path))
    assert shown.exit_code and "There is no database none.db." in shown.output
    shown = await weft("replay", "--from", str(copy), "--all", str(path), str(path))
    assert shown.exit_code and "Only one of --all and --from" in shown.output


async def test_runs_of_a_database_of_postgresql(postgres: str, module: ModuleType, weft: Weft) -> None:
    parts = conninfo_to_dict(postgres)
    host, user = quote(str(parts["host"]), safe=""), parts["user"]
    address = f"postgresql:///{parts['dbname']}?host={host}&user={user}"
    async with open_engine(address, workflows=[module.order], secret=b"of a test, and not secret") as opened:
        run = await run_of(opened, module, ends=True)
    shown = await weft("replay", "--from", address, "weft_replayed.py", standalone_mode=False)
    assert shown.return_value == 0 and f"{run}  order  fits  succeeded" in shown.output, shown.output


async def test_what_undoes_a_function_is_compared_as_well(
    weft: Weft, engine: Engine, settings: Settings, module: ModuleType, tmp_path: Path
) -> None:
    run = (await engine.submit(module.careful, email=ADA)).run
    await engine.wait_finished(run, 30)
    await engine.cancel(run)
    assert (await engine.wait_finished(run, 30)).status == "cancelled"
    shown = await weft("replay", "--from", settings.db_path, "weft_replayed.py", standalone_mode=False)
    assert shown.return_value == 0 and f"{run}  careful  fits  cancelled" in shown.output, shown.output
    for code, said in {
        FLOW.replace('find("undone")', 'find("other")'): 'call 3 is `weft_replayed.find(email="other"',
        FLOW.replace('        await find("undone")\n', ""): "is not made now",
        FLOW.replace('find("undone")', 'find("undone"); await find("more")'): "is not in the journal",
        FLOW.replace('find("undone")\n        raise', 'find("undone")\n        raise KeyError(1)'): "it raised",
    }.items():
        path = written(tmp_path / "new", code)
        shown = await weft("replay", "--from", settings.db_path, str(path), standalone_mode=False)
        assert shown.return_value == 1 and f"{run}  careful  parts " in shown.output and said in shown.output


async def test_only_open_runs_and_the_newest(weft: Weft, engine: Engine, module: ModuleType, tmp_path: Path) -> None:
    await run_of(engine, module, ends=True)
    runs = [await run_of(engine, module) for _ in range(2)]
    for options, wanted in {("--open",): runs[::-1], ("--open", "--last", "1"): runs[1:]}.items():
        await weft("journals", "export", "--workflow", "order", "-o", "some.journals", *options)
        assert [one.run for one in load(tmp_path / "some.journals")] == wanted


async def test_stripped_fields_are_not_in_the_file_and_calls_are_compared_by_name(
    weft: Weft, engine: Engine, module: ModuleType, tmp_path: Path
) -> None:
    await run_of(engine, module, ends=True)
    await weft("journals", "export", "--workflow", "order", "-o", "all.journals", "--strip", "email, name")
    assert ADA not in gzip.decompress((tmp_path / "all.journals").read_bytes()).decode()
    shown = await weft("replay", "--all", "all.journals", "weft_replayed.py", standalone_mode=False)
    assert shown.return_value == 0, shown.output
    path = written(tmp_path / "new", FLOW.replace("find(", "seek("))
    shown = await weft("replay", "--all", "all.journals", str(path), standalone_mode=False)
    assert shown.return_value == 1 and "call 1 is `weft_replayed.seek(" in shown.stdout


async def test_a_run_is_replayed_to_its_first_large_output(
    weft: Weft, engine: Engine, module: ModuleType, tmp_path: Path
) -> None:
    for size in (70_000, 300_000):
        await run_of(engine, module, ends=True, size=size)
    await weft("journals", "export", "--workflow", "order", "-o", "all.journals")
    assert (tmp_path / "all.journals").stat().st_size < 5_000
    shown = await weft("replay", "--all", "all.journals", "weft_replayed.py", standalone_mode=False)
    assert shown.return_value == 0 and shown.stdout.count("fits  without its last") == 2, shown.output


async def test_marks_of_open_runs(weft: Weft, engine: Engine, module: ModuleType) -> None:
    assert "None of 0 open runs has a mark." in (await weft("journals", "marks", "--workflow", "order")).output
    await run_of(engine, module)
    assert (await weft("journals", "marks", "--workflow", "order")).stdout == "mail  1 with, 0 without\n"


async def test_a_run_that_waits_for_code_is_listed(
    weft: Weft, engine: Engine, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "No run lacks its code." in (await weft("runs", "--lacking")).output
    run = await run_of(engine, module)
    module.__dict__["find"].name = "weft_replayed.seek"
    await engine.signal(run, "courier", None)
    await engine.wait_finished(run, 30)
    shown = await weft("runs", "--lacking")
    assert f"{run}  The code of weft_replayed.order does not fit this run" in shown.output
    assert "call 1 is `weft_replayed.seek(" in shown.output
    (listed,) = json.loads((await weft("runs", "--lacking", "--json")).stdout)
    assert (listed["run"], listed["workflow"]) == (run, "order")


async def test_what_cannot_be_replayed_says_why(weft: Weft, engine: Engine, flow: Path, tmp_path: Path) -> None:
    (tmp_path / "none.py").write_text("import weft\n")
    (tmp_path / "wrong.journals").write_bytes(gzip.compress(b'{"format": "other"}\n'))
    (tmp_path / "cut.journals").write_bytes(gzip.compress(b"x" * 100)[:-10])
    for arguments, said in {
        ("journals", "export", "--workflow", "order", "-o", "x"): "'order' has no run of a durable function",
        ("replay", "none.py"): "none.py has no durable function",
        ("replay", "--all", "wrong.journals", flow.name): "its format is other, not weft-journals/1",
        ("replay", "--all", "cut.journals", flow.name): "is no file of journals of weft",
        ("runs", "--lacking", "--status", "waiting"): "--lacking goes with --workflow alone",
    }.items():
        shown = await weft(*arguments)
        assert shown.exit_code == 1 and said in shown.output, shown.output


async def test_the_inbox_has_the_name_of_the_function(weft: Weft, engine: Engine, module: ModuleType) -> None:
    await run_of(engine, module)
    shown = await weft("inbox", "--kind", "signal")
    assert "  order: courier" in click.unstyle(shown.stdout), shown.output
