"""Updates of durable functions, with the process of the run killed at every commit: each request is carried out and
answered once, and a caller who asks again with its id gets the same answer."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import weft
from executor.kernel.journal.codec import data_of
from executor.kernel.store.run_rows import EventFilter
from executor.open.testing.crashes import killer
from executor.open.testing.process import DONE, in_child
from tests.support.killed import Fault, Killed
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
            case weft.FirstCompleted(0, asked) if not asked.value:
                await asked.refuse("an item has a name")
            case weft.FirstCompleted(0, asked):
                items.append(await pack(str(asked.value)))
                await asked.answer(len(items))
            case weft.FirstCompleted(_, asked):
                await asked.answer(len(items))
                return len(items)


@basket.query
def items(state: list[str]) -> list[str]:
    return state


@basket.update
def add(item: str) -> int:
    raise NotImplementedError  # only its types count


@basket.update
def close() -> int:
    raise NotImplementedError  # only its types count


class Caller(Killed):
    """Starts the run, makes all requests, each with an id, and writes down what it receives."""

    def __init__(self, database: str, run: str, nth: int, received: Path, fault: Fault | None) -> None:
        super().__init__(database, run, nth, fault)
        self.received = received

    async def play(self) -> None:
        async with self.engine(basket) as engine:
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
