"""Steps of a handler in the core: what a lost attempt, a retry, a wait and a fork make of them."""

from __future__ import annotations

from executor.kernel.core import facts as f
from executor.kernel.core.events import ErrorInfo, StepLost, WaitClosed, WaitKind, WaitOpened
from executor.kernel.core.fork import fork_point
from tests.unit.executor.kernel.core.story import T0, Story, block

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


def beside(n: int, kind: WaitKind = "child", due_ms: int | None = None) -> f.WaitBeside:
    return f.WaitBeside(f.WaitStep(n, f"run {n}", "hash"), kind, due_ms)


def side_by_side(s: Story, *more: f.WaitBeside) -> list[str]:
    """The handler of `a` waits for a child run as step 2, and for more."""
    return s.feed(f.NodeSuspended(s.at_ms, *s.attempt("a"), "child", step=ASKED, beside=more))


def ended(s: Story, number: int, failed: bool = False) -> list[str]:
    key, _ = s.attempt("a")
    error = ErrorInfo("boom", "it broke over there")
    return s.feed(f.WaitFailed(s.at_ms, key, number, error) if failed else f.WaitAnswered(s.at_ms, key, number))


def test_waits_side_by_side_enter_the_handler_once_when_the_last_is_over() -> None:
    s = begun()
    assert side_by_side(s, beside(3), beside(4)) == [
        "a step 2 begins", "a step 3 begins", "a step 4 begins", "a waits", "a waits", "a waits", "run parks",
    ]  # fmt: skip
    opened = [(e.attempt, e.step, e.beside) for e in s.journal if isinstance(e, WaitOpened)]
    assert opened == [(1, 2, False), (2, 3, True), (3, 4, True)]
    assert s.why("a") == ("waiting", ("waits for a child run to end",) * 3)
    assert ended(s, 3) == ["a wait answered", "a step 4 ends", "run parks"]
    assert ended(s, 3) == [], "it is over"
    assert ended(s, 1, failed=True) == ["a wait answered", "a step 2 fails", "run parks"]
    assert ended(s, 2) == ["a wait answered", "a step 3 ends", "a starts again (4)"]
    assert [e.left for e in s.journal if isinstance(e, WaitClosed)] == [2, 1, 0]
    assert s.steps("a") == {1: "done", 2: "failed", 3: "done", 4: "done"}


def test_waits_side_by_side_count_as_no_failed_attempts() -> None:
    s = begun(max_attempts=2)
    side_by_side(s, beside(3), beside(4))
    for number in (1, 2, 3):
        ended(s, number)
    assert s.erred("a", retryable=True)[0].startswith("a will retry"), "it is the first of two"
    assert s.timer("a", T0 + 10_000_000) == ["a starts again (5)"]
    assert s.erred("a", retryable=True)[0].startswith("a fails")


def test_each_wait_has_its_own_time() -> None:
    s = begun()
    side_by_side(s, beside(3, "form", T0 + 5_000), beside(4, "approval", T0 + 9_000))
    assert s.outstanding() == ["timer a (2) +5000", "timer a (3) +9000"]
    assert s.timer("a", T0 + 4_000, 2) == [], "too early"
    assert s.timer("a", T0 + 5_000, 2) == ["a wait expired", "a step 3 fails", "run parks until +9000"]
    assert s.state.due_ms() == T0 + 9_000
    ended(s, 3)
    assert s.state.due_ms() is None
    assert ended(s, 1) == ["a wait answered", "a step 2 ends", "a starts again (4)"]


def test_a_cancel_closes_all_of_them() -> None:
    s = begun()
    side_by_side(s, beside(3))
    assert s.cancel() == ["run cancelling", "a wait cancelled", "a wait cancelled", "run cancelled"]


def test_a_fork_starts_the_child_runs_anew_and_keeps_the_questions() -> None:
    s = begun()
    side_by_side(s, beside(3, "approval"), beside(4))
    assert s.forked() == [
        "RunForked",
        "a wait answered",
        "a step 2 lost, again",
        "a wait answered",
        "a step 4 lost, again",
    ]
    assert ended(s, 2) == ["a wait answered", "a step 3 ends", "a starts again (4)"]
    assert s.steps("a") == {1: "done", 3: "done"}


def test_a_fork_with_nothing_but_child_runs_enters_the_handler() -> None:
    s = begun(max_attempts=2)
    side_by_side(s, beside(3))
    told = s.forked()
    assert told[-1].startswith("a will retry") and told.count("a wait answered") == 2
    assert s.outstanding() == [f"timer a (3) +{s.at_ms - T0}"]
    assert s.feed(f.Recovered(s.at_ms)) == ["a starts again (3)"]


def test_a_fork_takes_all_waits_of_an_attempt_or_none() -> None:
    s = begun()
    side_by_side(s, beside(3), beside(4))
    opened = [n for n, e in enumerate(s.journal, 1) if isinstance(e, WaitOpened)]
    assert [fork_point(s.journal, seq) for seq in opened] == [opened[-1]] * 3
