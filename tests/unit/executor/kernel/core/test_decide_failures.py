"""What a failure does: retries, error edges, on_error, what catches it, and what stops when nothing does."""

from __future__ import annotations

from typing import Any

import pytest

from executor.kernel.core import events as e
from executor.kernel.core.decide_attempts import (
    DEFERRED_MAX,
    DEFERRED_PAUSE_MIN_MS,
    DEFERRED_TOTAL_MS,
    LOST_ATTEMPTS_MAX,
    LOST_TOGETHER_MAX,
)
from tests.support.core.generator import Block
from tests.unit.executor.kernel.core.story import T0, Story, block, loop, parallel


def test_a_retryable_error_is_retried_after_a_pause_and_holds_no_slot_meanwhile() -> None:
    s = Story({"a": block("b", max_attempts=3), "b": ""}, max_concurrency=1)
    s.start()
    assert s.erred("a", retryable=True, retry_at_ms=T0 + 700) == ["a will retry"]
    assert s.commands() == ["timer a (2) +700"]
    assert s.state.slots[0] == 0
    assert s.timer("a", T0 + 699) == []
    assert s.timer("a", T0 + 700) == ["a starts again (2)"]
    assert s.done("a") == ["a -> out", "b starts"]


def test_the_pauses_grow_and_are_the_same_in_every_replay() -> None:
    dues = []
    for _ in range(2):
        s = Story({"a": block(max_attempts=3)})
        s.start()
        s.erred("a", retryable=True)
        first = s.state.due_ms()
        assert first is not None
        s.timer("a", first)
        s.erred("a", retryable=True)
        second = s.state.due_ms()
        assert second is not None
        dues.append((first - T0, second - first))
    assert dues[0] == dues[1]
    assert 375 <= dues[0][0] <= 625  # 500 ms, give or take a quarter
    assert 750 <= dues[0][1] <= 1250


def test_when_no_attempt_is_left_the_run_fails() -> None:
    s = Story({"a": block("b", max_attempts=2), "b": ""})
    s.start()
    s.erred("a", retryable=True, retry_at_ms=T0)
    assert s.timer("a", T0) == []  # it was due at once and has started already
    assert s.erred("a", retryable=True) == ["a fails", "run failed"]


def test_a_final_error_is_not_retried() -> None:
    s = Story({"a": block("b", max_attempts=3), "b": ""})
    s.start()
    assert s.erred("a", retryable=False) == ["a fails", "run failed"]
    finished = s.journal[-1]
    assert isinstance(finished, e.RunFinished) and finished.error is not None
    assert (finished.error.code, finished.error.block) == ("boom", "a")


def test_a_retry_that_is_due_waits_for_a_slot() -> None:
    s = Story({"a": "b c", "b": block(max_attempts=2), "c": ""}, max_concurrency=1)
    s.start()
    s.done("a")
    assert s.erred("b", retryable=True, retry_at_ms=T0 + 10) == ["b will retry", "c starts"]
    assert s.timer("b", T0 + 10) == []
    assert s.done("c") == ["c -> out", "b starts again (2)"]


def test_a_wired_error_handle_takes_over_and_the_run_goes_on() -> None:
    s = Story({"a": "b error:alarm", "b": "", "alarm": ""})
    s.start()
    assert s.erred("a") == ["a fails -> error", "b pruned by a", "alarm starts"]
    assert s.done("alarm") == ["alarm -> out", "run succeeded"]


def test_a_success_prunes_the_error_path() -> None:
    s = Story({"a": "b error:alarm", "b": "", "alarm": ""})
    s.start()
    assert s.done("a") == ["a -> out", "alarm pruned by a", "b starts"]


def test_on_error_continue_goes_on_by_out() -> None:
    s = Story({"a": block("b", on_error="continue"), "b": ""})
    s.start()
    assert s.erred("a") == ["a fails -> out", "b starts"]


def test_a_failed_run_drains_what_runs_and_starts_nothing_new() -> None:
    s = Story({"a": "b c", "b": "", "c": "d", "d": ""})
    s.start()
    s.done("a")
    assert s.erred("b") == ["b fails"]
    assert s.commands() == []
    assert s.done("c") == ["c -> out", "run failed"]


def test_an_attempt_that_fails_while_the_run_drains_is_not_retried() -> None:
    s = Story({"a": "b c", "b": "", "c": block(max_attempts=3)})
    s.start()
    s.done("a")
    s.erred("b")
    assert s.erred("c", retryable=True) == ["c fails", "run failed"]


def test_on_failure_cancel_stops_what_runs() -> None:
    s = Story({"a": "b c", "b": "", "c": ""}, on_failure="cancel")
    s.start()
    s.done("a")
    assert s.erred("b") == ["b fails"]
    assert s.commands() == ["cancel c"]
    assert s.erred("c") == ["c fails", "run failed"]


def test_a_failure_closes_the_open_waits_of_the_run() -> None:
    s = Story({"a": "ask b", "ask": "", "b": ""})
    s.start()
    s.done("a")
    s.suspended("ask")
    assert s.erred("b") == ["b fails", "ask wait cancelled", "run failed"]


# --- failures inside containers --------------------------------------------------------------------------------------


def test_a_failure_in_a_body_fails_the_run_when_nobody_catches_it() -> None:
    s = Story({"l": loop({"a": ""}, "after"), "after": ""})
    s.start()
    s.sized("l:start", 1)
    assert s.erred("a@l#0") == ["a@l#0 fails", "run failed"]


def test_the_error_handle_of_a_container_catches_what_fails_in_it() -> None:
    s = Story({"l": loop({"a": "b", "b": ""}, "after error:alarm"), "after": "", "alarm": ""})
    s.start()
    s.sized("l:start", 3)
    s.done("a@l#0")
    assert s.erred("b@l#0") == [
        "b@l#0 fails, caught by container l#0",
        "l:end fails -> error",
        "after pruned by l:end",
        "alarm starts",
    ]
    assert s.done("alarm") == ["alarm -> out", "run succeeded"]


def test_a_container_that_is_given_up_drains_before_it_fails() -> None:
    s = Story({"fan": parallel({"a": "b", "b": ""}, "error:alarm", limit=2), "alarm": ""})
    s.start()
    s.sized("fan:start", 5)
    assert s.erred("a@fan[0]") == ["a@fan[0] fails, caught by container fan[0]"]
    assert s.done("a@fan[1]") == ["a@fan[1] -> out", "fan:end fails -> error", "alarm starts"]
    assert list(s.state.scopes) == [()]


def test_waits_in_a_container_that_is_given_up_are_closed() -> None:
    s = Story({"fan": parallel({"a": ""}, "error:alarm"), "alarm": ""})
    s.start()
    s.sized("fan:start", 2)
    s.suspended("a@fan[1]")
    assert s.erred("a@fan[0]") == [
        "a@fan[0] fails, caught by container fan[0]",
        "a@fan[1] wait cancelled",
        "fan:end fails -> error",
        "alarm starts",
    ]
    assert s.answered("a@fan[1]") == []


@pytest.mark.parametrize("mode", ["continue", "collect"])
def test_a_branch_may_fail_alone(mode: str) -> None:
    s = Story({"fan": parallel({"a": "b", "b": ""}, "after", on_branch_error=mode), "after": ""})
    s.start()
    s.sized("fan:start", 2)
    assert s.erred("a@fan[0]") == ["a@fan[0] fails, caught by branch fan[0]"]
    assert s.done("a@fan[1]") == ["a@fan[1] -> out", "b@fan[1] starts"]
    assert s.done("b@fan[1]") == ["b@fan[1] -> out", "fan:end leaves after 2", "after starts"]


def test_a_failed_branch_makes_room_for_the_next_once_it_has_drained() -> None:
    s = Story({"fan": parallel({"a": "", "b": ""}, limit=1, on_branch_error="continue")})
    s.start()
    s.sized("fan:start", 2)
    assert s.erred("a@fan[0]") == ["a@fan[0] fails, caught by branch fan[0]"]
    assert s.done("b@fan[0]") == ["b@fan[0] -> out", "fan opens 1", "a@fan[1] starts", "b@fan[1] starts"]


def test_the_innermost_catcher_wins() -> None:
    inner = loop({"a": ""}, "error:fix")
    s = Story({"fan": parallel({"l": inner, "fix": ""}, "error:alarm", on_branch_error="collect"), "alarm": ""})
    s.start()
    s.sized("fan:start", 1)
    s.sized("l:start@fan[0]", 1)
    assert s.erred("a@fan[0]/l#0") == [
        "a@fan[0]/l#0 fails, caught by container fan[0]/l#0",
        "l:end@fan[0] fails -> error",
        "fix@fan[0] starts",
    ]
    assert s.erred("fix@fan[0]")[0] == "fix@fan[0] fails, caught by branch fan[0]"


def test_a_second_failure_in_a_branch_that_drains_is_only_noted() -> None:
    s = Story({"fan": parallel({"a": "", "b": ""}, "error:alarm"), "alarm": ""})
    s.start()
    s.sized("fan:start", 1)
    s.erred("a@fan[0]")
    assert s.erred("b@fan[0]") == ["b@fan[0] fails", "fan:end fails -> error", "alarm starts"]


def test_a_start_sentinel_that_fails_takes_the_error_handle_and_prunes_its_end() -> None:
    s = Story({"fan": parallel({"a": ""}, "after error:alarm"), "after": "", "alarm": ""})
    s.start()
    assert s.erred("fan:start") == [
        "fan:start fails -> error",
        "fan:end pruned by fan:start",
        "after pruned by fan:end",
        "alarm starts",
    ]


def test_a_loop_test_that_raises_fails_the_loop() -> None:
    s = Story({"l": loop({"a": ""}, "after error:alarm"), "after": "", "alarm": ""})
    s.start()
    s.sized("l:start", 1)
    s.done("a@l#0")
    assert s.erred("l:end") == ["l:end fails -> error", "after pruned by l:end", "alarm starts"]


def test_a_failure_inside_a_branch_given_up_stops_nothing_outside_it() -> None:
    """on_failure cancel speaks of the run: a failure that is caught stops what runs beside it in there, no more."""
    fan = parallel({"a": "", "b": "", "c": ""}, on_branch_error="continue")
    s = Story({"go": "fan other", "fan": fan, "other": ""}, on_failure="cancel")
    s.start()
    s.done("go")
    s.sized("fan:start", 1)
    s.erred("a@fan[0]")
    assert s.commands() == ["cancel b@fan[0]", "cancel c@fan[0]"]
    assert s.erred("b@fan[0]") == ["b@fan[0] fails"]
    assert "cancel other" not in s.commands()
    assert s.erred("c@fan[0]") == ["c@fan[0] fails", "fan:end leaves after 1"]
    assert s.commands() == []
    assert s.done("other") == ["other -> out", "run succeeded"]


# --- lost attempts --------------------------------------------------------------------------------------------------


def test_a_lost_attempt_runs_again_and_does_not_count_as_a_failure() -> None:
    s = Story({"a": ""})
    s.start()
    for attempt in range(2, LOST_ATTEMPTS_MAX + 2):
        assert s.lost("a") == ["a will retry", f"a starts again ({attempt})"]
    assert s.lost("a") == ["a waits", "run parks"]
    lost = f"{LOST_ATTEMPTS_MAX} earlier attempts ended without a result"
    assert s.why("a") == ("needs_attention", ("waits for a decision about its lost attempt", lost))
    assert s.wait_retried("a") == ["a wait answered", "a will retry", f"a starts again ({LOST_ATTEMPTS_MAX + 2})"]
    assert s.lost("a") == ["a waits", "run parks"]


def test_what_is_lost_with_other_runs_is_repeated_for_longer() -> None:
    s = Story({"a": ""})
    s.start()
    for _ in range(LOST_ATTEMPTS_MAX + 1):
        assert s.lost("a", together=True)[0] == "a will retry"
    for _ in range(LOST_ATTEMPTS_MAX):
        assert s.lost("a")[0] == "a will retry"
    assert s.lost("a") == ["a waits", "run parks"]


def test_what_is_lost_again_and_again_is_asked_about_whoever_had_part_in_it() -> None:
    s = Story({"a": ""})
    s.start()
    for _ in range(LOST_TOGETHER_MAX):
        assert s.lost("a", together=True)[0] == "a will retry"
    assert s.lost("a", together=True) == ["a waits", "run parks"]


def asking(out: str = "", **more: Any) -> Block:
    return block(out, on_lost="ask", **more)


def test_a_lost_attempt_that_may_have_done_harm_waits_for_somebody_to_look() -> None:
    s = Story({"a": asking("b"), "b": ""})
    s.start()
    assert s.lost("a") == ["a waits", "run parks"]
    assert s.state.waits[s.attempt("a")[0]][1].kind == "attention"
    assert s.outstanding() == []
    assert s.answered("a") == ["a wait answered", "a -> out", "b starts"]


def test_a_lost_attempt_that_somebody_wants_again_is_not_counted() -> None:
    s = Story({"a": asking(max_attempts=2)})
    s.start()
    s.lost("a")
    assert s.wait_retried("a") == ["a wait answered", "a will retry", "a starts again (2)"]
    assert s.wait_retried("a") == []
    assert s.erred("a", retryable=True, retry_at_ms=T0) == ["a will retry", "a starts again (3)"]
    assert s.erred("a", retryable=True) == ["a fails", "run failed"]


def test_a_lost_attempt_that_somebody_gives_up_is_a_failure() -> None:
    s = Story({"a": asking("b error:c"), "b": "", "c": ""})
    s.start()
    s.lost("a")
    assert s.wait_failed("a") == ["a wait answered", "a fails -> error", "b pruned by a", "c starts"]


def test_on_lost_fail_asks_nobody() -> None:
    s = Story({"a": block("b error:c", on_lost="fail"), "b": "", "c": ""})
    s.start()
    assert s.lost("a") == ["a fails -> error", "b pruned by a", "c starts"]


def test_nobody_is_asked_when_the_run_is_being_given_up() -> None:
    s = Story({"go": "a b c", "a": asking(), "b": "", "c": asking()})
    s.start()
    s.done("go")
    assert s.lost("a") == ["a waits"]
    assert s.erred("b") == ["b fails", "a wait cancelled"]
    assert s.wait_retried("a") == []
    assert s.lost("c") == ["c fails", "run failed"]


def test_nobody_is_asked_when_the_run_is_cancelled() -> None:
    s = Story({"a": asking()})
    s.start()
    s.cancel()
    assert s.lost("a") == ["a fails", "run cancelled"]


def test_nobody_is_asked_in_a_branch_that_is_being_given_up() -> None:
    fan = parallel({"a": asking(), "b": "", "c": asking()}, on_branch_error="continue")
    s = Story({"fan": fan})
    s.start()
    s.sized("fan:start", 1)
    assert s.lost("a@fan[0]") == ["a@fan[0] waits"]
    assert s.erred("b@fan[0]") == ["b@fan[0] fails, caught by branch fan[0]", "a@fan[0] wait cancelled"]
    assert s.lost("c@fan[0]") == ["c@fan[0] fails", "fan:end leaves after 1", "run succeeded"]


def test_each_iteration_is_asked_for_by_itself() -> None:
    s = Story({"l": loop({"a": asking()})})
    s.start()
    s.sized("l:start", 2)
    assert s.lost("a@l#0") == ["a@l#0 waits", "run parks"]
    assert s.answered("a@l#0") == ["a@l#0 wait answered", "a@l#0 -> out", "l:end starts"]
    assert s.tested("l:end", again=True) == ["l opens 1", "a@l#1 starts"]
    assert s.lost("a@l#1") == ["a@l#1 waits", "run parks"]


def test_what_a_stopped_run_leaves_behind_asks_nobody() -> None:
    s = Story({"go": "a b", "a": asking(), "b": ""})
    s.start(stop_after="b")
    s.done("go")
    s.done("b")
    assert s.lost("a") == ["a waits", "a wait cancelled", "run succeeded"]


# --- waits that end badly, retries that are hastened -----------------------------------------------------------------


def test_a_wait_that_fails_is_retried_like_an_attempt_that_raised() -> None:
    s = Story({"a": block("b error:c", max_attempts=2), "b": "", "c": ""})
    s.start()
    assert s.suspended("a", "child") == ["a waits", "run parks"]
    assert s.wait_failed("a", retryable=True)[:2] == ["a wait answered", "a will retry"]
    due_ms = s.state.retries[s.attempt("a")[0]][1]
    assert s.timer("a", due_ms) == ["a starts again (2)"]
    assert s.suspended("a", "child") == ["a waits", "run parks"]
    assert s.wait_failed("a", retryable=True) == ["a wait answered", "a fails -> error", "b pruned by a", "c starts"]


def test_only_a_lost_attempt_can_be_wanted_again() -> None:
    s = Story({"a": ""})
    s.start()
    s.suspended("a", "child")
    assert s.wait_retried("a") == []


def test_a_retry_that_is_wanted_now_does_not_wait() -> None:
    s = Story({"a": block(max_attempts=2)})
    s.start()
    s.erred("a", retryable=True)
    assert s.retry_wanted("a") == ["a need not wait", "a starts again (2)"]
    assert s.retry_wanted("a") == []


def test_a_retry_that_is_wanted_now_still_needs_its_slot() -> None:
    s = Story({"go": "a b", "a": block(max_attempts=2), "b": ""}, max_concurrency=1)
    s.start()
    s.done("go")
    assert s.erred("a", retryable=True) == ["a will retry", "b starts"]
    assert s.retry_wanted("a") == ["a need not wait"]
    assert s.commands() == ["timer a (2) +0"]
    assert s.done("b") == ["b -> out", "a starts again (2)"]


def test_losses_leave_the_retries_of_the_policy_as_they_were() -> None:
    s = Story({"a": block(max_attempts=2)})
    s.start()
    s.lost("a")
    assert s.erred("a", retryable=True, retry_at_ms=T0) == ["a will retry", "a starts again (3)"]
    s.lost("a")
    assert s.erred("a", retryable=True) == ["a fails", "run failed"]


@pytest.mark.parametrize("container", [loop({"a": ""}), parallel({"a": ""})])
def test_a_lost_sentinel_runs_again(container: Block) -> None:
    s = Story({"l": container})
    s.start()
    assert s.lost("l:start") == ["l:start will retry", "l:start starts again (2)"]
    s.sized("l:start", 1)
    assert s.done("a@l#0" if container.kind == "loop" else "a@l[0]")


# --- attempts that do not count -------------------------------------------------------------------------------------


def test_an_attempt_that_was_asked_to_wait_does_not_count() -> None:
    s = Story({"a": block(max_attempts=2)})
    s.start()
    for attempt in (2, 3, 4):
        asked = s.at_ms + 5_000
        assert s.erred("a", retryable=True, retry_at_ms=asked, deferred="asked")[0] == "a will retry"
        assert s.state.due_ms() == asked
        assert s.timer("a", asked) == [f"a starts again ({attempt})"]
    assert s.why("a")[1][-1] == "3 earlier attempts was postponed and does not count"
    assert s.erred("a", retryable=True, retry_at_ms=s.at_ms) == ["a will retry", "a starts again (5)"]
    assert s.erred("a", retryable=True) == ["a fails", "run failed"], "two of them counted"


def test_retries_that_are_switched_off_stay_off_when_the_other_side_asks() -> None:
    s = Story({"a": block(max_attempts=1)})
    s.start()
    assert s.erred("a", retryable=True, retry_at_ms=T0 + 5_000, deferred="asked") == ["a fails", "run failed"]


def test_what_was_not_begun_is_begun_later_whatever_the_policy() -> None:
    s = Story({"a": block(max_attempts=1)})
    s.start()
    assert s.erred("a", retryable=True, deferred="not_begun") == ["a will retry"]
    due_ms = s.state.due_ms()
    assert due_ms is not None and due_ms > T0
    assert s.timer("a", due_ms) == ["a starts again (2)"]
    assert s.done("a") == ["a -> out", "run succeeded"]


def test_no_attempt_waits_for_ever() -> None:
    s = Story({"a": block(max_attempts=2)})
    s.start()
    for _ in range(DEFERRED_MAX):
        assert s.erred("a", retryable=True, retry_at_ms=s.at_ms, deferred="asked") == ["a will retry"]
        assert s.state.due_ms() == s.at_ms + DEFERRED_PAUSE_MIN_MS, "at once is a second later"
        s.timer("a", s.at_ms + DEFERRED_PAUSE_MIN_MS)
    asked = s.at_ms + 5_000
    assert s.erred("a", retryable=True, retry_at_ms=asked, deferred="asked")[0] == "a will retry"
    s.timer("a", asked)
    assert s.erred("a", retryable=True, retry_at_ms=asked, deferred="asked") == ["a fails", "run failed"]


def test_pauses_that_do_not_count_are_bounded_together() -> None:
    s = Story({"a": block(max_attempts=2)})
    s.start()
    for _ in range(2):  # the second one would be too much, so it counts, and the pause is kept all the same
        asked = s.at_ms + DEFERRED_TOTAL_MS * 2 // 3
        assert s.erred("a", retryable=True, retry_at_ms=asked, deferred="asked")[0] == "a will retry"
        assert s.timer("a", asked)
    assert s.erred("a", retryable=True, retry_at_ms=s.at_ms + 1, deferred="asked") == ["a will retry"]
    s.timer("a", s.at_ms + DEFERRED_PAUSE_MIN_MS)
    assert s.erred("a", retryable=True) == ["a fails", "run failed"]


def test_nothing_stays_of_a_branch_that_was_given_up_while_it_waited() -> None:
    s = Story({"fan": parallel({"a": block(max_attempts=2), "b": ""}, on_branch_error="continue")})
    s.start()
    s.sized("fan:start", 1)
    assert s.erred("a@fan[0]", retryable=True, retry_at_ms=T0 + 9_000, deferred="asked") == ["a@fan[0] will retry"]
    assert s.state.tries
    s.erred("b@fan[0]")
    assert not s.state.tries and not s.state.retries
