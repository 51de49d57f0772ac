"""Runs as a whole: how they end, stop half way, start half way, and go on after a crash."""

from __future__ import annotations

import msgspec

from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.decide import decide
from executor.kernel.core.evolve import fold
from tests.support.snapshots import encode
from tests.unit.executor.kernel.core.story import T0, Story, block, loop, parallel


def test_cancel_starts_nothing_new_stops_what_runs_and_closes_waits() -> None:
    s = Story({"a": "ask b", "ask": "", "b": "c", "c": ""})
    s.start()
    s.done("a")
    s.suspended("ask")
    assert s.cancel() == ["run cancelling", "ask wait cancelled"]
    assert s.commands() == ["cancel b"]
    assert s.cancel() == []
    assert s.done("b") == ["b -> out", "run cancelled"]


def test_cancel_of_a_run_that_only_waits_ends_it_at_once() -> None:
    s = Story({"ask": ""})
    s.start()
    s.suspended("ask")
    assert s.cancel() == ["run cancelling", "ask wait cancelled", "run cancelled"]


def test_cancel_drops_retries() -> None:
    s = Story({"a": block(max_attempts=2)})
    s.start()
    s.erred("a", retryable=True, retry_at_ms=T0 + 60_000)
    assert s.cancel() == ["run cancelling", "run cancelled"]
    assert s.outstanding() == []


def test_a_run_that_must_end_fails_with_the_reason() -> None:
    s = Story({"a": "b", "b": ""})
    s.start()
    error = e.ErrorInfo("run_timeout", "the run took longer than 60 s")
    assert s.feed(f.RunAborted(T0, error)) == ["run cancelling"]
    assert s.commands() == ["cancel a"]
    assert s.erred("a") == ["a fails", "run failed"]
    assert s.journal[-1] == e.RunFinished("failed", error)


def test_a_response_ends_the_run_at_once() -> None:
    s = Story({"a": "slow ask reply", "slow": "", "ask": "", "reply": "after", "after": ""})
    s.start()
    s.done("a")
    s.suspended("ask")
    lines = s.done("reply", end_run=True)
    assert lines[0] == "reply -> out and ends the run"
    assert lines[-2:] == ["ask wait cancelled", "run succeeded"]
    assert "after starts" not in lines
    assert s.done("slow") == []


def test_a_run_that_continues_as_new_says_so_before_it_ends() -> None:
    s = Story({"a": "again", "again": ""})
    s.start()
    s.done("a")
    assert s.done("again", end_run=True, as_new=True) == [
        "again continues as new",
        "again -> out and ends the run",
        "run succeeded",
    ]
    s = Story({"a": "b again", "b": "", "again": ""})
    s.start()
    s.done("a")
    s.erred("b")
    assert s.done("again", end_run=True, as_new=True) == ["again -> out", "run failed"]


def test_a_response_in_a_run_that_has_failed_comes_too_late() -> None:
    s = Story({"a": "b reply", "b": "", "reply": ""})
    s.start()
    s.done("a")
    s.erred("b")
    assert s.done("reply", end_run=True) == ["reply -> out", "run failed"]


def test_stop_after_a_block_drains_and_succeeds() -> None:
    s = Story({"a": "b c", "b": "d", "c": "e", "d": "", "e": ""})
    s.start(stop_after="b")
    s.done("a")
    assert s.done("b") == ["b -> out"]
    assert s.done("c") == ["c -> out", "run succeeded"]
    assert s.journal[-1] == e.RunFinished("succeeded")


def test_stop_after_a_block_that_is_pruned_stops_as_well() -> None:
    s = Story({"if": "yes:b no:c", "b": "", "c": ""})
    s.start(stop_after="b")
    assert s.done("if", "no") == ["if -> no", "b pruned by if", "run succeeded"]


def test_reused_blocks_are_not_run_and_the_rest_is() -> None:
    s = Story({"a": "b", "b": "yes:c no:d", "c": "e", "d": "", "e": ""})
    assert s.start(reuse={"a": "out", "b": "yes"}) == [
        "run started",
        "a -> out (reused)",
        "b -> yes (reused)",
        "d pruned by b",
        "c starts",
    ]
    assert s.done("c") == ["c -> out", "e starts"]


def test_a_container_is_reused_as_a_whole() -> None:
    s = Story({"a": "fan", "fan": parallel({"x": ""}, "b error:c"), "b": "", "c": ""})
    assert s.start(reuse={"a": "out", "fan:start": "out", "fan:end": "out"}) == [
        "run started",
        "a -> out (reused)",
        "fan:start sized 0",
        "fan:end leaves after 0 (reused)",
        "c pruned by fan:end",
        "b starts",
    ]


def test_a_container_that_failed_is_reused_with_its_error_route() -> None:
    s = Story({"fan": parallel({"x": ""}, "b error:c"), "b": "", "c": ""})
    assert s.start(reuse={"fan:start": "out", "fan:end": "error"}) == [
        "run started",
        "fan:start sized 0",
        "fan:end -> error (reused)",
        "b pruned by fan:end",
        "c starts",
    ]


def test_the_budget_of_executions_ends_an_endless_loop() -> None:
    s = Story({"l": loop({"a": ""})})
    s.plan = msgspec.structs.replace(s.plan, settings=msgspec.structs.replace(s.plan.settings, max_executions=2))
    s.start()
    s.sized("l:start", 1)
    s.done("a@l#0")
    s.tested("l:end", again=True)
    s.done("a@l#1")
    assert s.tested("l:end", again=True) == ["l opens 2", "a@l#2 fails", "run failed"]
    finished = s.journal[-1]
    assert isinstance(finished, e.RunFinished) and finished.error is not None
    assert finished.error.code == "limit_executions"


def test_after_a_crash_the_state_tells_what_was_under_way() -> None:
    s = Story({"a": "b nap c", "b": "", "nap": "", "c": block(max_attempts=2)})
    s.start()
    s.done("a")
    s.suspended("nap", "timer", T0 + 9000)
    s.erred("c", retryable=True, retry_at_ms=T0 + 8000)
    assert s.outstanding() == ["run b (1)", "timer c (2) +8000", "timer nap (1) +9000"]


def test_a_run_can_go_on_from_any_commit() -> None:
    s = Story({"a": "l", "l": loop({"x": "y", "y": ""}, "b"), "b": ""})
    s.start()
    s.done("a")
    s.sized("l:start", 2)
    s.done("x@l#0")
    other = fold(s.plan, s.journal)
    fact = f.NodeDone(T0, *s.attempt("y@l#0"))
    assert decide(s.plan, other, fact) == decide(s.plan, s.state, fact)
    assert encode(other) == encode(s.state)


def test_recovery_of_a_run_with_nothing_lost_records_nothing() -> None:
    s = Story({"a": "b", "b": ""})
    s.start()
    assert s.feed(f.Recovered(T0)) == []


def test_recovery_after_a_lapsed_lease_is_recorded_before_what_was_lost() -> None:
    s = Story({"a": "b", "b": ""})
    s.start()
    assert s.feed(f.Recovered(T0, lapsed=True)) == ["run recovered"]
    assert s.lost("a") == ["a will retry", "a starts again (2)"]


def test_a_run_that_has_not_begun_has_nothing_to_recover() -> None:
    s = Story({"a": ""})
    assert s.feed(f.Recovered(T0, lapsed=True)) == []


def test_events_are_numbered_without_gaps() -> None:
    s = Story({"if": "yes:b no:c", "b": "", "c": "d", "d": ""})
    s.start()
    s.done("if", "yes")
    s.done("b")
    assert s.state.seq == len(s.journal)


def test_of_two_responses_that_are_ready_at_once_only_the_first_starts() -> None:
    s = Story({"a": "one two", "one": "", "two": ""})
    s.end_with("one", "two")
    s.start()
    assert s.done("a") == ["a -> out", "one starts"]
    assert s.done("one", end_run=True) == ["one -> out and ends the run", "run succeeded"]


def test_the_second_response_starts_when_the_first_one_fails() -> None:
    s = Story({"a": "one two", "one": "error:b", "two": "", "b": ""})
    s.end_with("one", "two")
    s.start()
    s.done("a")
    assert s.erred("one") == ["one fails -> error", "two starts", "b starts"]
    assert s.done("two", end_run=True) == ["two -> out and ends the run", "run succeeded"]
