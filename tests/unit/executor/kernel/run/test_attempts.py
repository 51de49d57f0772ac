"""Attempts under way: their results, their cancellation, and what becomes of them when the plan changes."""

from __future__ import annotations

import asyncio

import pytest

from compiler.keys import NodeKey
from executor.kernel.core import facts as f
from executor.kernel.run import attempts as module
from executor.kernel.run.attempt import Attempt, Host
from executor.kernel.run.attempts import Attempts
from executor.kernel.run.launch import Launcher
from executor.kernel.run.results import Payload, Result
from tests.unit.executor.kernel.run.one_run import OneRun

A: NodeKey = ((), 1)
B: NodeKey = ((), 2)


class Gated(Launcher):
    """Each attempt ends when its gate opens; cancelled, it takes until `cleaned` is set."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.gates: dict[NodeKey, asyncio.Event] = {A: asyncio.Event(), B: asyncio.Event()}
        self.cleaned = asyncio.Event()
        self.begun: dict[NodeKey, Attempt] = {}
        self.cancels = 0

    async def run(self, own: Attempt, turn: int = 0, count: int = 0) -> Result:
        key, number = own.started_as, own.number
        self.begun[key] = own
        try:
            await self.gates[key].wait()
        except asyncio.CancelledError:
            self.cancels += 1
            await self.cleaned.wait()
            return Result(f.NodePassed(0, key, number), Payload(b'"cancelled"'))
        return Result(f.NodeDone(0, key, number, "out"), Payload(b'"done"'))


@pytest.fixture
async def one() -> OneRun:
    return await OneRun.of("start a", "start b")


@pytest.fixture
async def launcher(one: OneRun) -> Gated:
    return Gated(Host(one.run, one.parts))


@pytest.fixture
def attempts(one: OneRun) -> Attempts:
    return Attempts("r", one.parts, one.arrivals)


async def passes() -> None:
    """What is ready has run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_result_arrives_and_wakes_the_loop(one: OneRun, attempts: Attempts, launcher: Gated) -> None:
    attempts.start(launcher, A, 1, seq=3)
    assert len(attempts) == 1
    assert attempts.keys() == {A}
    launcher.gates[A].set()
    await asyncio.wait_for(one.arrivals.changed.wait(), 30)
    assert one.facts() == [f.NodeDone(0, A, 1, "out")]
    assert len(attempts) == 0
    assert attempts.keys() == {A}, "its end is not decided yet"


async def test_an_attempt_that_waits_for_nothing_has_ended_when_it_has_started(
    one: OneRun, attempts: Attempts, launcher: Gated
) -> None:
    launcher.gates[A].set()
    attempts.start(launcher, A, 1, seq=3)
    assert one.facts() == [f.NodeDone(0, A, 1, "out")]
    assert len(attempts) == 0


async def test_a_cancelled_attempt_is_interrupted_once(one: OneRun, attempts: Attempts, launcher: Gated) -> None:
    attempts.start(launcher, A, 1, seq=3)
    await passes()
    attempts.cancel(A)
    await passes()
    attempts.cancel(A)
    attempts.cancel(B)  # has no attempt
    await passes()
    assert launcher.cancels == 1
    launcher.cleaned.set()
    await passes()
    assert one.facts() == [f.NodePassed(0, A, 1)]


async def test_one_that_was_cancelled_before_it_began_has_a_result(
    one: OneRun, attempts: Attempts, launcher: Gated
) -> None:
    attempts.refuse(A, 2)
    await passes()
    [fact] = one.facts()
    assert isinstance(fact, f.NodeErred)
    assert (fact.key, fact.attempt, fact.error.code) == (A, 2, "cancelled")
    assert launcher.begun == {}


async def test_one_that_does_not_stop_is_abandoned_and_the_next_one_is_left_alone(
    one: OneRun, attempts: Attempts, launcher: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CANCEL_GRACE_S", 0)
    attempts.start(launcher, A, 1, seq=3)
    await passes()
    attempts.cancel(A)
    await asyncio.wait_for(one.arrivals.changed.wait(), 30)
    [fact] = one.facts()
    assert isinstance(fact, f.NodeErred)
    assert "abandoned" in fact.error.message
    attempts.start(launcher, A, 2, seq=5)
    launcher.cleaned.set()  # the first one ends after all
    await passes()
    assert len(attempts) == 1
    assert f.NodePassed(0, A, 1) in one.facts()


async def test_after_a_change_of_plan_results_and_logs_have_the_new_keys(
    one: OneRun, attempts: Attempts, launcher: Gated
) -> None:
    there = {A: ((), 7), B: ((), 8)}
    attempts.start(launcher, A, 1, seq=3)
    attempts.start(launcher, B, 1, seq=3)
    await passes()
    launcher.gates[A].set()
    launcher.begun[A].keep("before", "log")
    await passes()
    attempts.rekey(lambda key: there[key])
    launcher.begun[B].keep("after", "log")
    assert attempts.keys() == {((), 7), ((), 8)}
    attempts.cancel(((), 8))
    launcher.cleaned.set()
    await passes()
    assert one.facts() == [f.NodeDone(0, ((), 7), 1, "out"), f.NodePassed(0, ((), 8), 1)]
    assert list(one.arrivals.logs) == [(((), 7), 1, "before", "log"), (((), 8), 1, "after", "log")]


async def test_all_are_cancelled_when_the_run_leaves(attempts: Attempts, launcher: Gated) -> None:
    attempts.start(launcher, A, 1, seq=3)
    attempts.start(launcher, B, 1, seq=3)
    await passes()
    attempts.cancel_all()
    await passes()
    assert launcher.cancels == 2
    assert len(attempts) == 0
    launcher.cleaned.set()
    await passes()
