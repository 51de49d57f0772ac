"""Handlers that leave and are entered at the end of each wait, and may run while others are open."""

from __future__ import annotations

import pytest

from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.decide_attempts import LOST_ATTEMPTS_MAX
from executor.kernel.core.fork import fork_point
from executor.kernel.core.state import State
from executor.kernel.store.formats import FORMAT, SINCE
from tests.support.snapshots import content, restored
from tests.unit.executor.kernel.core.story import T0, Story, block, parallel


def opens(n: int, kind: e.WaitKind = "form", due_ms: int | None = None, on_expire: str = "fail") -> f.WaitBeside:
    return f.WaitBeside(f.WaitStep(n, f"wait {n}", "hash"), kind, due_ms, on_expire)


def asks(n: int) -> f.WaitBeside:
    """Return the question about the outcome of step `n`."""
    return f.WaitBeside(f.WaitStep(n, f"step {n}", "hash", lost=True), "attention")


def waiting(*more: f.WaitBeside, **policy: object) -> Story:
    """Block `a` has done step 1, and waits for steps 2 and 3, and for more."""
    s = Story({"a": block("b", **policy), "b": ""})
    s.start()
    s.step("a", 1)
    s.step_done("a", 1)
    s.left("a", opens(2), opens(3), *more)
    return s


def seq_of(s: Story, type: type[e.Event]) -> int:
    """The last one."""
    return max(n for n, event in enumerate(s.journal, 1) if isinstance(event, type))


def test_a_handler_is_entered_when_the_first_of_its_waits_ends() -> None:
    s = Story({"a": "b", "b": ""})
    s.start()
    told = s.left("a", opens(1, "signal"), opens(2, "timer", T0 + 50_000))
    assert told == ["a step 1 begins", "a step 2 begins", "a waits", "a waits", "a leaves", "run parks until +50000"]
    assert s.outstanding() == ["timer a (2) +50000"]
    assert s.why("a")[0] == "waiting" and len(s.why("a")[1]) == 2
    assert s.ended("a", 1) == ["a wait answered", "a step 1 ends", "a starts again (3)"]
    assert s.commands() == ["run a (3)"]
    assert s.left("a", drops=(2,)) == [
        "a wait cancelled", "a fails", "run failed"
    ], "it would wait for ever"  # fmt: skip
    error = s.journal[-1].error  # type: ignore[union-attr]  # the last event is run.finished
    assert error is not None and error.code == "waits_for_nothing"


def test_it_runs_while_others_are_open_and_ends_with_them() -> None:
    s = waiting()
    s.ended("a", 3)
    s.step("a", 4)
    s.step_done("a", 4)
    assert s.done("a") == ["a wait cancelled", "a -> out", "b starts"]
    assert s.state.tries == {} and s.state.waits == {}


def test_a_wait_that_ends_while_it_runs_enters_it_when_it_has_left() -> None:
    s = waiting(opens(4))
    s.ended("a", 2)
    assert s.ended("a", 3) == ["a wait answered", "a step 3 ends"]
    assert s.left("a") == ["a leaves, to be entered at once", "a starts again (5)"]
    assert s.left("a") == ["a leaves", "run parks"], "once"


def test_it_is_not_entered_again_for_what_it_has_received() -> None:
    s = waiting(opens(4), opens(5))
    s.ended("a", 2)
    s.ended("a", 3)
    received = seq_of(s, e.StepFinished)
    assert s.left("a", received_seq=received) == ["a leaves", "run parks"]
    s.ended("a", 4)
    s.ended("a", 5)
    assert s.left("a", received_seq=received)[-1] == "a starts again (7)", "it has received the one before"


def test_it_opens_and_closes_waits_while_it_runs() -> None:
    s = Story({"a": block("b"), "b": ""})
    s.start()
    s.step("a", 1)
    assert s.waits("a", opens(2), opens(3, "timer", T0 + 50_000)) == [
        "a step 2 begins", "a step 3 begins", "a waits", "a waits",
    ]  # fmt: skip
    assert s.commands() == ["timer a (3) +50000"] and s.why("a")[0] == "running"
    assert s.ended("a", 2) == ["a wait answered", "a step 2 ends"], "it runs"
    received = seq_of(s, e.StepFinished)
    assert s.waits("a", opens(4), drops=(3,)) == ["a step 4 begins", "a waits", "a wait cancelled"]
    assert s.lost("a")[-2:] == ["a will retry", "a starts again (5)"], "no wait has the number of an attempt"
    assert s.left("a", opens(5), received_seq=received) == ["a step 5 begins", "a waits", "a leaves", "run parks"]
    assert s.state.waits[s.attempt("a")[0]].keys() == {4, 5}
    assert s.ended("a", 4)[-1] == "a starts again (6)"
    assert s.waits("a", opens(6)) == ["a step 6 begins", "a waits"]
    assert s.left("a", opens(7)) == ["a step 7 begins", "a waits", "a leaves", "run parks"]
    assert s.ended("a", 7)[-1] == "a starts again (9)"


def test_waits_are_no_failed_attempts() -> None:
    s = Story({"a": block("b", max_attempts=2), "b": ""})
    s.start()
    s.waits("a", opens(1), opens(2))
    assert s.erred("a", retryable=True) == ["a will retry"]
    due_ms = s.state.due_ms()
    assert due_ms is not None and s.timer("a", due_ms, 4) == ["a starts again (4)"]
    assert s.erred("a", retryable=True)[-2:] == ["a fails", "run failed"]


def test_no_wait_opens_for_one_that_is_stopped_or_over() -> None:
    s = waiting()
    assert s.feed(f.HandlerWaits(T0, s.attempt("a")[0], 1, (opens(9),))) == [], "it has left"
    s.ended("a", 2)
    s.cancel()
    assert s.waits("a", opens(9)) == []


def test_an_attempt_that_is_lost_keeps_its_waits() -> None:
    s = waiting()
    s.ended("a", 2)
    s.step("a", 4, "read")
    s.step("a", 5, "write")
    assert s.lost("a") == ["a step 4 lost, again", "a step 5 lost", "a will retry", "a starts again (4)"]
    assert s.steps("a") == {1: "done", 2: "done", 3: "begun", 5: "lost"}
    assert s.left("a", asks(5)) == ["a waits", "a leaves", "run parks"]
    assert s.ended("a", 3)[-1] == "a starts again (5)"


def test_its_own_steps_enter_nothing() -> None:
    s = waiting()
    s.ended("a", 2)
    s.step("a", 4)
    s.step_done("a", 4)
    assert s.left("a") == ["a leaves", "run parks"]


def test_waits_and_attempts_have_numbers_of_their_own() -> None:
    s = waiting(opens(4))
    s.ended("a", 2)
    s.left("a", opens(5), opens(6))
    assert s.state.waits[s.attempt("a")[0]].keys() == {2, 3, 4, 5}
    assert s.ended("a", 6)[-1] == "a starts again (6)"
    assert s.left("a") == ["a leaves", "run parks"]
    assert s.ended("a", 3)[-1] == "a starts again (7)"


def test_entries_are_no_failed_attempts_and_a_retry_keeps_the_waits() -> None:
    s = waiting(max_attempts=2)
    s.ended("a", 2)
    assert s.erred("a", retryable=True) == ["a will retry"]
    due_ms = s.state.due_ms()
    assert due_ms is not None and s.outstanding() == [f"timer a (4) +{due_ms - T0}"]
    assert s.ended("a", 3) == ["a wait answered", "a step 3 ends"], "the pause is not over"
    assert s.timer("a", due_ms, 4) == ["a starts again (4)"]
    assert s.erred("a", retryable=True) == ["a fails", "run failed"]


def test_a_failure_closes_the_waits_first() -> None:
    s = waiting()
    s.ended("a", 2)
    assert s.erred("a") == ["a wait cancelled", "a fails", "run failed"]


def test_a_retry_keeps_the_ends_of_waits() -> None:
    s = waiting(max_attempts=3)
    s.ended("a", 2, failed=True)
    assert s.left("a") == ["a leaves", "run parks"]
    s.ended("a", 3, failed=True)
    s.erred("a", retryable=True, retry_at_ms=T0)
    assert s.steps("a") == {1: "done", 2: "failed", 3: "failed"}, "the attempt may have received them or not"


def test_a_pause_is_over_at_its_time_or_when_a_wait_ends() -> None:
    s = waiting()
    s.ended("a", 2)
    assert s.left("a", due_ms=T0 + 60_000) == ["a leaves", "run parks until +60000"]
    assert "timer a (4) +60000" in s.commands()
    assert s.outstanding() == ["timer a (4) +60000"]
    assert s.timer("a", T0 + 50_000, 4) == [], "too early"
    assert s.timer("a", T0 + 60_000, 4) == ["a starts again (4)"]
    s.left("a", due_ms=T0 + 90_000)
    assert s.ended("a", 3)[-1] == "a starts again (5)"
    assert s.left("a", due_ms=T0 + 90_000)[-1] == "run parks until +90000", "a pause alone is enough"


def test_a_pause_can_be_hastened() -> None:
    s = waiting()
    s.ended("a", 2)
    s.left("a", due_ms=T0 + 60_000)
    assert s.feed(f.RetryWanted(s.at_ms, s.attempt("a")[0], 4)) == ["a need not wait", "a starts again (4)"]


def test_a_wait_that_is_not_needed_closes_and_its_end_is_stale() -> None:
    s = waiting(opens(4, "child"))
    s.ended("a", 2)
    assert s.left("a", drops=(3, 4, 2, 99))[:2] == ["a wait cancelled", "a wait cancelled"]  # fmt: skip
    s = waiting()
    s.ended("a", 2)
    told = s.left("a", opens(4), drops=(3,))
    assert told == ["a step 4 begins", "a waits", "a wait cancelled", "a leaves", "run parks"]
    assert s.feed(f.WaitAnswered(T0, s.attempt("a")[0], 2)) == []


def test_losses_count_only_without_progress() -> None:
    s = Story({"a": block("b"), "b": ""})
    s.start()
    for n in range(1, 3 * LOST_ATTEMPTS_MAX):
        s.step("a", n, "read")
        s.step_done("a", n)
        assert s.lost("a")[-1].startswith("a starts again")
    for _ in range(LOST_ATTEMPTS_MAX - 1):
        assert s.lost("a")[-1].startswith("a starts again")
    assert s.lost("a") == ["a waits", "run parks"]


# --- what became of a step, or of an attempt ---


def with_a_lost_step() -> Story:
    s = waiting()
    s.ended("a", 2)
    s.step("a", 4)
    s.lost("a")
    s.left("a", asks(4))
    return s


def test_a_question_about_a_step_stands_beside_other_waits() -> None:
    s = with_a_lost_step()
    assert s.why("a")[0] == "needs_attention"
    s.ended("a", 3)
    assert s.left("a") == ["a leaves", "run parks"]
    assert s.ended("a", 4) == ["a wait answered", "a step 4 ends", "a starts again (6)"]


def test_a_step_that_is_to_be_done_again_enters_the_handler() -> None:
    s = with_a_lost_step()
    key, _ = s.attempt("a")
    number = max(s.state.waits[key])
    assert s.feed(f.WaitRetried(T0, key, number)) == ["a wait answered", "a step 4 lost, again", "a starts again (5)"]
    assert s.steps("a") == {1: "done", 2: "done", 3: "begun"}


def test_an_answer_that_comes_while_it_runs_enters_it_again() -> None:
    for again in (True, False):
        s = with_a_lost_step()
        s.ended("a", 3)
        key, number = s.attempt("a")[0], 4
        s.feed(f.WaitRetried(T0, key, number) if again else f.WaitAnswered(T0, key, number))
        assert s.left("a") == ["a leaves, to be entered at once", "a starts again (6)"]


def test_a_question_about_the_attempt_leaves_the_waits_open_and_holds_it_back() -> None:
    s = waiting(on_lost="ask")
    s.ended("a", 2)
    assert s.lost("a") == ["a waits", "run parks"]
    assert s.ended("a", 3) == ["a wait answered", "a step 3 ends", "run parks"], "not before the answer"
    assert s.wait_retried("a") == ["a wait answered", "a will retry", "a starts again (4)"]
    assert s.left("a", opens(5))[-2:] == ["a leaves", "run parks"]


def test_code_that_does_not_fit_holds_it_back_until_it_is_tried_again() -> None:
    s = waiting(max_attempts=2)
    s.ended("a", 2)
    assert s.feed(f.AttemptLost(T0, *s.attempt("a"), reason="code")) == ["a waits", "run parks"]
    asked = s.journal[-2]
    assert isinstance(asked, e.WaitOpened) and (asked.kind, asked.reason) == ("attention", "code")
    assert "waits for code that fits the run" in s.why("a")[1]
    assert s.ended("a", 3) == ["a wait answered", "a step 3 ends", "run parks"], "not before the answer"
    assert s.feed(f.WaitRetried(T0, asked.key, asked.attempt))[1:] == ["a will retry", "a starts again (4)"]
    assert s.state.tries[asked.key].lost == 0
    assert s.erred("a", retryable=True)[0] == "a will retry", "nothing of this is a failed attempt"


@pytest.mark.parametrize("failed", [False, True])
def test_an_answer_about_the_attempt_decides_the_block_and_closes_its_waits(failed: bool) -> None:
    s = waiting(on_lost="ask")
    s.ended("a", 2)
    s.lost("a")
    key = s.attempt("a")[0]
    error = e.ErrorInfo("attempt_lost", "given up")
    told = s.feed(f.WaitFailed(T0, key, 3, error) if failed else f.WaitAnswered(T0, key, 3))
    assert told[:2] == ["a wait cancelled", "a wait answered"]
    assert told[2:] == (["a fails", "run failed"] if failed else ["a -> out", "b starts"])


def test_a_handler_that_has_left_before_leaves_in_any_way() -> None:
    s = waiting()
    s.ended("a", 2)
    told = s.suspended("a", "signal", step=f.WaitStep(4, "go", "hash"))
    assert told == ["a step 4 begins", "a waits", "a leaves", "run parks"]
    assert s.ended("a", 3)[-1] == "a starts again (4)"


# --- ends from outside ---


def test_a_cancel_closes_the_waits_of_a_handler_that_runs() -> None:
    s = waiting()
    s.ended("a", 2)
    assert s.cancel() == ["run cancelling", "a wait cancelled"]
    assert s.left("a", opens(4)) == ["a fails", "run cancelled"]


def test_a_cancel_of_one_that_is_to_be_tried_again() -> None:
    s = waiting(max_attempts=2)
    s.ended("a", 2)
    s.erred("a", retryable=True)
    assert s.cancel() == ["run cancelling", "a wait cancelled", "run cancelled"]


@pytest.mark.parametrize("state", ["runs", "waits", "retries"])
def test_a_branch_that_is_given_up_drains(state: str) -> None:
    fan = parallel({"a": block(max_attempts=2), "b": ""}, limit=2, on_branch_error="continue")
    s = Story({"fan": fan})
    s.start()
    s.sized("fan:start", 1)
    s.left("a@fan[0]", opens(1), opens(2), opens(3))
    if state != "waits":
        s.ended("a@fan[0]", 1)
    if state == "retries":
        s.erred("a@fan[0]", retryable=True)
    told = s.erred("b@fan[0]")
    if state == "runs":
        assert "fan:end leaves after 1" not in told
        told = s.left("a@fan[0]", opens(4))
    assert told[-2:] == ["fan:end leaves after 1", "run succeeded"]


def test_a_fork_enters_it_once_whether_it_runs_or_waits() -> None:
    s = waiting(opens(4, "child"), opens(5, "child"))
    assert s.forked() == [
        "RunForked", "a wait answered", "a step 4 lost, again", "a wait answered", "a step 5 lost, again",
    ]  # fmt: skip
    assert s.feed(f.Recovered(T0)) == ["a starts again (5)"]
    assert s.steps("a") == {1: "done", 2: "begun", 3: "begun"}
    s = waiting(opens(4, "child"))
    s.ended("a", 2)
    s.step("a", 5)
    assert s.forked() == [
        "RunForked", "a step 5 lost, again", "a will retry", "a wait answered", "a step 4 lost, again",
    ]  # fmt: skip
    assert s.feed(f.Recovered(T0)) == ["a starts again (5)"]


def test_a_fork_is_cut_after_all_that_belongs_to_a_leave_or_an_end() -> None:
    s = waiting(opens(4))
    left = seq_of(s, e.NodeLeft)
    assert {fork_point(s.journal, seq) for seq in range(left - 6, left + 1)} == {left}
    s.ended("a", 2)
    before = len(s.journal)
    s.left("a", opens(5), drops=(3,))
    assert {fork_point(s.journal, seq) for seq in range(before + 1, before + 5)} == {before + 4}
    s.ended("a", 4)
    before = len(s.journal)
    s.done("a")
    assert fork_point(s.journal, before + 1) == before + 2
    s = waiting()
    s.ended("a", 2)
    before = len(s.journal)
    s.done("a", end_run=True)
    assert fork_point(s.journal, len(s.journal)) == before


def test_a_snapshot_has_all_of_it() -> None:
    s = waiting(opens(4))
    s.ended("a", 2)
    s.ended("a", 3)
    again: State = restored(s.plan, s.state)
    assert content(again) == content(s.state)
    ((_, tries),) = again.tries.items()
    assert tries.each and tries.news_seq == tries.by_n[3].finished_seq


def test_its_runs_are_not_for_the_version_before() -> None:
    assert SINCE["node.left"] == FORMAT
