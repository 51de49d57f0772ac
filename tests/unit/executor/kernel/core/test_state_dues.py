from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.shapes import container
from compiler.keys import NodeKey
from compiler.plan import Retry
from executor.kernel.core import facts as f
from executor.kernel.core import state as dues
from executor.kernel.core.decide import decide
from executor.kernel.core.events import ErrorInfo
from executor.kernel.core.state import State, Wait
from tests.support.cost import no_collector

A: NodeKey = ((), 1)
B: NodeKey = ((), 2)
C: NodeKey = ((), 3)


def retry(state: State, key: NodeKey, due_ms: int, attempt: int = 2, inline: bool = False) -> None:
    state.retries[key] = (attempt, due_ms)
    state.dues.add_retry(state, key, attempt, due_ms, inline)


def wait(state: State, key: NodeKey, due_ms: int) -> None:
    state.waits[key] = {1: Wait(1, "timer", due_ms, "fail")}
    state.dues.add_wait(state, key, 1, due_ms)


def test_the_first_of_retries_and_waits() -> None:
    state = State()
    assert state.due_ms() is None
    retry(state, A, 30)
    wait(state, B, 20)
    retry(state, C, 10, inline=True)
    assert state.due_ms() == 10
    del state.retries[C]
    assert state.due_ms() == 20
    del state.waits[B]
    assert state.due_ms() == 30


def test_due_retries_come_in_the_order_of_their_time_and_then_of_their_key() -> None:
    state = State()
    for key, due_ms in ((C, 10), (A, 20), (B, 10)):
        retry(state, key, due_ms, inline=key == B)
    assert state.dues.pop_retry(state, 9, inline_only=False) is None
    assert [state.dues.pop_retry(state, 20, inline_only=False) for _ in range(4)] == [
        (10, B, 2),
        (10, C, 2),
        (20, A, 2),
        None,
    ]


def test_without_slots_only_inline_nodes_are_looked_at_and_others_are_put_back() -> None:
    state = State()
    retry(state, A, 10)
    retry(state, B, 20, inline=True)
    assert state.dues.pop_retry(state, 20, inline_only=True) == (20, B, 2)
    assert state.dues.pop_retry(state, 20, inline_only=True) is None
    due = state.dues.pop_retry(state, 20, inline_only=False)
    assert due == (10, A, 2)
    state.dues.put_back(due, inline=False)
    assert state.due_ms() == 10


def test_one_that_has_another_time_by_now_counts_once() -> None:
    state = State()
    retry(state, A, 100)
    retry(state, A, 10)
    assert state.dues.pop_retry(state, 1_000, inline_only=False) == (10, A, 2)
    del state.retries[A]
    assert state.dues.pop_retry(state, 1_000, inline_only=False) is None


def test_what_is_over_is_not_kept() -> None:
    state = State()
    for number in range(10 * dues.COMPACT_MIN):
        retry(state, ((), number), 1_000 - number)
        wait(state, ((), number), 1_000 - number)
        del state.retries[((), number)], state.waits[((), number)]
    assert len(state.dues._retries or ()) <= dues.COMPACT_MIN + 1
    assert len(state.dues._waits or ()) <= dues.COMPACT_MIN + 1


def _calls(work: Callable[[], Any]) -> int:
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1

    with no_collector():
        sys.setprofile(count)
        try:
            work()
        finally:
            sys.setprofile(None)
    return calls


def _branches(count: int, retried: bool) -> None:
    """Branches of a parallel fail one after the other, or are retried once."""
    plan = container("parallel", 1, Retry(2 if retried else 1), on_branch_error="collect")
    state, now_ms = State.new(plan), 0
    decide(plan, state, f.StartRequested(now_ms, "r"))
    decide(plan, state, f.RegionSizeKnown(now_ms, ((), 0), 1, count))
    for _ in range(2 if retried else 1):
        for key, attempt in list(state.running.items()):
            decide(plan, state, f.NodeErred(now_ms, key, attempt, ErrorInfo("boom", "boom", retried)))
        for key, (attempt, due_ms) in sorted(state.retries.items(), key=lambda retry: retry[1]):
            now_ms = max(now_ms, due_ms)
            decide(plan, state, f.TimerFired(now_ms, key, attempt))
    assert state.ended == "succeeded" and not state.retries and not state.aborts


@pytest.mark.parametrize("retried", [False, True])
def test_branches_that_fail_cost_the_same_however_many_there_are(retried: bool) -> None:
    few, many = (_calls(lambda count=count: _branches(count, retried)) / count for count in (50, 400))  # type: ignore[misc]
    assert many < 1.3 * few
