"""Waits: durable pauses that hold nothing, end once, and never too early."""

from __future__ import annotations

import pytest

from executor.kernel.core import facts as f
from tests.unit.executor.kernel.core.story import T0, Story, block, parallel


def test_the_run_parks_when_nothing_runs_and_goes_on_by_the_answers_handle() -> None:
    s = Story({"ask": "approve:send reject:log", "send": "", "log": ""})
    s.start()
    assert s.suspended("ask") == ["ask waits", "run parks"]
    assert s.commands() == ["park"]
    assert s.answered("ask", "approve") == ["ask wait answered", "ask -> approve", "log pruned by ask", "send starts"]


def test_a_wait_holds_no_slot_and_the_rest_of_the_run_goes_on() -> None:
    s = Story({"a": "ask b", "ask": "", "b": "c", "c": ""}, max_concurrency=1)
    s.start()
    s.done("a")
    assert s.suspended("ask") == ["ask waits", "b starts"]
    assert s.done("b") == ["b -> out", "c starts"]
    assert s.done("c") == ["c -> out", "run parks"]


def test_a_wait_is_answered_once() -> None:
    s = Story({"ask": "b", "b": ""})
    s.start()
    s.suspended("ask")
    s.answered("ask")
    assert s.answered("ask") == []


def test_a_timer_fires_when_it_is_due_and_not_before() -> None:
    s = Story({"nap": "b", "b": ""})
    s.start()
    assert s.suspended("nap", "timer", T0 + 5000) == ["nap waits", "run parks until +5000"]
    assert s.commands() == ["timer nap (1) +5000", "park"]
    assert s.timer("nap", T0 + 4999) == []
    assert s.timer("nap", T0 + 5000) == ["nap wait fired", "nap -> out", "b starts"]
    assert s.timer("nap", T0 + 5001) == []


def test_a_short_timer_does_not_park_the_run() -> None:
    s = Story({"nap": ""})
    s.start()
    assert s.suspended("nap", "timer", T0 + 100) == ["nap waits"]


@pytest.mark.parametrize(
    ("on_expire", "then"),
    [
        ("fail", ["ask fails", "run failed"]),
        ("skip", ["ask expired", "no pruned by ask", "late pruned by ask", "go starts"]),
        ("continue", ["ask -> out", "no pruned by ask", "late pruned by ask", "go starts"]),
        ("reject", ["ask -> reject", "go pruned by ask", "late pruned by ask", "no starts"]),
        ("unwired", ["ask -> out", "no pruned by ask", "late pruned by ask", "go starts"]),
    ],
)
def test_an_approval_that_nobody_answers_expires_by_itself(on_expire: str, then: list[str]) -> None:
    s = Story({"ask": "go reject:no later:late", "go": "", "no": "", "late": ""})
    s.start()
    s.suspended("ask", "approval", T0 + 60_000, on_expire)
    assert s.timer("ask", T0 + 60_000) == ["ask wait expired", *then]


def test_an_expired_wait_may_take_the_error_handle() -> None:
    s = Story({"ask": "go error:alarm", "go": "", "alarm": ""})
    s.start()
    s.suspended("ask", "approval", T0 + 60_000)
    assert s.timer("ask", T0 + 60_000) == ["ask wait expired", "ask fails -> error", "go pruned by ask", "alarm starts"]


def test_an_answer_beats_an_expiry_that_comes_after_it() -> None:
    s = Story({"ask": "b", "b": ""})
    s.start()
    s.suspended("ask", "approval", T0 + 60_000)
    s.answered("ask")
    key, _ = s.attempt("ask")
    assert s.feed(f.TimerFired(T0 + 60_000, key, 1)) == []


def test_several_waits_end_in_any_order_each_by_itself() -> None:
    s = Story({"fan": parallel({"ask": "then", "then": ""})})
    s.start()
    s.sized("fan:start", 3)
    for branch in range(3):
        s.suspended(f"ask@fan[{branch}]")
    assert s.answered("ask@fan[2]") == ["ask@fan[2] wait answered", "ask@fan[2] -> out", "then@fan[2] starts"]
    assert s.answered("ask@fan[0]") == ["ask@fan[0] wait answered", "ask@fan[0] -> out", "then@fan[0] starts"]


def test_a_second_wait_on_the_same_path_is_like_the_first() -> None:
    s = Story({"one": "two", "two": ""})
    s.start()
    s.suspended("one")
    s.answered("one")
    assert s.suspended("two") == ["two waits", "run parks"]
    assert s.answered("two") == ["two wait answered", "two -> out", "run succeeded"]


def test_a_wait_after_a_retry_belongs_to_its_attempt() -> None:
    s = Story({"ask": block("b", max_attempts=2), "b": ""})
    s.start()
    s.erred("ask", retryable=True, retry_at_ms=T0)
    s.suspended("ask")
    key, attempt = s.attempt("ask")
    assert attempt == 2
    assert s.feed(f.WaitAnswered(T0, key, 1)) == []
    assert s.feed(f.WaitAnswered(T0, key, 2)) == ["ask wait answered", "ask -> out", "b starts"]
