"""Deleting old runs: what goes, in which steps, and what the engine does by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from executor.errors import DatabaseUnavailable, NotFound
from executor.kernel.store.sqlite.reading import open_reading
from executor.kernel.store.topics.store import Store
from executor.open.engine import Engine
from executor.service.topics.waits import WaitFilter
from executor.service.upkeep import gc
from executor.service.upkeep.gc import Collected, collect, preview
from executor.service.upkeep.invariants import check
from server.app import build_engine
from server.settings import Settings
from tests.support.documents import document
from tests.support.model_store.store import ModelStore
from tests.support.rows import LEASE_MS, T0, change, finish, new_run, record, row
from tests.unit.executor.service.upkeep.conftest import block

DAY_MS = 86_400_000


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(db_path=str(tmp_path / "weft.db"), secret_key="a secret for tests only")


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    engine = await build_engine(settings)
    yield engine
    await engine.close()


class Watched(ModelStore):
    """Remembers how large each transaction was."""

    def __init__(self) -> None:
        super().__init__()
        self.deleted: list[list[str]] = []

    async def delete_runs(self, run_ids: Any) -> list[str]:
        gone = await super().delete_runs(run_ids)
        self.deleted.append(gone)
        return gone


async def ended(store: Store, id: str, events: int = 2, at_ms: int = T0, **fields: Any) -> None:
    await store.create_run(new_run(id, at_ms, **fields))
    (run,) = await store.claim("w", at_ms, LEASE_MS, run_id=id)
    await store.append(change(run, *[record()] * (events - 2)))
    await finish(store, run, now_ms=at_ms)


async def aged(engine: Engine, run: str) -> None:
    """Until its end lies in the past, by a clock of milliseconds."""
    ended_ms = (await engine.runs.row(run)).finished_at_ms
    assert ended_ms is not None
    while engine.parts.clock.now_ms() <= ended_ms:
        await asyncio.sleep(0.001)


async def test_what_is_old_goes_in_small_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "EVENTS_PER_BATCH", 100)
    store = Watched()
    for n in range(6):
        await ended(store, f"small{n}", 40, T0 + n, plan_hash=f"p{n}")
    await ended(store, "large", 1000, T0 + 6)
    await ended(store, "young", 5, T0 + DAY_MS)
    would = await preview(store, T0 + 2 * DAY_MS, DAY_MS + 1)
    gone = await collect(store, T0 + 2 * DAY_MS, DAY_MS + 1)
    assert gone == Collected(runs=7, events=6 * 40 + 1000, plans=6)
    assert would == Collected(runs=7, events=6 * 40 + 1000, plans=0, dry_run=True)
    assert store.deleted == [
        ["small0", "small1"], ["small2", "small3"], ["small4", "small5"], ["large"], []
    ]  # fmt: skip
    assert [run.id for run in await store.list_runs()] == ["young"]


async def test_without_an_age_no_run_goes() -> None:
    store = ModelStore()
    await ended(store, "run")
    assert await collect(store, T0 + 9 * DAY_MS, None) == Collected()
    assert (await row(store, "run")).status == "succeeded"


async def test_the_newest_stay_and_families_go_together() -> None:
    store = ModelStore()
    for n in range(3):
        await store.create_run(new_run(f"parent{n}", T0 + n))
        (parent,) = await store.claim("w", T0 + n, LEASE_MS, run_id=f"parent{n}")
        child = new_run(f"child{n}", T0 + n, "other", parent_run_id=f"parent{n}", parent_key="call!1")
        await store.append(change(parent, record("wait.opened"), children=(child,)))
        (run,) = await store.claim("w", T0 + n, LEASE_MS, run_id=f"child{n}")
        await finish(store, run, now_ms=T0 + n)
        await finish(store, parent, now_ms=T0 + n)
    would = await preview(store, T0 + DAY_MS, 0, keep=1)
    gone = await collect(store, T0 + DAY_MS, 0, keep=1)
    assert (gone.runs, gone.events) == (would.runs, would.events) == (4, 2 * 3 + 2 * 2)
    assert {run.id for run in await store.list_runs()} == {"parent2", "child2"}


async def test_the_engine_forgets_old_runs_by_itself(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "UNUSED_MS", -1)
    engine = await build_engine(settings)
    try:
        await engine.upkeep.stop()
        large = await engine.submit(
            document("a", "start x", blocks={"x": block("function", code="return 'x'.repeat(300000)")})
        )
        waiting = await engine.submit(document("b", "start ask", blocks={"ask": block("approval", title="?")}))
        for run in (large.run, waiting.run):
            await engine.wait_finished(run, 30)
        engine.upkeep.start(1, first_s=0.01, every_s=0.01)
        async with asyncio.timeout(30):
            while await engine.store.get_run(large.run) is not None or (await engine.store.count_orphans(2**53)).total:
                await asyncio.sleep(0.01)
        with pytest.raises(NotFound):
            await engine.runs.view(large.run)
        assert (await engine.runs.view(waiting.run)).status == "waiting"
    finally:
        await engine.close()
    with closing(open_reading(settings.db_path)) as db:
        assert list(check(db)) == []
        assert db.rows("SELECT count(*) FROM blobs") == [(0,)]


@pytest.mark.parametrize("error", [DatabaseUnavailable("the disk is away"), RuntimeError("a bug")], ids=type)
async def test_a_database_that_fails_is_tried_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    await engine.upkeep.stop()
    submitted = await engine.submit(document("a", "start x", blocks={"x": block("set", value=1)}))
    await engine.wait_finished(submitted.run, 30)
    real, failures = engine.store.find_removable, 0

    async def failing(*arguments: Any) -> Any:
        nonlocal failures
        failures += 1
        if failures < 3:
            raise error
        return await real(*arguments)

    monkeypatch.setattr(engine.store, "find_removable", failing)
    engine.upkeep.start(1, first_s=0.0, every_s=0.01)
    async with asyncio.timeout(30):
        while await engine.store.get_run(submitted.run) is not None:
            await asyncio.sleep(0.01)
    assert failures >= 3


async def test_a_run_that_takes_over_results_keeps_its_source(engine: Engine) -> None:
    """Until it has ended: then everything it needs is its own."""
    flow = document(
        "again",
        "start one",
        "one ask",
        "ask approve end",
        blocks={
            "one": block("function", code="return 41"),
            "ask": block("approval", title="?"),
            "end": block("set", value="<one>"),
        },
    )
    first = await engine.submit(flow)
    await engine.wait_finished(first.run, 30)
    await engine.cancel(first.run)
    async for _ in engine.follow(first.run):
        pass
    await aged(engine, first.run)
    again = await engine.lifecycle.run_from(first.run, "ask")
    view = await engine.wait_finished(again.run, 30)
    assert (await engine.upkeep.collect(0)).runs == 0
    (wait,) = view.waits
    assert wait.link is not None
    await engine.answer(wait.link.rpartition("/")[2], {}, "approve")
    view = await engine.wait_finished(again.run, 30)
    assert view.status == "succeeded"
    assert next(node.output for node in view.nodes if node.node == "one")["result"] == 41
    await engine.store.delete_runs([first.run])
    assert orjson.dumps((await engine.runs.view(again.run)).output) == orjson.dumps(view.output)
    await aged(engine, again.run)
    assert (await engine.upkeep.collect(0)).runs == 1


async def test_following_a_run_that_is_deleted_raises(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executor.kernel.read.cursor.PAGE", 3)
    submitted = await engine.submit(document("a", "start x", blocks={"x": block("set", value=1)}))
    await engine.wait_finished(submitted.run, 30)
    reader = engine.follow(submitted.run)
    assert len(await anext(reader)) == 3
    await aged(engine, submitted.run)
    assert (await engine.upkeep.collect(0)).runs == 1
    with pytest.raises(NotFound, match="no run"):
        async with asyncio.timeout(30):
            await anext(reader)


async def test_the_inbox_leaves_out_what_is_deleted_meanwhile(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = document("b", "start ask", blocks={"ask": block("approval", title="?")})
    gone, stays = [(await engine.submit(asking)).run for _ in range(2)]
    for run in (gone, stays):
        await engine.wait_finished(run, 30)
    await engine.cancel(gone)
    async for _ in engine.follow(gone):
        pass
    count = engine.store.count_waits

    async def counted(*arguments: Any) -> Any:
        assert await engine.store.delete_runs([gone]) == [gone]
        return await count(*arguments)

    monkeypatch.setattr(engine.store, "count_waits", counted)
    page = await engine.waits.page(WaitFilter(status=None))
    assert [wait.run for wait in page.waits] == [stays]


@pytest.mark.parametrize("how", ["answer", "cancel"])
async def test_a_question_that_is_deleted_meanwhile_takes_no_answer(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    run = (await engine.submit(document("b", "start ask", blocks={"ask": block("approval", title="?")}))).run
    (wait,) = (await engine.wait_finished(run, 30)).waits
    assert wait.link is not None
    write = getattr(engine.store, f"{how}_wait")

    async def late(*arguments: Any) -> Any:
        await engine.cancel(run)
        async for _ in engine.follow(run):
            pass
        assert await engine.store.delete_runs([run]) == [run]
        return await write(*arguments)

    monkeypatch.setattr(engine.store, f"{how}_wait", late)
    monkeypatch.setattr(engine.parts.owned, "answer", None)
    with pytest.raises(NotFound):
        if how == "answer":
            await engine.answer(wait.link.rpartition("/")[2], {}, "approve")
        else:
            await engine.waits.cancel(run, wait.id)
