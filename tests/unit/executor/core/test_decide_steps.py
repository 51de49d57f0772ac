"""Steps of a handler in the core: what a lost attempt, a retry, a wait and a fork make of them."""

from __future__ import annotations

from executor.core import facts as f
from executor.core.cut import fork_point
from executor.core.events import StepLost, WaitClosed
from tests.unit.executor.core.story import T0, Story, block

ASKED = f.WaitStep(2, "ok?", "hash")


def begun(max_attempts: int = 1) -> Story:
    """Block `a` runs, and has done its first step."""
    s = Story({"a": block("b", max_attempts=max_attempts), "b": ""})
    s.start()
    s.step("a", 1)
    s.step_done("a", 1)
    return s


def test_a_wait_that_is_a_step_enters_the_handler_again() -> None:
    s = begun()
    assert s.suspended("a", step=ASKED) == ["a step 2 begins", "a waits", "run parks"]
    assert s.answered("a", "yes") == ["a wait answered", "a step 2 ends", "a starts again (2)"]
    assert s.steps("a") == {1: "done", 2: "done"}
    assert s.commands() == ["run a (2)"]
    s.step("a", 3)
    s.step_done("a", 3)
    assert s.done("a") == ["a -> out", "b starts"]
    assert s.steps("a") == {}


def test_a_wait_that_fails_or_expires_is_a_failed_step() -> None:
    s = begun()
    s.suspended("a", step=ASKED)
    assert s.wait_failed("a") == ["a wait answered", "a step 2 fails", "a starts again (2)"]
    assert s.suspended("a", "signal", T0 + 5_000, step=f.WaitStep(3, "go", "hash"))[:2] == [
        "a step 3 begins",
        "a waits",
    ]
    assert s.timer("a", T0 + 5_000) == ["a wait expired", "a step 3 fails", "a starts again (3)"]
    s.suspended("a", "timer", T0 + 9_000, step=f.WaitStep(4, "nap", "hash"))
    assert s.timer("a", T0 + 9_000) == ["a wait fired", "a step 4 ends", "a starts again (4)"]
    s.suspended("a", "approval", T0 + 12_000, "skip", f.WaitStep(5, "more?", "hash"))
    assert s.timer("a", T0 + 12_000) == ["a wait expired", "a step 5 ends", "a starts again (5)"]
    assert s.steps("a") == {1: "done", 2: "failed", 3: "failed", 4: "done", 5: "done"}


def test_the_entry_waits_for_its_place() -> None:
    s = Story({"a": "", "b": ""}, max_concurrency=1)
    s.start()
    assert s.suspended("a", step=f.WaitStep(1, "ok?", "hash")) == ["a step 1 begins", "a waits", "b starts"]
    assert s.answered("a") == ["a wait answered", "a step 1 ends"]
    assert s.outstanding() == ["run b (1)", f"timer a (2) +{-T0}"]
    assert s.done("b") == ["b -> out", "a starts again (2)"]


def test_an_attempt_that_is_lost_loses_the_steps_that_were_under_way() -> None:
    s = begun()
    s.step("a", 2, "read")
    s.step("a", 3, "write")
    assert s.lost("a") == ["a step 2 lost, again", "a step 3 lost", "a will retry", "a starts again (2)"]
    assert s.steps("a") == {1: "done", 3: "lost"}
    asked = f.WaitStep(3, "step 3", "hash", lost=True)
    assert s.suspended("a", "attention", step=asked) == ["a waits", "run parks"]
    assert s.wait_retried("a") == ["a wait answered", "a step 3 lost, again", "a will retry", "a starts again (3)"]
    assert s.steps("a") == {1: "done"}


def test_a_retry_does_again_the_step_that_failed_last() -> None:
    s = begun(max_attempts=2)
    s.step("a", 2)
    s.step_done("a", 2, failed=True)
    s.step("a", 3)
    s.step_done("a", 3)
    s.step("a", 4)
    s.step_done("a", 4, failed=True)
    assert s.erred("a", retryable=True, retry_at_ms=T0) == ["a will retry", "a starts again (2)"]
    assert s.steps("a") == {1: "done", 2: "failed", 3: "done"}


def test_entries_after_a_wait_are_no_attempts_of_the_retry_policy() -> None:
    s = begun(max_attempts=2)
    for n in (2, 3):
        s.suspended("a", step=f.WaitStep(n, "ok?", "hash"))
        s.answered("a")
    assert s.erred("a", retryable=True, retry_at_ms=T0) == ["a will retry", "a starts again (4)"]
    assert s.erred("a", retryable=True) == ["a fails", "run failed"]


def test_a_cancelled_wait_enters_nothing() -> None:
    s = begun()
    s.suspended("a", step=ASKED)
    assert s.cancel() == ["run cancelling", "a wait cancelled", "run cancelled"]


def test_a_fork_does_again_what_was_under_way() -> None:
    s = begun()
    s.step("a", 2)
    assert s.forked() == ["RunForked", "a step 2 lost, again", "a will retry"]
    assert s.steps("a") == {1: "done"}
    s = begun()
    s.suspended("a", "child", step=ASKED)
    assert s.forked() == ["RunForked", "a wait answered", "a step 2 lost, again", "a will retry"]


def test_no_cut_between_the_end_of_a_wait_and_that_of_its_step() -> None:
    s = begun()
    s.suspended("a", step=ASKED)
    s.answered("a")
    closed = next(n for n, event in enumerate(s.journal, 1) if isinstance(event, WaitClosed))
    assert fork_point(s.journal, closed) == closed + 1
    s = begun()
    s.step("a", 2, "read")
    s.lost("a")
    lost = next(n for n, event in enumerate(s.journal, 1) if isinstance(event, StepLost))
    assert fork_point(s.journal, lost) == lost + 1
