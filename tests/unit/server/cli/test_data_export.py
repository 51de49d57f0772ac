"""`weft export`: rows as the views have them, and files that are whole or not there."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from executor.service.upkeep import export
from server import cli
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
    monkeypatch.setenv("WEFT_DB", str(copy.path))
    return lambda *arguments: CliRunner().invoke(cli.weft, arguments, standalone_mode=False)


def refusal(ran: Result) -> str:
    assert isinstance(ran.exception, Refused), ran.exception
    return f"{ran.exception.message} {ran.exception.hint}"


def test_a_block_as_csv(weft: Weft, copy: Copy, tmp_path: Path) -> None:
    shown = list(csv.reader(io.StringIO(weft("export", "loops", "--node", "work").stdout)))
    assert shown[0] == ["run_id", "version", "path", "attempt", "seq", "at_ms", "result", "stdout", "output"]
    assert {(row[0], row[2], row[6]) for row in shown[1:]} == {(copy.run["loops"], f"fan[{n}]", "1") for n in range(3)}
    target = tmp_path / "work.csv"
    assert weft("export", "loops", "--node", "work", "--to", str(target)).return_value == 0
    with target.open(newline="") as written:
        assert list(csv.reader(written)) == shown
    assert target.stat().st_mode & 0o777 == 0o600
    assert "already exists" in refusal(weft("export", "loops", "--node", "work", "--to", str(target)))
    assert weft("export", "loops", "--node", "work", "--to", str(target), "--force").return_value == 0


def test_a_block_of_which_nothing_is_known(weft: Weft, copy: Copy) -> None:
    """Outputs that are too large for their rows are there as well."""
    big = json.dumps("x" * 100_000)
    copy.spoil(
        "UPDATE loose_events SET output = NULL, data = ? WHERE node = 'greet' AND output IS NOT NULL", b'{"blob":"b"}'
    )
    copy.spoil("INSERT INTO blobs (hash, bytes) VALUES ('b', ?)", big.encode())
    head, row = csv.reader(io.StringIO(weft("export", "hello", "--node", "greet").stdout))
    assert (head[-2:], row[0], row[-1]) == (["at_ms", "output"], copy.run["hello"], big)


def test_all_known_blocks_as_a_sqlite_file(weft: Weft, copy: Copy, tmp_path: Path) -> None:
    target = tmp_path / "loops.db"
    ran = weft("export", "loops", "--format", "sqlite", "--to", str(target))
    assert "out_loops_work  3 rows" in ran.stdout.splitlines()
    with closing(sqlite3.connect(target)) as db:
        assert db.execute("SELECT path, result FROM out_loops_work ORDER BY path").fetchall() == [
            (f"fan[{n}]", 1) for n in range(3)
        ]
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    assert {"out_loops_work", "out_loops_each", "out_loops_fan"} <= tables
    assert not list(tmp_path.glob("*.part"))


def test_what_goes_wrong_leaves_the_file_as_it_was(weft: Weft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "loops.db"
    target.write_text("of yesterday")

    def fail(*args: object) -> int:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(export, "_copy", fail)
    ran = weft("export", "loops", "--format", "sqlite", "--to", str(target), "--force")
    assert "disk is full" in refusal(ran)
    assert target.read_text() == "of yesterday" and not list(tmp_path.glob("*.part"))


def test_what_is_refused(weft: Weft, copy: Copy, tmp_path: Path) -> None:
    assert "no workflow 'nothing'" in refusal(weft("export", "nothing", "--node", "x"))
    assert "blocks with a known output" in refusal(weft("export", "loops", "--node", "x"))
    assert "--node BLOCK" in refusal(weft("export", "loops"))
    assert "--to FILE" in refusal(weft("export", "loops", "--format", "sqlite"))
    own = weft("export", "loops", "--format", "sqlite", "--to", str(copy.path), "--force")
    assert "is the database itself" in refusal(own)
    nowhere = weft("export", "loops", "--node", "work", "--to", str(tmp_path / "nowhere" / "x.csv"))
    assert "cannot be written: No such file" in refusal(nowhere)
