"""Live readers take what this process has committed from memory; whatever else happens to the run, they get its
journal, in order and once."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from executor.errors import Fenced, NotFound
from executor.kernel.read import cursor as lookout
from executor.kernel.read.cursor import Cursor
from executor.kernel.store.run_rows import Append, Record
from executor.open.engine import Engine
from tests.support.blocks import Hold
from tests.support.counted import counted
from tests.support.documents import in_a_row
from tests.support.runs import engine_on, until_event
from tests.support.until import until

HOLD = {"type": "hold"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookout, "LOOK_S", 0.02)


def signal(name: str) -> dict[str, Any]:
    return {"type": "signal", "params": {"name": name}}


class Reads:
    """How often the journal was read from the disk."""

    def __init__(self, engine: Engine) -> None:
        self.count = 0
        self._read = engine.store.read_events
        engine.store.read_events = self.read  # type: ignore[assignment]

    async def read(self, run: str, after: int = 0, limit: int = 10_000) -> list[Record]:
        self.count += 1
        return await self._read(run, after, limit)


class Follower:
    def __init__(self, engine: Engine, run: str, after: int = 0) -> None:
        self.got: list[Record] = []
        self.task = asyncio.create_task(self._follow(engine, run, after))

    async def _follow(self, engine: Engine, run: str, after: int) -> None:
        async for records in engine.follow(run, after):
            self.got += records

    async def has(self, type: str) -> None:
        await until(lambda: any(record.type == type for record in self.got))

    async def end(self) -> list[Record]:
        async with asyncio.timeout(60):
            await self.task
        return self.got


async def held(engine: Engine, hold: Hold, *names: str) -> str:
    """A run whose first block works until it is freed."""
    blocks: dict[str, Any] = {name: {"type": "set", "params": {"value": 1}} for name in names}
    run = (await engine.submit(in_a_row("held", {**blocks, names[0]: HOLD}))).run
    await until_event(engine, run, "node.started", names[0])
    return run


async def test_live_events_are_not_read_from_the_disk(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        run = await held(engine, hold, *(f"s{n}" for n in range(50)))
        followers = [Follower(engine, run) for _ in range(10)]
        for follower in followers:
            await follower.has("node.started")
        for _ in range(5):
            await asyncio.sleep(0)  # all have found that there is nothing more yet
        reads = Reads(engine)
        hold.free.set()
        found = [await follower.end() for follower in followers]
        assert reads.count == 0
        stored = await engine.store.read_events(run)
    assert all(got == stored for got in found)
    assert [record.seq for record in stored] == list(range(1, len(stored) + 1))
    assert engine.parts.hub.tails._tails == {}


async def test_one_that_joins_behind_an_event_gets_the_rest(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        run = await held(engine, hold, "a", "b", "c")
        first = Follower(engine, run)
        await first.has("node.started")
        late = Follower(engine, run, after=2)
        hold.free.set()
        stored = await first.end()
        assert await late.end() == stored[2:]
        assert await Follower(engine, run, after=stored[-2].seq).end() == stored[-1:]
        assert await Follower(engine, run, after=stored[-1].seq).end() == []


async def test_a_run_without_readers_leaves_nothing_in_memory(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        await engine.run(in_a_row("alone", {"a": {"type": "set", "params": {"value": 1}}}))
        assert engine.parts.hub.tails._tails == {}


async def test_what_another_process_commits_follows_what_this_one_has(tmp_path: Path) -> None:
    """The first reads what is posted by the second, and the second what the first has made of it."""
    path = tmp_path / "weft.db"
    async with engine_on(path) as one, engine_on(path, work=False) as front:
        run = (await one.submit(in_a_row("asks", {name: signal(name) for name in ("a", "b", "c")}))).run
        here, there = Follower(one, run), Follower(front, run)
        for name in ("a", "b", "c"):
            await until_event(one, run, "wait.opened", name)
            await front.signal(run, name)
        stored = await here.end()
        assert await there.end() == stored == await one.store.read_events(run)


async def test_a_run_that_moves_between_owners_is_read_as_one(tmp_path: Path) -> None:
    """Both processes own it, one after the other, and each has a reader all the time."""
    path = tmp_path / "weft.db"
    first, second = Hold(), Hold()
    document = in_a_row("moves", {"a": HOLD, "go": signal("go"), "b": HOLD})
    async with engine_on(path, second, work=False) as two:
        async with engine_on(path, first) as one:
            run = (await one.submit(document)).run
            here, there = Follower(one, run), Follower(two, run)
            await there.has("node.started")
            first.free.set()
            await here.has("run.parked")
            await until_free(two, run)
            got = list(here.got)
            here.task.cancel()
            await asyncio.wait([here.task])
        await two.signal(run, "go")
        async with engine_on(path, second) as three:
            again = Follower(three, run, got[-1].seq)
            await again.has("node.started")
            second.free.set()
            stored = await there.end()
            assert got + await again.end() == stored == await three.store.read_events(run)


async def until_free(engine: Engine, run: str) -> None:
    async with asyncio.timeout(60):
        while (await engine.runs.row(run)).lease_owner is not None:
            await asyncio.sleep(0.01)


async def test_readers_hear_nothing_of_an_append_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        run = await held(engine, hold, "a", "b")
        reader = Follower(engine, run)
        await reader.has("node.started")
        append, refused = engine.store.append, asyncio.Event()

        async def fenced(change: Append) -> Any:
            if change.run_id == run and not refused.is_set():
                refused.set()
                raise Fenced("the lease is lost")
            return await append(change)

        monkeypatch.setattr(engine.store, "append", fenced)
        before = len(reader.got)
        hold.free.set()
        await refused.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        stored = await engine.store.read_events(run)
        assert len(stored) == before == len(reader.got)
        assert engine.parts.hub.tails.behind(run, before) in (None, [])
        reader.task.cancel()


async def test_a_run_that_is_deleted_under_its_readers(tmp_path: Path) -> None:
    """What has been committed is in memory for those who were up to date; the others have nothing to read any more."""
    async with engine_on(tmp_path / "weft.db", hold := Hold()) as engine:
        run = await held(engine, hold, "a", "b")
        up_to_date, behind = engine.events.cursor(run), engine.events.cursor(run)
        while await up_to_date.next_records():
            pass
        hold.free.set()
        await until_event(engine, run, "run.finished")
        await until(lambda: run not in engine.parts.owned.loops)
        assert await engine.store.delete_runs([run])
        assert (await to_the_end(up_to_date))[-1].type == "run.finished"
        with pytest.raises(NotFound):
            await to_the_end(behind)
        up_to_date.close()
        behind.close()


async def test_a_reader_that_waits_hears_that_its_run_was_deleted(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        run = (await engine.submit(in_a_row("asks", {"a": signal("go")}))).run
        reader = Follower(engine, run)
        await reader.has("run.parked")
        await until_free(engine, run)
        with closing(sqlite3.connect(tmp_path / "weft.db")) as db, db:
            db.execute("PRAGMA foreign_keys = OFF")
            for table in ("heads", "batches", "run_details"):
                db.execute(f"DELETE FROM {table}")
        with pytest.raises(NotFound):
            await reader.end()


async def to_the_end(cursor: Cursor) -> list[Record]:
    got: list[Record] = []
    async with asyncio.timeout(60):
        while (records := await cursor.next_records()) is not None:
            got += records
            if not records:
                await cursor.wait()
    return got


async def test_runs_of_which_nothing_is_committed_are_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version of the database is asked for instead, also while this process and others read it."""
    async with engine_on(tmp_path / "weft.db") as owner, engine_on(tmp_path / "weft.db", work=False) as front:
        runs = [(await owner.submit(in_a_row(f"w{n}", {"go": signal("go")}))).run for n in range(3)]
        for run in runs:
            await until_event(owner, run, "run.parked")
        followers = [Follower(front, run) for run in runs]
        for follower in followers:
            await follower.has("run.parked")
        versions, looks = (counted(front.store, name, monkeypatch) for name in ("version", "last_seqs"))
        await until(lambda: versions["version"] >= 5)
        before = looks["last_seqs"]
        await until(lambda: versions["version"] >= 10)
        await front.store.list_runs()
        await until(lambda: versions["version"] >= 20)
        assert looks["last_seqs"] == before
        await owner.signal(runs[0], "go")
        assert (await followers[0].end())[-1].type == "run.finished"
        assert looks["last_seqs"] > before
        for follower in followers[1:]:
            follower.task.cancel()
        await asyncio.gather(*(follower.task for follower in followers[1:]), return_exceptions=True)
