"""The cleanup of a run that undoes one of its nodes: when it begins, and what it knows of the steps of that node."""

from __future__ import annotations

import pytest
from msgspec import structs

from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.evolve import evolve
from executor.kernel.core.state import State
from executor.service.upkeep.journal import complaint
from tests.unit.executor.kernel.core.story import Story, with_cleanup
from tests.unit.executor.kernel.core.test_decide_left import opens

UNDO = "undo@:finally"


def undone() -> Story:
    """Block `body` is undone by `undo`."""
    s = Story({"start": with_cleanup({"undo": ""}, out="body"), "body": ""})
    root, cleanup = s.plan.regions
    s.plan = structs.replace(s.plan, regions=(root, structs.replace(cleanup, undoes=s.number("body"))))
    s.state = State.new(s.plan)
    s.start()
    return s


def begun() -> Story:
    s = undone()
    s.done("start")
    return s


def waiting(*more: f.WaitBeside) -> Story:
    """It has done step 1, and waits for step 2, and for more."""
    s = begun()
    s.step("body", 1)
    s.step_done("body", 1)
    s.left("body", opens(2), *more)
    return s


def fits(s: Story) -> bool:
    """The checks of the doctor accept the journal."""
    state = State.new(s.plan)
    for event in s.journal:
        if (reason := complaint(s.plan, state, event)) is not None:
            raise AssertionError(f"{s.tell(event)}: {reason}")
        evolve(s.plan, state, event)
    return True


def test_a_run_that_is_not_cancelled_has_no_event_of_it() -> None:
    s = begun()
    assert s.done("body") == ["body -> out", "run succeeded"]
    s = begun()
    assert s.erred("body") == ["body fails", "run failed"]
    assert fits(s)


def test_why_it_has_not_started() -> None:
    s = begun()
    s.step("body", 1)
    assert s.why(UNDO) == ("not opened", ("it runs if the run is cancelled",))
    s.cancel()
    assert s.why(UNDO)[0] == "not opened"
    s.erred("body")
    assert s.why(UNDO) == ("running", ("attempt 1 is running",))


def test_it_begins_when_a_node_that_waits_is_cancelled() -> None:
    s = waiting()
    assert s.cancel() == ["run cancelling", "body wait cancelled", "cleanup of start", f"{UNDO} starts"]
    assert s.steps(UNDO) == {1: "done"} and s.steps("body") == {}
    s.step(UNDO, 3)
    s.step_done(UNDO, 3)
    assert s.done(UNDO) == [f"{UNDO} -> out", "run cancelled"]
    assert fits(s)


def test_a_node_that_runs_ends_its_steps_before() -> None:
    s = begun()
    s.step("body", 1)
    s.step("body", 2, "read")
    s.cancel()
    assert s.commands() == ["cancel body"]
    assert [order.drains for order in s.orders if hasattr(order, "drains")] == [True]
    s.step_done("body", 1)
    s._say(e.StepFinished(*s.attempt("body"), 2, error=e.ErrorInfo("cancelled", "stopped")))
    assert s.erred("body") == ["body fails", "cleanup of start", f"{UNDO} starts"]
    assert s.steps(UNDO) == {1: "done"}, "the second one is cancelled where the code awaits it"
    assert fits(s)


def test_a_second_cancel_does_not_wait_for_them() -> None:
    s = begun()
    s.step("body", 1)
    s.cancel()
    assert s.cancel() == ["run cancelling"] and s.commands() == ["cancel body"]
    assert not any(getattr(order, "drains", False) for order in s.orders)
    assert s.erred("body") == ["body step 1 lost", "body fails", "run cancelled"]
    assert fits(s)


def test_it_knows_that_the_outcome_of_a_step_is_unknown() -> None:
    s = begun()
    s.step("body", 1)
    s.step("body", 2, "read")
    s.cancel()
    s.lost("body")
    assert s.steps(UNDO) == {1: "lost"}


def test_a_wait_that_ended_while_an_attempt_ran_is_known_to_the_cleanup() -> None:
    s = waiting(opens(3))
    s.ended("body", 2)
    s.ended("body", 3)
    s.cancel()
    s.erred("body")
    opened = next(n for n, event in enumerate(s.journal, 1) if isinstance(event, e.CleanupOpened))
    ((_, tries),) = s.state.tries.items()
    assert tries.taken_seq == opened > tries.by_n[3].finished_seq > tries.by_n[2].finished_seq
    assert fits(s)


@pytest.mark.parametrize("failed", [False, True])
def test_it_begins_when_the_child_runs_have_ended_which_are_cancelled_with_it(failed: bool) -> None:
    s = waiting(opens(3, "child"))
    assert s.cancel() == ["run cancelling", "body wait cancelled", "run parks"]
    assert s.ended("body", 3, failed) == [
        "body wait answered", f"body step 3 {'fails' if failed else 'ends'}", "cleanup of start", f"{UNDO} starts",
    ]  # fmt: skip
    assert s.steps(UNDO) == {1: "done", 3: "failed" if failed else "done"}
    assert fits(s)


def test_a_node_that_runs_while_it_has_child_runs_leaves_first() -> None:
    s = waiting(opens(3, "child"))
    s.ended("body", 2)
    assert s.cancel() == ["run cancelling"]
    assert s.erred("body") == ["body leaves", "run parks"]
    assert s.ended("body", 3)[-1] == f"{UNDO} starts"
    assert fits(s)


def test_a_second_cancel_does_not_wait_for_child_runs() -> None:
    s = waiting(opens(3, "child"))
    s.cancel()
    assert s.cancel() == ["run cancelling", "body wait cancelled", "run cancelled"]
    assert fits(s)


def test_nothing_is_undone_of_a_node_that_has_not_begun_or_has_ended() -> None:
    s = undone()
    s.cancel()
    assert s.erred("start") == ["start fails", "run cancelled"]
    s = begun()
    s.step("body", 1)
    s.cancel()
    s.step_done("body", 1)
    assert s.done("body") == ["body -> out", "run cancelled"], "it has ended all the same"
    assert fits(s)


def test_an_error_of_it_is_not_that_of_the_run() -> None:
    s = waiting()
    s.cancel()
    assert s.erred(UNDO)[-1] == "run cancelled" and s.state.error is None


def test_its_time_is_limited_and_a_second_cancel_ends_it() -> None:
    s = waiting()
    s.cancel()
    s.left(UNDO, opens(3))
    assert s.cleanup_late("start") == ["cleanup of start stopped", f"{UNDO} wait cancelled", "run cancelled"]
    assert fits(s)
    s = waiting()
    s.cancel()
    s.left(UNDO, opens(3))
    assert s.cancel() == ["run cancelling", f"{UNDO} wait cancelled", "run cancelled"]


def test_a_failure_of_before_stays_when_an_attempt_of_it_has_not_begun() -> None:
    s = begun()
    s.step("body", 1)
    s.step_done("body", 1, failed=True)
    s.cancel()
    s.erred("body")
    assert s.steps(UNDO) == {1: "failed"}
    assert s.erred(UNDO, deferred="not_begun") == [f"{UNDO} will retry"]
    assert s.steps(UNDO) == {1: "failed"}


def test_a_lost_attempt_of_it_is_repeated_with_what_it_knows() -> None:
    s = waiting()
    s.cancel()
    s.step(UNDO, 3)
    s.step_done(UNDO, 3)
    assert s.lost(UNDO) == [f"{UNDO} will retry", f"{UNDO} starts again (2)"]
    assert s.steps(UNDO) == {1: "done", 3: "done"}
