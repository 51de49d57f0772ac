"""Damaged files: one bit turned, or the end cut off, at random places of the database and of its WAL.

For each, `weft doctor` must end with words, not with a traceback, and the store must open and read, or raise an error
of its own. Where both say that all is well, the content is compared with that of the whole file: it must be the same,
or, after damage to the WAL, the state after an earlier commit. SQLite ends a WAL at the first frame whose checksum is
wrong, as after a crash; the two look the same. What is `GUARDED` must never differ unnoticed; other columns
carry nothing to tell by, and are counted.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import shutil
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Literal

from click.testing import CliRunner
from msgspec import Struct

from executor.errors import WeftError
from executor.kernel.store.sqlite.store import SQLiteStore
from server import cli
from server.cli import common
from tests.faults.calls import play_through
from tests.support.child import KILLED, in_child

Verdict = Literal["reported", "refused", "held", "older", "unguarded", "silent", "traceback"]
BAD: tuple[Verdict, ...] = ("silent", "traceback")
# Journals and what they rest on, with a checksum, a hash or a copy of each. None: every column.
GUARDED: dict[str, frozenset[str] | None] = {
    "batches": None,
    "plans": None,
    "documents": None,
    "blobs": None,
    "workflows": frozenset({"hash", "document"}),
    "run_details": frozenset({"status", "seq", "plan_hash", "output"}),
    "heads": frozenset({"status"}),
}
WAL_HEADER, FRAME_HEADER = 32, 24
EXAMPLES_MAX = 10


class Damage(Struct, frozen=True):
    """`bit` None: the file ends at `at`."""

    file: Literal["db", "wal"]
    at: int
    bit: int | None

    def do(self, db: Path) -> None:
        place = db if self.file == "db" else db.with_name(db.name + "-wal")
        with place.open("r+b") as file:
            if self.bit is None:
                file.truncate(self.at)
                return
            file.seek(self.at)
            (byte,) = file.read(1)
            file.seek(self.at)
            file.write(bytes([byte ^ 1 << self.bit]))

    def __str__(self) -> str:
        what = "cut off at" if self.bit is None else f"bit {self.bit} turned of byte"
        return f"{self.file} {what} {self.at}"


class FlipTally(Struct):
    """`reported`: by the doctor; `refused`: the doctor or the store could not read it and said so; `older`: an earlier
    commit of a WAL that was damaged; `unguarded`: a row that is not of the journal differs, and no check noticed;
    `silent`: the same of the journal or of what it rests on."""

    verdicts: Counter[Verdict] = Counter()
    examples: list[str] = []

    @property
    def well(self) -> bool:
        return not any(self.verdicts[verdict] for verdict in BAD)

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts.most_common())
        return "\n  ".join([f"{self.verdicts.total()} damaged files: {counts}", *self.examples])


class Base:
    """A file that was played on, everything of it in the database (`db`) or in the WAL, and what it may say."""

    def __init__(self, folder: Path, file: Literal["db", "wal"]) -> None:
        self.file: Literal["db", "wal"] = file
        self.db = folder / "weft.db"
        folder.mkdir(parents=True)

        def play_and_die() -> None:
            no_checkpoint = lambda sql: "SELECT 1" if "wal_checkpoint" in sql else sql  # noqa: E731
            play_through(self.db, folder / "acks", rewrite=no_checkpoint)
            os.kill(os.getpid(), signal.SIGKILL)

        assert in_child(play_and_die, folder) == KILLED, (folder / "error").read_text()
        self.wal = self.db.with_name("weft.db-wal")
        if file == "db":
            with closing(sqlite3.connect(self.db)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self.wal.unlink(missing_ok=True)
        self.db.with_name("weft.db-shm").unlink(missing_ok=True)
        self.true = content(self.copy(folder / "true"))
        self.earlier = {content(self.copy(folder / "earlier", end)) for end in self._commits()}

    def _commits(self) -> list[int]:
        """Where the frames of each commit end in the WAL, the empty WAL first."""
        if self.file == "db":
            return []
        wal = self.wal.read_bytes()
        page = int.from_bytes(wal[8:12], "big")
        ends = [0]
        for at in range(WAL_HEADER, len(wal) - page, FRAME_HEADER + page):
            if int.from_bytes(wal[at + 4 : at + 8], "big"):  # the size of the database after this commit
                ends.append(at + FRAME_HEADER + page)
        return ends

    def copy(self, folder: Path, wal_end: int | None = None) -> Path:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        db = folder / "weft.db"
        shutil.copyfile(self.db, db)
        db.chmod(0o600)
        if self.wal.exists():
            db.with_name("weft.db-wal").write_bytes(self.wal.read_bytes()[:wal_end])
        return db

    def damages(self, number: int, choose: random.Random) -> list[Damage]:
        size = (self.db if self.file == "db" else self.wal).stat().st_size
        return [
            Damage(self.file, choose.randrange(size), None if choose.random() < 0.2 else choose.randrange(8))
            for _ in range(number)
        ]

    def judge(self, damage: Damage, folder: Path) -> tuple[Verdict, str]:
        db = self.copy(folder)
        damage.do(db)
        ran = CliRunner().invoke(cli.weft, ["doctor", "--db", str(db)], standalone_mode=False)
        if ran.exception is not None and not isinstance(ran.exception, common.Refused):
            return "traceback", repr(ran.exception)
        try:
            asyncio.run(_read_all(db))
        except WeftError as error:
            return "refused", str(error)
        except Exception as error:
            return "traceback", repr(error)
        if ran.exception is not None or ran.return_value != common.OK:
            return "reported", str(ran.exception or ran.output)
        found = content(db)
        if found == self.true:
            return "held", ""
        if found in self.earlier:
            return "older", ""
        differs = self._difference(db, folder)
        return "silent" if any(map(_is_guarded, differs)) else "unguarded", ", ".join(sorted(differs))

    def _difference(self, db: Path, folder: Path) -> set[str]:
        """As table.column; a table alone when it has more rows, or fewer."""
        whole, differs = self.copy(folder / "whole"), set()
        with closing(sqlite3.connect(db)) as one, closing(sqlite3.connect(whole)) as other:
            for table in _tables(other):
                here, there = _rows(one, table), _rows(other, table)
                if len(here) != len(there):
                    differs.add(table)
                columns = [row[1] for row in other.execute(f"PRAGMA table_info({table})")]
                changed = [row for row in here if row not in there], [row for row in there if row not in here]
                for now, before in zip(*changed, strict=False):
                    differs |= {f"{table}.{name}" for name, a, b in zip(columns, now, before, strict=True) if a != b}
        return differs


def _is_guarded(difference: str) -> bool:
    table, _, column = difference.partition(".")
    columns = GUARDED.get(table, frozenset())
    return columns is None or (column or "status") in columns


def run_flips(folder: Path, number: int, seed: int = 1, say: Callable[[str], None] = lambda text: None) -> FlipTally:
    """Half of them in a database, half in a WAL."""
    shutil.rmtree(folder, ignore_errors=True)
    tally, choose = FlipTally(Counter(), []), random.Random(seed)
    for file in ("db", "wal"):
        base = Base(folder / file, file)
        for damage in base.damages(number // 2, choose):
            verdict, why = base.judge(damage, folder / "damaged")
            tally.verdicts[verdict] += 1
            if verdict in (*BAD, "unguarded"):
                say(f"{verdict}: {damage}: {why}")
            if verdict in BAD:
                tally.examples = [*tally.examples, f"{verdict}: {damage}: {why}"][:EXAMPLES_MAX]
    return tally


def content(db: Path) -> str:
    """Of all tables but `writers`, which says who has the file open."""
    digest = hashlib.sha256()
    with closing(sqlite3.connect(db)) as connection:
        for table in _tables(connection):
            digest.update(table.encode())
            for row in _rows(connection, table):
                digest.update(repr(row).encode())
    return digest.hexdigest()


def _tables(db: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    return [name for (name,) in db.execute(query) if name != "writers"]


def _rows(db: sqlite3.Connection, table: str) -> list[tuple[object, ...]]:
    return sorted(db.execute(f"SELECT * FROM {table}"), key=repr)


async def _read_all(db: Path) -> None:
    """Everything that a server reads of its runs. Raises WeftError where it cannot."""
    store = SQLiteStore(db)
    await store.open()
    try:
        for head in await store.list_workflows():
            await store.get_workflow(head.name)
        for run in await store.list_runs(limit=1000):
            await store.read_events(run.id)
            await store.read_inbox(run.id)
            await store.list_waits(None, run.id)
            await store.get_plan(run.plan_hash)
    finally:
        await store.close()
