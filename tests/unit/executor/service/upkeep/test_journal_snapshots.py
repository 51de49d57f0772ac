"""Snapshots of a run with loops, branches, variables and a wait, and what may be wrong with one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from executor.kernel.journal.reader import load_plan
from executor.kernel.run import loaded as in_memory
from executor.kernel.run import snapshots
from executor.kernel.run.loaded import LoadedRun
from executor.kernel.run.snapshots import checksum_of
from executor.kernel.store.sqlite.connection import Connect, plain_connect
from executor.kernel.store.sqlite.readers import plain_read_only
from executor.kernel.store.sqlite.reading import open_reading
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics import snapshots as topic
from executor.kernel.store.topics.snapshots import SNAPSHOT_SEQ_MIN, SnapshotRow
from executor.open.engine import Engine
from executor.service.upkeep.backup import backup, restore
from executor.service.upkeep.findings import Evidence, Finding
from executor.service.upkeep.invariants import check
from executor.service.views import RunView
from tests.support.blocks import Step
from tests.support.documents import Json, document
from tests.support.runs import engine_on, outputs, settled, until_event
from tests.support.snapshots import often
from tests.support.until import until

ASK = {"type": "approval", "params": {"title": "OK?", "actions": ["yes"]}}
COUNT = {"type": "variables", "params": {"assign": [{"name": "n", "op": "increment", "value": 1}]}}
BUSY = document(
    "busy",
    "start l",
    "l body count",
    "count fan",
    "fan body b",
    "l end",
    "start outer",
    "outer body o",
    "o ask",
    "ask p",
    "outer last",
    blocks={
        "l": {"type": "loop", "params": {"mode": "for", "count": 3}},
        "count": {**COUNT, "parent": "l"},
        "fan": {"type": "parallel", "params": {"mode": "count", "count": 4}, "parent": "l"},
        "b": {"type": "step", "params": {"value": "<parallel.index>"}, "parent": "fan"},
        "end": {"type": "step", "params": {"value": "<l.results>"}},
        "outer": {"type": "loop", "params": {"mode": "for", "count": 2}},
        "o": {"type": "step", "params": {"value": "<loop.results>"}, "parent": "outer"},
        "ask": {**ASK, "parent": "outer"},
        "p": {"type": "step", "params": {"value": "<o.value>"}, "parent": "outer"},
        "last": {"type": "step", "params": {"value": ["<outer.results>", "<variable.n>"]}},
    },
    variables={"n": 0},
)


@pytest.fixture(autouse=True)
def after_each_event() -> Iterator[None]:
    with often(every=1):
        snapshots._warned.clear()
        yield


async def waiting(engine: Engine, body: Json = BUSY) -> str:
    await engine.workflows.save(body)
    run = (await engine.submit(body["name"])).run
    assert (await settled(engine, run)).status == "waiting"
    return run


async def saved(engine: Engine, path: Path) -> str:
    """A run that waits, when it has left memory and its snapshot is of its last event."""
    run = await waiting(engine)
    seq = (await engine.runs.view(run)).seq
    await until(lambda: [snapshot.seq for snapshot in stored(path)] == [seq])
    return run


async def answered(engine: Engine, run: str) -> None:
    [wait] = await engine.waits.list(run=run)
    assert wait.link is not None
    await engine.answer(wait.link.rpartition("/")[2], {}, "yes")


async def to_its_end(engine: Engine, run: str) -> RunView:
    await answered(engine, run)
    await until_event(engine, run, "wait.opened", count=2)
    await answered(engine, run)
    await until_event(engine, run, "run.finished")
    view = await engine.runs.view(run)
    assert view.status == "succeeded"
    return view


def stored(path: Path) -> list[SnapshotRow]:
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT seq, format, code, plan_hash, checksum, data FROM snapshots ORDER BY n").fetchall()
    return [SnapshotRow(*row) for row in rows]


def findings(path: Path, evidence: Evidence | None = None) -> list[Finding]:
    with closing(open_reading(path)) as db:
        return list(check(db, evidence=evidence))


def changed(run: str, snapshot: SnapshotRow, **fields: Any) -> SnapshotRow:
    """With the checksum that belongs to it."""
    new = msgspec.structs.replace(snapshot, **fields)
    return msgspec.structs.replace(new, checksum=checksum_of(run, new))


def put(path: Path, snapshot: SnapshotRow) -> None:
    fields = msgspec.structs.asdict(snapshot)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"UPDATE snapshots SET {', '.join(f'{name} = :{name}' for name in fields)}", fields)


async def test_a_run_that_waits_has_one_that_says_what_its_journal_says(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with engine_on(path, Step()) as engine:
        run = await saved(engine, path)
        [snapshot] = stored(path)
        assert snapshot.seq == (await engine.runs.view(run)).seq
        assert findings(path) == []
    async with engine_on(path, Step()) as engine:
        view = await to_its_end(engine, run)
        first, second = {"n": 1, "value": []}, {"n": 1, "value": [[{"n": 1, "value": []}]]}
        assert outputs(view)["last"]["value"] == [[[first], [second]], 3]
    assert stored(path) == [] and findings(path) == []


@pytest.mark.parametrize(
    ("fields", "finding"),
    [
        ({"seq": 10_000}, ("I4", "its snapshot is of event 10000, the journal ends with event ")),
        ({"seq": 7}, ("I4", "its snapshot is not what the journal says after event 7 (first difference: state)")),
        ({"data": b""}, ("I4", "(first difference: state)")),
        ({"format": 99}, None),
        ({"code": "another"}, None),
        ({"plan_hash": "another"}, None),
    ],
)
async def test_one_that_cannot_be_used_changes_nothing(
    tmp_path: Path, fields: dict[str, Any], finding: tuple[str, str] | None
) -> None:
    path = tmp_path / "weft.db"
    async with engine_on(path, Step()) as engine:
        run = await saved(engine, path)
    [snapshot] = stored(path)
    put(path, changed(run, snapshot, **fields))
    found = findings(path)
    if finding is None:
        assert found == []
    else:
        [one] = found
        assert (one.invariant, one.run) == (finding[0], run) and finding[1] in one.what and "--snapshots" in one.fix
    async with engine_on(path, Step()) as engine:
        await to_its_end(engine, run)
    assert findings(path) == []


async def test_a_damaged_one_is_found_and_not_used(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with engine_on(path, Step()) as engine:
        run = await saved(engine, path)
    [snapshot] = stored(path)
    put(path, msgspec.structs.replace(snapshot, data=snapshot.data[:-1] + b"?"))
    [one] = findings(path)
    assert (one.invariant, one.what) == ("I12", "its snapshot does not match its checksum, and is not used")
    async with engine_on(path, Step()) as engine:
        await to_its_end(engine, run)


async def test_a_wrong_one_is_found(tmp_path: Path) -> None:
    """It is what another run would have: only the fold can tell."""
    path = tmp_path / "weft.db"
    async with engine_on(path, Step()) as engine:
        run = await saved(engine, path)
    [snapshot] = stored(path)
    put(path, changed(run, snapshot, data=snapshot.data.replace(b'{"n":3}', b'{"n":4}')))
    [one] = findings(path)
    assert one.what.endswith("(first difference: fold)")


async def test_one_that_the_journal_does_not_follow_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "weft.db"
    async with engine_on(path, Step()) as engine:
        run = await saved(engine, path)
        [early] = stored(path)
        await answered(engine, run)
        await until_event(engine, run, "wait.opened", count=2)
        await until_event(engine, run, "run.parked", count=2)
        row = await engine.store.get_run(run)
        assert row is not None
        loaded = LoadedRun.empty(row, await load_plan(engine.store, row.plan_hash), {})
    for _ in snapshots.restore(loaded, early.data):
        pass
    loaded.state.seq += 2  # as if two events had changed nothing
    forged = await snapshots.snapshot_of(loaded)
    assert forged is not None and forged.seq < row.seq
    put(path, forged)
    async with engine_on(path, Step()) as engine:
        await answered(engine, run)
        await until_event(engine, run, "run.finished")
    assert "the journal does not follow it: AssertionError" in caplog.text


async def test_deleted_at_any_time(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with engine_on(path, Step()) as engine:
        run = await saved(engine, path)
        assert await engine.store.delete_snapshots() == 1
        assert findings(path) == []
        await to_its_end(engine, run)
    assert findings(path) == []


async def test_a_run_that_moves_loses_it_and_gets_another(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with engine_on(path, Step()) as engine:
        run = await saved(engine, path)
        [before] = stored(path)
        blocks = BUSY["blocks"] | {"more": {"type": "step"}}
        new = BUSY | {"blocks": blocks, "edges": [*BUSY["edges"], {"source": "last", "target": "more"}]}
        await engine.workflows.save(new)
        assert (await engine.lifecycle.migrate(run, 2, 60)).moved
        assert (await settled(engine, run)).status == "waiting"
        [after] = stored(path)
        assert after.plan_hash != before.plan_hash and after.seq > before.seq
        assert findings(path) == []
        assert "more" in outputs(await to_its_end(engine, run))
    assert findings(path) == []


async def test_a_fork_has_its_own(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with engine_on(path, Step()) as engine:
        run = await saved(engine, path)
        seq = (await engine.runs.view(run)).seq
        forked = await engine.lifecycle.fork(run, seq)
        await until_event(engine, forked.run, "run.parked")
        assert (await settled(engine, forked.run)).status == "waiting"
        assert len(stored(path)) == 2 and findings(path) == []
        await to_its_end(engine, run)
        assert len(stored(path)) == 1


async def test_a_backup_has_it(tmp_path: Path) -> None:
    path, copy = tmp_path / "weft.db", tmp_path / "copy.db"
    async with engine_on(path, Step()) as engine:
        run = await saved(engine, path)
        backup(path, copy)
        await answered(engine, run)
        await until_event(engine, run, "wait.opened", count=2)
        await settled(engine, run)
    restore(copy, path, replace=True)
    assert stored(path) == stored(copy) != []
    assert findings(path) == []
    async with engine_on(path, Step()) as engine:
        await to_its_end(engine, run)


async def test_a_short_run_makes_not_one_statement_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (in_memory, snapshots, topic):
        monkeypatch.setattr(module, "SNAPSHOT_SEQ_MIN", SNAPSHOT_SEQ_MIN)
    made: list[str] = []

    def traced(connect: Connect) -> Connect:
        def connected(path: str) -> sqlite3.Connection:
            connection = connect(path)
            connection.set_trace_callback(made.append)
            return connection

        return connected

    path = tmp_path / "weft.db"
    for last in (False, True):
        store = SQLiteStore(path, connect=traced(plain_connect), connect_reader=traced(plain_read_only))
        async with engine_on(store, Step()) as engine:
            if last:
                [run] = [row.id for row in await engine.store.list_runs()]
                await to_its_end(engine, run)
            else:
                await waiting(engine)
    assert sum("batches" in statement for statement in made) > 20
    assert not [statement for statement in made if "snapshots" in statement and "CREATE" not in statement]


async def test_secrets_are_looked_for_in_it(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with engine_on(path, Step()) as engine:
        run = await saved(engine, path)
    [snapshot] = stored(path)
    put(path, changed(run, snapshot, data=snapshot.data + b"s3cr3t-of-someone"))
    found = findings(path, Evidence(secrets=["s3cr3t-of-someone"]))
    assert [(one.invariant, one.run) for one in found if one.invariant == "I11"] == [("I11", run)]
