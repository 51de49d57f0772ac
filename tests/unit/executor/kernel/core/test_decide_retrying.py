"""Steps that are done again after they failed: what a crash, a leave, a person and a fork make of their tries."""

from __future__ import annotations

import pytest

from executor.kernel.core import facts as f
from executor.kernel.core.events import StepOnLost
from tests.support.snapshots import content, restored
from tests.unit.executor.kernel.core.story import T0, Story, block


def retrying(effect: str = "write", due_ms: int = T0 + 60_000) -> Story:
    """Step 1 of block `a` has failed twice."""
    s = Story({"a": block("b"), "b": ""})
    s.start()
    s.step("a", 1, "write" if effect == "write" else "read")
    s.step_retrying("a", 1, 1, T0)
    s.step("a", 1, "write" if effect == "write" else "read")
    s.step_retrying("a", 1, 2, due_ms)
    return s


def test_the_handler_leaves_until_the_step_begins_again() -> None:
    s = retrying()
    assert s.why("a") == (
        "running",
        ("attempt 1 is running", f"step 1 (step 1) has failed 2 times and begins again at {T0 + 60_000} ms"),
    )
    assert s.left("a", due_ms=T0 + 60_000) == ["a leaves", "run parks until +60000"]
    assert s.why("a") == ("retrying", (f"step 1 (step 1) has failed 2 times and begins again at {T0 + 60_000} ms",))
    assert s.timer("a", T0 + 60_000) == ["a starts again (2)"]
    assert s.steps("a") == {1: "failed 2 times"}
    s.step("a", 1)
    assert s.steps("a") == {1: "begun"}
    s.step_retrying("a", 1, 3, T0 + 90_000)
    assert s.steps("a") == {1: "failed 3 times"}
    s.step("a", 1)
    s.step_done("a", 1)
    assert s.steps("a") == {1: "done"}
    assert s.done("a") == ["a -> out", "b starts"]


def test_a_crash_in_the_pause_loses_nothing() -> None:
    s = retrying()
    assert s.lost("a") == ["a will retry", "a starts again (2)"]
    assert s.steps("a") == {1: "failed 2 times"}
    assert s.why("a")[1][1] == f"step 1 (step 1) has failed 2 times and begins again at {T0 + 60_000} ms"


def test_a_try_that_is_lost_does_not_count_and_the_others_do() -> None:
    s = retrying("read")
    s.step("a", 1, "read")
    assert s.lost("a") == ["a step 1 lost, again", "a will retry", "a starts again (2)"]
    assert s.steps("a") == {1: "failed 2 times"}
    assert s.why("a")[1][1] == "step 1 (step 1) has failed 2 times and begins again at once"


def test_a_write_that_is_lost_is_asked_about_and_its_tries_still_count() -> None:
    s = retrying()
    s.step("a", 1)
    assert s.lost("a") == ["a step 1 lost", "a will retry", "a starts again (2)"]
    asks = f.WaitBeside(f.WaitStep(1, "step 1", "hash", lost=True), "attention")
    assert s.left("a", asks) == ["a waits", "a leaves", "run parks"]
    assert s.wait_retried("a") == ["a wait answered", "a step 1 lost, again", "a starts again (3)"]
    assert s.steps("a") == {1: "failed 2 times"}


def test_a_person_can_hasten_it() -> None:
    s = retrying()
    s.left("a", due_ms=T0 + 60_000)
    s.at_ms = T0 + 1_000
    assert s.retry_wanted("a") == ["a need not wait", "a starts again (2)"]
    assert s.why("a")[1][1] == f"step 1 (step 1) has failed 2 times and begins again at {T0 + 1_000} ms"


def test_a_fork_keeps_the_tries() -> None:
    s = retrying()
    s.forked()
    assert s.steps("a") == {1: "failed 2 times"}


def test_a_snapshot_has_them() -> None:
    s = retrying()
    assert content(restored(s.plan, s.state)) == content(s.state)
    assert restored(s.plan, s.state).tries == s.state.tries


@pytest.mark.parametrize(
    ("effect", "on_lost", "told", "then"),
    [
        ("write", "", "a step 1 lost", {1: "lost"}),
        ("read", "", "a step 1 lost, again", {}),
        ("write", "retry", "a step 1 lost, again", {}),
        ("read", "ask", "a step 1 lost", {1: "lost"}),
        ("read", "fail", "a step 1 fails", {1: "failed"}),
        ("write", "fail", "a step 1 fails", {1: "failed"}),
    ],
)
def test_a_step_says_what_follows_when_it_is_lost(
    effect: str, on_lost: StepOnLost, told: str, then: dict[int, str]
) -> None:
    s = Story({"a": ""})
    s.start()
    s.step("a", 1, "write" if effect == "write" else "read", on_lost)
    assert s.lost("a") == [told, "a will retry", "a starts again (2)"]
    assert s.steps("a") == then
