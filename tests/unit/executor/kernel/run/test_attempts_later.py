"""More attempts than begin in one pass of the event loop."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from compiler.keys import NodeKey
from executor.kernel.core import facts as f
from executor.kernel.process.observe import Doing
from executor.kernel.run.attempt import Keep
from executor.kernel.run.attempts import Attempts
from executor.kernel.run.results import Payload, Result
from executor.kernel.run.turns import STEPS_MAX
from tests.unit.executor.kernel.run.one_run import OneRun

MANY = 1_000
KEYS: list[NodeKey] = [((), number) for number in range(MANY)]


class Launcher:
    """Attempts end at once."""

    def __init__(self) -> None:
        self.began: list[Any] = []

    def type_of(self, key: NodeKey) -> str:
        return "set"

    def doing(self, key: NodeKey, attempt: int) -> Doing:
        return Doing("r", "w", str(key), attempt)

    def place_left(self, key: NodeKey, attempt: int) -> None:
        """None has a limit."""

    async def run(self, key: NodeKey, attempt: int, seq: int, keep: Keep) -> Result:
        self.began.append(key)
        return Result(f.NodeDone(0, key, attempt, "out"), Payload(b"null"))


@pytest.fixture
async def one() -> OneRun:
    return OneRun()


@pytest.fixture
def attempts(one: OneRun) -> Attempts:
    return Attempts("r", one.parts, one.arrivals)


def start_all(attempts: Attempts) -> Any:
    launcher: Any = Launcher()
    for key in KEYS:
        attempts.start(launcher, key, 1, seq=3)
    return launcher


async def until_all_began(attempts: Attempts) -> None:
    async with asyncio.timeout(60):
        while len(attempts):
            await asyncio.sleep(0)


async def test_they_wait_in_one_task_and_begin_in_order(one: OneRun, attempts: Attempts) -> None:
    launcher = start_all(attempts)
    assert 0 < len(launcher.began) <= STEPS_MAX
    assert len(attempts) == MANY - len(launcher.began)
    assert attempts.keys() == set(KEYS)
    assert len([task for task in asyncio.all_tasks() if task.get_name().startswith("r:")]) == 1

    async def step() -> None:
        await one.parts.turns.turn()
        launcher.began.append("a step of another run")

    other, counts = asyncio.create_task(step()), [len(launcher.began)]
    async with asyncio.timeout(60):
        while not other.done():
            await asyncio.sleep(0)
            counts.append(len(launcher.began))
    assert launcher.began == [*KEYS, "a step of another run"], "in the order in which they became ready"
    assert max(after - before for before, after in itertools.pairwise(counts)) <= STEPS_MAX
    assert one.facts() == [f.NodeDone(0, key, 1, "out") for key in KEYS]


async def test_a_second_crowd_begins_behind_the_first(attempts: Attempts) -> None:
    launcher = start_all(attempts)
    attempts.start(launcher, ((), MANY), 1, seq=4)
    await until_all_began(attempts)
    for key in KEYS:
        attempts.start(launcher, key, 2, seq=5)
    await until_all_began(attempts)
    assert launcher.began == [*KEYS, ((), MANY), *KEYS]


async def test_those_that_were_cancelled_do_not_begin(one: OneRun, attempts: Attempts) -> None:
    launcher = start_all(attempts)
    cancelled = [KEYS[500], *KEYS[MANY - 100 :]]
    for key in cancelled:
        attempts.cancel(key)
    await until_all_began(attempts)
    assert launcher.began == [key for key in KEYS if key not in cancelled]
    ended = {fact.key: fact for fact in one.facts() if isinstance(fact, f.NodeDone | f.NodeErred)}
    assert ended.keys() == set(KEYS) and len(one.facts()) == MANY
    erred = [fact for fact in ended.values() if isinstance(fact, f.NodeErred)]
    assert {fact.key for fact in erred} == set(cancelled)
    assert {fact.error.code for fact in erred} == {"cancelled"}


async def test_none_begins_when_the_run_has_left(one: OneRun, attempts: Attempts) -> None:
    launcher = start_all(attempts)
    began = list(launcher.began)
    attempts.cancel_all()
    for _ in range(5):
        await asyncio.sleep(0)
    assert launcher.began == began
    assert len(one.facts()) == len(began)
    assert len(asyncio.all_tasks()) == 1


async def test_one_that_begins_after_a_change_of_plan_is_of_the_plan_it_was_started_in(
    one: OneRun, attempts: Attempts
) -> None:
    launcher = start_all(attempts)
    before = len(launcher.began)
    attempts.rekey(lambda key: (key[0], key[1] + MANY))
    await until_all_began(attempts)
    assert launcher.began == KEYS
    assert one.facts()[before:] == [f.NodeDone(0, ((), number + MANY), 1, "out") for number in range(before, MANY)]
