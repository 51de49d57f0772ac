"""`weft doctor` on a large database: it remembers what was right, shows how far it is, and continues what was ended."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from executor.service.upkeep import checked
from executor.service.upkeep.checked import Examination, Progress
from executor.service.upkeep.findings import Evidence
from executor.service.upkeep.sql import open_reading
from server import cli
from server.app import build_engine
from server.cli import upkeep as commands
from server.settings import Settings
from tests.support.documents import ASKING, document
from tests.support.runs import settled

KEY = "a secret for tests only"
RUNS = 12
SAMPLE = 3
FLOW = document("flow", "start a", blocks={"a": {"type": "set", "params": {"value": 5}}})


class Place:
    def __init__(self, database: Path | str) -> None:
        self.database = database
        self.open = ""

    def settings(self) -> Settings:
        if isinstance(self.database, Path):
            return Settings(db_path=str(self.database), secret_key=KEY)
        return Settings(db_address=self.database, secret_key=KEY)

    def add(self, count: int, *, asking: bool = False) -> list[str]:
        async def make() -> list[str]:
            engine = await build_engine(self.settings())
            try:
                made = [(await engine.submit(FLOW)).run for _ in range(count)]
                for run in made:
                    await engine.wait_finished(run, 60)
                if asking:
                    self.open = (await engine.submit(ASKING)).run
                    await settled(engine, self.open)
                return sorted(made)
            finally:
                await engine.close()

        return asyncio.run(make())

    def spoil(self, run: str) -> None:
        """Its row says that it failed."""
        text = f"UPDATE run_details SET status = 'failed' WHERE id = '{run}'"
        if isinstance(self.database, Path):
            with closing(sqlite3.connect(self.database)) as db, db:
                db.execute(text)
        else:
            import psycopg

            with psycopg.connect(self.database) as connection:
                connection.execute(text)

    def examine(
        self, *, full: bool = False, report: Callable[[Progress], None] = lambda progress: None
    ) -> tuple[int, set[str]]:
        """How many runs were checked, and which are wrong."""
        with closing(open_reading(self.database)) as reading:
            examination = Examination(reading, self.database, "1", full=full, report=report)
            try:
                found = examination.run(Evidence())
            except KeyboardInterrupt:
                examination.keep()
                raise
            assert not examination.lost
            return examination.progress.done, {finding.run for finding in found.findings}


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setattr(checked, "SAMPLE", SAMPLE)
    monkeypatch.setattr(checked, "MARGIN_MS", 0)
    is_file = request.param == "SQLite"
    yield Place(tmp_path / "weft.db" if is_file else request.getfixturevalue("postgres"))


def test_what_was_right_is_only_sampled(place: Place) -> None:
    runs = place.add(RUNS, asking=True)
    assert place.examine() == (RUNS + 1, set())
    assert place.examine() == (1 + SAMPLE, set()), "the open one, and some of the rest"
    place.add(2)
    assert place.examine() == (1 + 2 + SAMPLE, set())
    place.spoil(runs[-1])
    assert place.examine()[1] == set(), "the sample has not come to it yet"
    assert place.examine(full=True) == (RUNS + 3, {runs[-1]})
    for _ in range(2):
        assert place.examine()[1] == {runs[-1]}, "it stays wrong"


def test_the_sample_comes_to_each_run(place: Place) -> None:
    runs = place.add(RUNS)
    assert place.examine()[1] == set()
    place.spoil(runs[7])
    found = [place.examine()[1] for _ in range(RUNS // SAMPLE)]
    assert set() in found and {runs[7]} in found


def test_one_that_was_interrupted_is_continued(place: Place) -> None:
    runs = place.add(RUNS, asking=True)
    place.spoil(runs[1])

    def end(progress: Progress) -> None:
        if progress.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place.examine(report=end)
    done, wrong = place.examine()
    assert wrong == {runs[1]} and RUNS - 5 <= done < RUNS + 1
    assert place.examine()[0] <= 1 + 1 + SAMPLE


def test_a_copy_and_another_version_are_checked_whole(place: Place, tmp_path: Path) -> None:
    place.add(RUNS)
    assert place.examine()[0] == RUNS
    if isinstance(place.database, Path):
        copy = tmp_path / "copy.db"
        for end in ("", ".checked"):
            (tmp_path / f"copy.db{end}").write_bytes((tmp_path / f"weft.db{end}").read_bytes())
        assert Place(copy).examine()[0] == RUNS
    with closing(open_reading(place.database)) as reading:
        newer = Examination(reading, place.database, "2", full=False, report=lambda progress: None)
        newer.run(Evidence())
        assert newer.progress.done == RUNS


def test_the_command_says_how_far_it_is(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.add(RUNS)
    monkeypatch.setattr(commands, "PROGRESS_S", 0)
    command = ["doctor", "--db", str(place.database)]
    shown = commands._Shown.__call__

    def interrupted(self: commands._Shown, progress: Progress) -> None:
        shown(self, progress)
        if progress.done == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(commands._Shown, "__call__", interrupted)
        ended = CliRunner().invoke(cli.weft, command)
    assert ended.exit_code == 1, ended.output
    assert f"3 of about {RUNS} runs checked" in ended.stderr
    assert f"Interrupted: 4 of about {RUNS} runs checked, up to run " in ended.stderr
    assert CliRunner().invoke(cli.weft, command, standalone_mode=False).return_value == 0
    assert f"of about {RUNS} runs" in CliRunner().invoke(cli.weft, [*command, "--full"]).stderr


def test_a_folder_that_cannot_be_written_to_is_no_error(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.add(RUNS)

    def fails(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(checked, "_store", fails)
    ran = CliRunner().invoke(cli.weft, ["doctor", "--db", str(place.database)], standalone_mode=False)
    assert ran.return_value == 0 and "Not remembered" in ran.stderr and "no space left" in ran.stderr


def test_a_small_database_leaves_no_file(tmp_path: Path) -> None:
    place = Place(tmp_path / "weft.db")
    place.add(2)
    assert place.examine()[0] == 2
    assert not [name for name in os.listdir(tmp_path) if "checked" in name]


def test_cursors_have_one_name(postgres: str) -> None:
    """Each name would be another statement for pg_stat_statements."""
    place = Place(postgres)
    place.add(1)
    with closing(open_reading(postgres)) as reading:
        names = []
        for _ in range(2):
            for _ in reading.each("SELECT id FROM run_details"):
                names.append(reading.rows("SELECT name FROM pg_cursors"))
        assert names == [[("reading",)]] * 2
        for _ in reading.each("SELECT id FROM run_details"):
            for _ in reading.each("SELECT id FROM run_details"):
                assert len(reading.rows("SELECT name FROM pg_cursors")) == 2
