"""Updates of durable functions, with the process of the run killed at every commit: each request is carried out and
answered once, and a caller who asks again with its id gets the same answer."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import weft
from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.functions import blocks_of
from executor.blocks.types.registry import Registry
from executor.kernel.journal.codec import data_of
from executor.kernel.store.run_rows import EventFilter
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from executor.open.engine import Engine
from executor.open.testing.crashes import killer
from executor.open.testing.engines import BEGIN_MS, LEASE_MS, SECRET, ManualClock
from executor.open.testing.process import DONE, in_child
from weft import testing

pytestmark = pytest.mark.proof

outside = testing.Outside()
ITEMS = ("tea", "", "cup")  # the second is refused
ANSWERS = [1, "an item has a name", 2, 2]


@weft.step(effect="none")  # one that is lost is done again without a question
async def pack(item: str) -> str:
    outside.record(item)
    return item


@weft.durable(state=list[str])
async def basket() -> int:
    items: list[str] = []
    while True:
        weft.state(items)
        match await weft.first(add.next(), close.next()):
            case weft.First(0, asked) if not asked.value:
                await asked.refuse("an item has a name")
            case weft.First(0, asked):
                items.append(await pack(str(asked.value)))
                await asked.answer(len(items))
            case weft.First(_, asked):
                await asked.answer(len(items))
                return len(items)


@basket.query
def items(state: list[str]) -> list[str]:
    return state


@basket.update
def add(item: str) -> int:
    raise NotImplementedError


@basket.update
def close() -> int:
    raise NotImplementedError


class Caller:
    """A process with the engine: it starts the run, makes all requests, each with an id, and writes down what it
    receives. `nth`: of those for one run, each begins when the lease of the one before has lapsed."""

    def __init__(self, database: str, run: str, nth: int, received: Path, fault: Callable[[str], None] | None) -> None:
        self.database, self.run, self.nth, self.received, self.fault = database, run, nth, received, fault
        self.armed = False

    def point(self, name: str) -> None:
        if self.armed and self.fault is not None:
            self.fault(name)

    async def play(self) -> None:
        async with opened(basket, self.database, BEGIN_MS + self.nth * 2 * LEASE_MS, self.point) as engine:
            self.armed = True
            run = (await engine.submit(basket, idempotency_key=self.run)).run
            for n, item in enumerate(ITEMS):
                try:
                    answer: int | str = await engine.update(run, add, item, id=f"{n}")
                except weft.Refused as refused:
                    answer = refused.message
                self._write(n, answer)
            self._write(len(ITEMS), await engine.update(run, close, id="close"))
            view = await engine.wait_finished(run, 30)
            assert (view.status, view.output) == ("succeeded", 2), view
            self.armed = False
            records, _ = await engine.store.find_events(run, EventFilter(types=("update.answered",)))
            assert [data_of(record)["update"] for record in records] == ["0", "1", "2", "close"]
            assert await engine.query(items, run) == ["tea", "cup"]

    def _write(self, n: int, answer: int | str) -> None:
        with self.received.open("a") as file:
            file.write(json.dumps([n, answer]) + "\n")
            file.flush()
            os.fsync(file.fileno())


@asynccontextmanager
async def opened(
    flow: weft.Durable[..., Any], database: str, now_ms: int, fault: Callable[[str], None]
) -> AsyncIterator[Engine]:
    if database.startswith("postgres"):
        from executor.kernel.store.postgres.store import PostgresStore

        store: Store = PostgresStore(database, fault=fault)
    else:
        store = SQLiteStore(database, fault=fault)
    sandbox = Sandbox(threads=1)
    engine = await Engine.open(
        store,
        registry=Registry.load(blocks_of([flow], None), sandbox=sandbox),
        services=Services(sandbox=sandbox, http=GuardedClient()),
        secret=SECRET,
        clock=ManualClock(now_ms),
        lease_ms=LEASE_MS,
    )
    try:
        yield engine
    finally:
        await engine.close(grace_s=1)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("where", ["sqlite", "postgres"])
async def test_killed_at_every_commit(where: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    database = str(tmp_path / "weft.db") if where == "sqlite" else str(request.getfixturevalue("postgres"))
    nth = crashes = 0
    for when in ("before", "after"):
        for commit in range(1, 100):
            outside.clear()
            run, received = f"{when}-{commit}", tmp_path / f"received-{when}-{commit}"
            killed = await in_child(Caller(database, run, nth, received, killer(commit, when)).play, tmp_path)
            if killed != DONE:
                assert killed < 0, (tmp_path / "error").read_text()
                crashes += 1
                again = await in_child(Caller(database, run, nth + 1, received, None).play, tmp_path)
                assert again == DONE, f"{run}: {(tmp_path / 'error').read_text()}"
            nth += 2
            answered = [json.loads(line) for line in received.read_text().splitlines()]
            assert dict(answered) == dict(enumerate(ANSWERS)), run
            assert all(answer == ANSWERS[n] for n, answer in answered), f"{run}: another answer to the same request"
            packed = [effect.what for effect in outside.effects]
            assert sorted(set(packed)) == ["cup", "tea"], run
            assert len(packed) - 2 <= (killed != DONE), f"{run}: more than the step that was under way was done again"
            if killed == DONE:
                break
    print(f"{crashes} crashes on {where}", file=sys.stderr)
    assert crashes > 20
