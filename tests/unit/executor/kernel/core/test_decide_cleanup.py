"""Cleanups: when they begin, what they change, and what ends them."""

from __future__ import annotations

import msgspec

from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.decide import decide
from tests.unit.executor.kernel.core.story import T0, Story, block, loop, parallel, with_cleanup

LIMIT_MS = 300_000


def begun(s: Story, name: str = "each", count: int = 1) -> list[str]:
    s.start()
    return s.sized(f"{name}:start", count)


def test_after_the_last_iteration_and_before_the_container_leaves() -> None:
    s = Story({"each": loop({"a": ""}, out="next", cleanup={"close": ""}), "next": ""})
    begun(s)
    assert s.done("a@each#0") == ["a@each#0 -> out", "each:end starts"]
    assert s.tested("each:end", again=False) == ["cleanup of each:end", "close@each:finally starts"]
    assert s.commands() == ["timer each:end (0) +300000", "run close@each:finally (1)"]
    assert s.why("each:end") == ("pending", ("its cleanup is running",))
    assert s.done("close@each:finally") == ["close@each:finally -> out", "each:end leaves after 1", "next starts"]


def test_also_when_there_was_nothing_to_do() -> None:
    s = Story({"each": parallel({"a": ""}, cleanup={"close": ""})})
    s.start()
    assert s.sized("each:start", 0) == ["each:start sized 0", "cleanup of each:end", "close@each:finally starts"]


def test_not_when_the_container_did_not_begin() -> None:
    s = Story({"each": loop({"a": ""}, cleanup={"close": ""})})
    s.start()
    assert s.erred("each:start") == ["each:start fails", "run failed"]


def test_a_failure_passes_through_it() -> None:
    s = Story({"each": loop({"a": ""}, out="error:oops next", cleanup={"close": ""}), "oops": "", "next": ""})
    begun(s)
    assert s.erred("a@each#0")[:2] == ["a@each#0 fails, caught by container each#0", "cleanup of each:end"]
    assert s.done("close@each:finally")[1:3] == ["each:end fails -> error", "next pruned by each:end"]


def test_its_own_error_counts_when_there_was_none_before() -> None:
    s = Story({"each": loop({"a": ""}, cleanup={"close": ""})})
    begun(s)
    s.erred("a@each#0")
    lines = s.erred("close@each:finally")
    assert lines == ["close@each:finally fails, caught by cleanup each:finally", "each:end fails", "run failed"]
    assert s.state.error is not None
    assert s.state.error.block == "a"
    s = Story({"each": loop({"a": ""}, cleanup={"close": ""})})
    begun(s)
    s.done("a@each#0")
    s.tested("each:end", again=False)
    assert s.erred("close@each:finally")[1:] == ["each:end fails", "run failed"]
    assert s.state.error is not None
    assert s.state.error.block == "close"


def test_a_test_that_fails_has_it_too() -> None:
    s = Story({"each": loop({"a": ""}, cleanup={"close": ""})})
    begun(s)
    s.done("a@each#0")
    assert s.erred("each:end") == ["cleanup of each:end", "close@each:finally starts"]
    assert s.done("close@each:finally")[1:] == ["each:end fails", "run failed"]


def nested() -> Story:
    inner = loop({"a": ""}, cleanup={"close": ""})
    s = Story({"first": with_cleanup({"last": ""}, out="all b"), "all": parallel({"each": inner}), "b": ""})
    s.start()
    s.done("first")
    s.sized("all:start", 2)
    s.sized("each:start@all[0]", 1)
    s.sized("each:start@all[1]", 1)
    return s


def test_a_run_that_fails_has_those_of_all_open_containers_then_its_own() -> None:
    s = nested()
    assert s.erred("b") == ["b fails"]
    assert s.done("a@all[0]/each#0") == ["a@all[0]/each#0 -> out"]  # it drains
    lines = s.done("a@all[1]/each#0")
    assert lines[1:3] == ["cleanup of each:end@all[0]", "cleanup of each:end@all[1]"]
    s.done("close@all[0]/each:finally")
    assert s.done("close@all[1]/each:finally")[1:] == ["cleanup of first", "last@:finally starts"]
    assert s.done("last@:finally") == ["last@:finally -> out", "run failed"]


def test_a_cancel_stops_what_runs_and_no_cleanup() -> None:
    s = nested()
    assert s.cancel() == ["run cancelling"]
    assert s.commands() == ["cancel b", "cancel a@all[0]/each#0", "cancel a@all[1]/each#0"]
    for name in ("b", "a@all[0]/each#0", "a@all[1]/each#0"):
        s.erred(name)
    assert s.cancel(asked=False) == []  # by a run above
    assert s.feed(f.RunAborted(s.at_ms, e.ErrorInfo("run_timeout", "too long"))) == []
    s.done("close@all[0]/each:finally")
    s.done("close@all[1]/each:finally")
    assert s.done("last@:finally") == ["last@:finally -> out", "run cancelled"]


def test_a_second_cancel_stops_the_cleanups() -> None:
    s = nested()
    s.cancel()
    for name in ("b", "a@all[0]/each#0", "a@all[1]/each#0"):
        s.erred(name)
    assert s.cancel() == ["run cancelling"]
    assert s.commands() == ["cancel close@all[0]/each:finally", "cancel close@all[1]/each:finally"]
    s.erred("close@all[0]/each:finally")
    assert s.erred("close@all[1]/each:finally")[-1] == "run cancelled"


def test_a_cancel_at_once_begins_none() -> None:
    s = nested()
    assert s.cancel(now=True) == ["run cancelling"]
    for name in ("b", "a@all[0]/each#0"):
        s.erred(name)
    assert s.erred("a@all[1]/each#0")[-1] == "run cancelled"


def test_its_time_limit() -> None:
    s = Story({"each": loop({"a": ""}, cleanup={"close": "", "ask": ""})})
    begun(s)
    s.done("a@each#0")
    s.tested("each:end", again=False)
    s.suspended("ask@each:finally")
    early = f.TimerFired(T0 + LIMIT_MS - 1, s.attempt("each:end")[0], 0)
    assert decide(s.plan, s.state, early) == []
    assert s.cleanup_late("each:end") == ["cleanup of each:end stopped", "ask@each:finally wait cancelled"]
    assert s.commands() == ["cancel close@each:finally"]
    assert s.erred("close@each:finally")[1:] == ["each:end fails", "run failed"]
    assert s.state.error is not None
    assert s.state.error.code == "cleanup_timeout"


def test_what_is_given_up_around_it_does_not_stop_it() -> None:
    inner = loop({"a": ""}, cleanup={"close": "more", "more": ""})
    s = Story({"all": parallel({"each": inner, "b": ""}, out="error:oops"), "oops": ""})
    begun(s, "all")
    s.sized("each:start@all[0]", 1)
    s.done("a@all[0]/each#0")
    s.tested("each:end@all[0]", again=False)
    assert s.erred("b@all[0]") == ["b@all[0] fails, caught by container all[0]"]
    assert s.done("close@all[0]/each:finally")[1:] == ["more@all[0]/each:finally starts"]
    assert s.done("more@all[0]/each:finally")[1:] == ["all:end fails -> error", "oops starts"]


def test_after_a_response_and_after_a_stop() -> None:
    s = Story({"first": with_cleanup({"last": ""}, out="reply slow"), "reply": "", "slow": ""})
    s.end_with("reply")
    s.start()
    s.done("first")
    assert s.done("reply", end_run=True) == ["reply -> out and ends the run"]
    assert s.commands() == ["cancel slow"]
    assert s.erred("slow")[1:] == ["cleanup of first", "last@:finally starts"]
    assert s.done("last@:finally")[-1] == "run succeeded"
    s = Story({"first": with_cleanup({"last": ""}, out="a"), "a": "b", "b": ""})
    s.start(stop_after="a")
    s.done("first")
    assert s.done("a") == ["a -> out", "cleanup of first", "last@:finally starts"]
    assert s.done("last@:finally")[-1] == "run succeeded"


def test_the_cleanup_of_the_run_that_fails() -> None:
    s = Story({"first": with_cleanup({"last": ""})})
    s.start()
    assert s.done("first")[1:] == ["cleanup of first", "last@:finally starts"]
    assert s.erred("last@:finally") == ["last@:finally fails, caught by cleanup :finally", "run failed"]


def test_a_reused_container_has_had_it() -> None:
    s = Story({"each": loop({"a": ""}, out="b", cleanup={"close": ""}), "b": ""})
    assert s.start(reuse={"each:start": "out", "each:end": "out"})[-2:] == [
        "each:end leaves after 0 (reused)",
        "b starts",
    ]


def test_a_run_without_executions_left_cleans_up() -> None:
    s = Story({"first": with_cleanup({"last": ""}, out="a"), "a": ""})
    s.plan = msgspec.structs.replace(s.plan, settings=msgspec.structs.replace(s.plan.settings, max_executions=1))
    s.start()
    assert s.done("first")[1:] == ["a fails", "cleanup of first", "last@:finally starts"]
    assert s.done("last@:finally")[-1] == "run failed"


def test_why_of_what_has_not_begun() -> None:
    s = Story({"first": with_cleanup({"last": ""}, out="each"), "each": loop({"a": block()}, cleanup={"close": ""})})
    s.start()
    assert s.why("last@:finally") == ("not opened", ("it runs when the run ends",))
    assert s.why("close@each:finally") == ("not opened", ("'each' has not started",))
    s.done("first")
    s.sized("each:start", 1)
    assert s.why("close@each:finally") == ("not opened", ("it runs when 'each' ends",))


def test_a_loop_in_its_test_has_none_in_a_run_that_is_cancelled_at_once() -> None:
    s = Story({"each": loop({"a": ""}, cleanup={"close": ""})})
    begun(s)
    s.done("a@each#0")
    s.cancel(now=True)
    assert s.erred("each:end") == ["each:end fails", "run cancelled"]


def test_waits_are_closed_when_the_run_ends_with_a_cleanup() -> None:
    s = Story({"first": with_cleanup({"last": ""}, out="ask b"), "ask": "", "b": ""})
    s.start()
    s.done("first")
    s.suspended("ask")
    assert s.erred("b")[:3] == ["b fails", "ask wait cancelled", "cleanup of first"]


def test_a_wait_inside_it_stays_when_what_is_around_it_is_given_up() -> None:
    inner = loop({"a": ""}, cleanup={"ask": ""})
    s = Story({"all": parallel({"each": inner, "b": "", "c": ""}, out="error:oops"), "oops": ""})
    begun(s, "all")
    s.sized("each:start@all[0]", 1)
    s.done("a@all[0]/each#0")
    s.tested("each:end@all[0]", again=False)
    s.suspended("ask@all[0]/each:finally")
    s.suspended("c@all[0]")
    lines = s.erred("b@all[0]")
    assert lines[:2] == ["b@all[0] fails, caught by container all[0]", "c@all[0] wait cancelled"]
    assert not any(line.startswith("ask") for line in lines)
    assert s.answered("ask@all[0]/each:finally")[-2:] == ["all:end fails -> error", "oops starts"]


def test_a_failure_inside_it_ends_it_also_when_what_is_around_it_is_given_up() -> None:
    inner = loop({"a": ""}, cleanup={"x": "", "y": ""})
    s = Story({"all": parallel({"each": inner, "p": "", "q": ""}, on_branch_error="continue"), "b": ""})
    begun(s, "all", 2)
    s.sized("each:start@all[0]", 1)
    s.done("a@all[0]/each#0")
    s.tested("each:end@all[0]", again=False)
    s.erred("x@all[0]/each:finally")  # y drains
    s.erred("p@all[1]")  # q drains, and the start of the loop
    s.erred("b")
    for name in ("each:start@all[1]", "q@all[1]", "p@all[0]", "q@all[0]"):
        s.erred(name)
    assert s.state.ended is None
    assert s.done("y@all[0]/each:finally") == ["y@all[0]/each:finally -> out", "run failed"]
    assert s.state.error is not None
    assert (s.state.error.code, s.state.error.block) == ("boom", "b")
