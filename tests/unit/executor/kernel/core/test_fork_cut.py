"""Where a journal may be cut: never between two events of one step, never behind the end of the run."""

from __future__ import annotations

import pytest

from executor.kernel.core import facts as f
from executor.kernel.core.fork import fork_point
from tests.unit.executor.kernel.core.story import T0, Story, block, parallel


def cuts(s: Story) -> list[int]:
    return [fork_point(s.journal, seq) for seq in range(1, len(s.journal) + 1)]


def test_an_answer_and_what_it_decides_stay_together() -> None:
    s = Story({"ask": "yes:a no:b", "a": "", "b": ""})
    s.start()
    s.suspended("ask")
    s.answered("ask", "yes")
    told = [s.tell(event) for event in s.journal]
    assert told[3:] == ["run parks", "ask wait answered", "ask -> yes", "b pruned by ask", "a starts"]
    assert cuts(s) == [1, 2, 3, 4, 7, 7, 7, 8]


def test_a_failure_that_is_caught_takes_the_waits_of_its_branch_along() -> None:
    s = Story({"fan": parallel({"a": "", "b": "", "c": ""}, on_branch_error="continue")})
    s.start()
    s.sized("fan:start", 1)
    s.suspended("a@fan[0]")
    s.erred("b@fan[0]")
    told = [s.tell(event) for event in s.journal]
    assert told[-2:] == ["b@fan[0] fails, caught by branch fan[0]", "a@fan[0] wait cancelled"]
    assert cuts(s)[-2:] == [len(told), len(told)]


@pytest.mark.parametrize("end", ["cancel", "response", "stop"])
def test_the_end_of_a_run_is_cut_off(end: str) -> None:
    s = Story({"go": "a ask", "a": "", "ask": ""})
    s.start(stop_after="a" if end == "stop" else None)
    s.done("go")
    s.suspended("ask")
    before = len(s.journal)
    match end:
        case "cancel":
            s.cancel()
            s.erred("a")
        case "response":
            s.done("a", end_run=True)
        case _:
            s.done("a")
            before += 1  # that the block is done is not part of the end
    assert s.tell(s.journal[-1]).startswith("run ")
    assert fork_point(s.journal, len(s.journal)) == before


def test_what_runs_at_a_fork_starts_anew_without_being_counted() -> None:
    s = Story({"go": "a b", "a": block(max_attempts=2), "b": block(on_lost="ask")})
    s.start()
    s.done("go")
    s.erred("a", retryable=True, retry_at_ms=T0)
    assert s.feed(f.ForkMade(T0, "other", len(s.journal))) == ["RunForked", "b will retry", "a will retry"]
    assert s.outstanding() == ["timer a (3) +0", "timer b (2) +0"]
    assert s.feed(f.Recovered(T0)) == ["a starts again (3)", "b starts again (2)"]
    assert s.erred("a", retryable=True) == ["a fails"]
    assert s.lost("b") == ["b fails", "run failed"]  # the question is closed


def test_a_fork_calls_child_runs_anew() -> None:
    s = Story({"a": ""})
    s.start()
    s.suspended("a", "child")
    assert s.feed(f.ForkMade(T0, "other", 3)) == ["RunForked", "a wait answered", "a will retry"]
    assert s.feed(f.Recovered(T0)) == ["a starts again (2)"]
