"""`weft doctor`, `gc`, `backup`, `restore`, `sql`, `state`, `diff`: what they print and how they exit."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from executor.service.upkeep.backup import in_use
from server import cli
from server.cli import history
from server.cli.common import Refused
from tests.unit.executor.service.upkeep.conftest import Copy, made  # noqa: F401  (a fixture)

Weft = Callable[..., Result]


@pytest.fixture
def copy(made: tuple[Path, dict[str, str]], tmp_path: Path) -> Copy:  # noqa: F811
    path, run = made
    shutil.copy(path, tmp_path / "weft.db")
    return Copy(tmp_path / "weft.db", run)


@pytest.fixture
def weft(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> Weft:
    """Nothing listens at the server's address; WEFT_DB is the copy."""
    monkeypatch.setenv("WEFT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WEFT_DB", str(copy.path))
    return lambda *arguments: CliRunner().invoke(cli.weft, arguments, standalone_mode=False)


def lines(ran: Result) -> list[str]:
    return click.unstyle(ran.stdout).splitlines()


def test_the_doctor_has_a_line_for_each_promise(weft: Weft, copy: Copy) -> None:
    ran = weft("doctor")
    assert ran.return_value == 0
    told = lines(ran)
    assert told[0] == f"{copy.path}: 1 cancelled, 1 failed, 4 succeeded, 3 waiting; " + told[0].rpartition("; ")[2]
    assert [line.split()[1] for line in told if line.startswith("ok ") and line.split()[1].startswith("I")] == [
        *(f"I{n}" for n in range(1, 10)),
        "I12",
    ]
    assert any(line.startswith("ok       schema:") for line in told)


def test_the_doctor_tells_what_is_broken_and_exits_with_1(weft: Weft, copy: Copy) -> None:
    copy.spoil("UPDATE runs SET next_run_at_ms = NULL WHERE id = ?", copy.run["sleeping"])
    ran = weft("doctor")
    assert ran.return_value == 1
    assert any(line.startswith("1        I8") for line in lines(ran))
    assert any(
        line.startswith(f"I8 {copy.run['sleeping']}: it is waiting, but not scheduled to wake") for line in lines(ran)
    )
    assert any("weft signal" in line for line in lines(ran))
    report = json.loads(weft("doctor", "--json").stdout)
    assert [finding["invariant"] for finding in report["findings"]] == ["I8"]
    assert weft("doctor", "--run", copy.run["hello"]).return_value == 0


def test_the_doctor_looks_for_the_secrets_of_the_environment(
    weft: Weft, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_ENV_KEY", "weft/1")  # in every document
    ran = weft("doctor")
    assert ran.return_value == 1 and "I11" in ran.stdout
    monkeypatch.setenv("WEFT_NOT_SECRET", "KEY")
    assert weft("doctor").return_value == 0


def test_a_folder_that_is_not_there_is_named(weft: Weft, tmp_path: Path) -> None:
    told = weft("backup", str(tmp_path / "nowhere" / "copy.db")).exception
    assert str(told) == f"{tmp_path / 'nowhere'} cannot be written to: No such file or directory."
    assert isinstance(told, Refused) and "folder" in told.hint


@pytest.mark.parametrize("command", [["doctor"], ["sql", "SELECT 1"], ["backup", "x"], ["gc", "--db", "nothing.db"]])
def test_a_database_is_never_made_by_looking_for_it(
    weft: Weft, tmp_path: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_DB", str(tmp_path / "nothing.db"))
    ran = weft(*command)
    assert isinstance(ran.exception, Refused) and "There is no database" in ran.exception.message
    assert not (tmp_path / "nothing.db").exists()


def test_runs_that_are_not_there_and_files_that_are_no_database(weft: Weft, tmp_path: Path) -> None:
    ran = weft("doctor", "--run", "unknown")
    assert isinstance(ran.exception, Refused) and "no run 'unknown'" in ran.exception.message
    (tmp_path / "text").write_text("no database " * 100)
    ran = weft("doctor", "--db", str(tmp_path / "text"))
    assert isinstance(ran.exception, Refused) and "cannot be read" in ran.exception.message


def test_gc_of_a_file(weft: Weft, copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executor.service.upkeep.gc.UNUSED_MS", -1)  # what was used in the last hour would stay
    db = ("--db", str(copy.path))
    ran = weft("gc", *db, "--older-than", "0s", "--dry-run")
    assert lines(ran)[0].startswith("6 runs with ") and lines(ran)[0].endswith(" would be deleted.")
    assert lines(weft("gc", *db))[0] == "0 runs with 0 events deleted."
    assert json.loads(weft("gc", *db, "--keep", "5", "--json").stdout)["runs"] == 0
    size = copy.path.stat().st_size
    ran = weft("gc", *db, "--older-than", "0s", "--vacuum")
    assert lines(ran)[0].startswith("6 runs") and "1 large output" in lines(ran)[1]
    assert copy.path.stat().st_size < size - 200_000
    with closing(copy.read()) as database:
        assert database.db.execute("SELECT count(*) FROM runs").fetchone() == (3,)
    assert weft("doctor").return_value == 0


def test_gc_of_a_file_that_a_server_has_open(weft: Weft, copy: Copy) -> None:
    with closing(sqlite3.connect(copy.path)) as database:
        database.execute("SELECT count(*) FROM runs").fetchone()
        ran = weft("gc", "--db", str(copy.path), "--older-than", "0s")
    assert isinstance(ran.exception, Refused) and "open" in ran.exception.message
    assert not in_use(copy.path)


@pytest.mark.parametrize("text", ["30", "d", "-1d", "1y", "1d2h", "soon"])
def test_what_is_no_span_of_time(weft: Weft, text: str) -> None:
    ran = weft("gc", "--older-than", text)
    assert isinstance(ran.exception, click.BadParameter) and "30d" in ran.exception.message


def test_vacuum_wants_the_file(weft: Weft) -> None:
    ran = weft("gc", "--vacuum")
    assert isinstance(ran.exception, Refused) and "--db" in ran.exception.hint


def test_snapshots_want_the_file_and_are_counted(weft: Weft, copy: Copy) -> None:
    ran = weft("gc", "--snapshots")
    assert isinstance(ran.exception, Refused) and "--db" in ran.exception.hint
    copy.spoil("INSERT INTO snapshots SELECT n, 1, 1, '', '', 1, x'' FROM heads LIMIT 1")
    found = weft("doctor")
    assert found.return_value == 1 and "--snapshots" in found.stdout
    assert "snapshot" not in weft("gc", "--db", str(copy.path), "--snapshots", "--dry-run").stdout
    assert "1 snapshot deleted." in weft("gc", "--db", str(copy.path), "--snapshots").stdout
    assert weft("doctor").return_value == 0


def test_backup_and_restore(weft: Weft, copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = weft("backup", str(tmp_path / "copy.db"))
    assert lines(ran)[0].startswith(f"{tmp_path / 'copy.db'}: 9 runs, 3 of them open; ")
    assert "weft.key is not in it" in ran.stderr
    again = weft("backup", str(tmp_path / "copy.db"))
    assert isinstance(again.exception, Refused) and "--force" in again.exception.hint
    assert weft("backup", str(tmp_path / "copy.db"), "--force").return_value == 0

    refused = weft("restore", str(tmp_path / "copy.db"))
    assert isinstance(refused.exception, Refused) and "--force" in refused.exception.hint
    ran = weft("restore", str(tmp_path / "copy.db"), "--force")
    assert ran.return_value == 0 and "weft.db.before-" in ran.stderr
    assert "no process starts on the database without the key" in ran.stderr
    assert weft("doctor").return_value == 0
    same = weft("restore", str(copy.path), "--force")
    assert isinstance(same.exception, Refused) and "itself" in same.exception.message
    monkeypatch.setenv("WEFT_DB", str(tmp_path / "elsewhere" / "weft.db"))
    monkeypatch.setenv("WEFT_SECRET_KEY", "a secret for tests only")
    ran = weft("restore", str(tmp_path / "copy.db"))
    assert ran.return_value == 0 and ran.stderr == ""


def test_sql_as_a_table_as_csv_and_as_json(weft: Weft, copy: Copy) -> None:
    query = "SELECT workflow, seq > 0 AS long, NULL AS missing FROM runs WHERE status = 'waiting' ORDER BY workflow"
    head, rule, first, *_ = lines(weft("sql", query))
    assert (head.split(), set(rule), first.split()) == (["workflow", "long", "missing"], {"-", " "}, ["asking", "1"])
    rows = list(csv.reader(io.StringIO(weft("sql", query, "--format", "csv").stdout)))
    assert rows == [["workflow", "long", "missing"], *([name, "1", ""] for name in ("asking", "signalled", "sleeping"))]
    objects = [json.loads(line) for line in weft("sql", query, "--format", "json").stdout.splitlines()]
    assert objects[0] == {"workflow": "asking", "long": 1, "missing": None}
    limited = weft("sql", query, "--limit", "2")
    assert len(lines(limited)) == 4 and "Only the first 2 rows" in limited.stderr


def test_sql_keeps_control_characters_from_the_terminal_and_cells_short(weft: Weft) -> None:
    ran = weft("sql", "SELECT 'a' || char(27) || '[31m' || char(10) || 'b' AS x, printf('%.200c', 'y') AS y")
    assert len(lines(ran)) == 3 and "\x1b" not in ran.stdout
    assert lines(ran)[2].endswith("y…") and len(lines(ran)[2]) < 100


def test_sql_lists_its_views_and_refuses_what_is_not_reading(weft: Weft) -> None:
    assert "out_loops_work  (result, stdout)" in lines(weft("sql", "--views"))
    views = json.loads(weft("sql", "--views", "--format", "json").stdout)
    assert {"name": "out_loops_work", "workflow": "loops", "block": "work", "columns": ["result", "stdout"]} in views
    ran = weft("sql", "DELETE FROM runs")
    assert isinstance(ran.exception, Refused) and "only reading" in ran.exception.message.lower()
    assert isinstance(weft("sql").exception, Refused)


def test_sql_from_stdin(copy: Copy) -> None:
    ran = CliRunner().invoke(cli.weft, ["sql", "-", "--db", str(copy.path)], input="SELECT 41 + 1 AS x")
    assert ran.stdout.split() == ["x", "--", "42"]


def test_a_state_as_lines() -> None:
    found: dict[str, Any] = {
        "run": "r",
        "status": "waiting",
        "seq": 5,
        "last_seq": 9,
        "at_ms": 0,
        "error": {"message": "it\nfailed"},
        "nodes": [{"key": "a@l#1", "status": "retrying", "attempt": 2}],
        "waits": [{"key": "ask", "kind": "approval", "due_ms": None}],
        "retries": [{"key": "a@l#1", "attempt": 3, "due_ms": 0}],
        "containers": [{"key": "l", "kind": "loop", "closed": 1, "opened": 2, "count": 3}],
        "ready": ["b", "c"],
        "variables": {"n": [1]},
    }
    told = [click.unstyle(line) for line in history._state_lines(found)]
    assert told[0].startswith("r  waiting  event 5 of 9  ")
    assert told[1:4] == ["  error: it failed", "  a@l#1  retrying, attempt 2", "  ask waits: approval"]
    assert told[4].startswith("  a@l#1 is retried (attempt 3), until ")
    assert told[5:] == ["  l (loop): 1 of 3 done, 1 open", "  starts next: b, c", "  n = [1]"]


def test_a_difference_as_lines() -> None:
    run = {"run": "r", "workflow": "w", "version": None, "status": "succeeded", "seq": 3}
    node = {"status": "succeeded", "attempt": 1, "route": "out", "error": None}
    event = {"seq": 2, "type": "node.succeeded", "key": "x", "attempt": 1, "data": {}, "output": "1"}
    found: dict[str, Any] = {
        "a": run,
        "b": {**run, "version": 2},
        "same": False,
        "diverged": {"a": event, "b": None},
        "input": [{"pointer": "/n", "a": "1", "b": None}],
        "output": [],
        "nodes": [
            {"key": "x", "a": node, "b": {**node, "route": "yes"}, "output": [{"pointer": "", "a": "1", "b": "2"}]}
        ],
        "only_a": ["y"],
        "only_b": [],
        "equal": 4,
        "differing": 2,
    }
    assert [click.unstyle(line) for line in history._diff_lines(found)] == [
        "a  r  succeeded  w, 3 events",
        "b  r  succeeded  w version 2, 3 events",
        "First difference:",
        "  a  event 2  node.succeeded  x  1",
        "  b  (its journal ends)",
        "    input/n: 1 | (nothing)",
        "x  succeeded | succeeded (yes)",
        "    (all of it): 1 | 2",
        "only in a: y",
        "Nodes: 4 equal, 2 not.",
    ]
    same = [click.unstyle(line) for line in history._diff_lines({**found, "same": True})]
    assert same[2:] == ["Only times and ids differ."]
