"""Which run loop is woken, and what is set when there is none."""

from __future__ import annotations

from typing import Any, cast

from executor.kernel.run.owned import OwnedRuns


class Loop:
    def __init__(self, root: str) -> None:
        self.root = root
        self.calls: list[str] = []

    def inbox_changed(self) -> None:
        self.calls.append("woken")

    def end_with_family(self) -> None:
        self.calls.append("end")


def owning(**roots: str) -> tuple[OwnedRuns, dict[str, Loop]]:
    owned, loops = OwnedRuns(), {run: Loop(root) for run, root in roots.items()}
    owned.loops.update(cast(Any, loops))
    return owned, loops


def test_a_run_in_memory_is_woken_itself() -> None:
    owned, loops = owning(a="a", b="b")
    owned.wake("a")
    assert (loops["a"].calls, loops["b"].calls, owned.due.is_set()) == (["woken"], [], False)


def test_any_other_run_may_be_due() -> None:
    owned, loops = owning(a="a")
    owned.wake("c")
    assert owned.due.is_set() and loops["a"].calls == []
    owned.due.clear()
    owned.wake()
    assert owned.due.is_set()


def test_a_family_ends_with_its_root() -> None:
    owned, loops = owning(child="top", grandchild="top", other="other")
    owned.wake_family("top")
    assert [loop.calls for loop in loops.values()] == [["end"], ["end"], []]


def test_listeners_hear_of_each_run_that_left() -> None:
    owned, calls = OwnedRuns(), list[str]()
    owned.on_left(lambda: calls.append("one"))
    owned.on_left(lambda: calls.append("two"))
    owned.left("a")
    assert calls == ["one", "two"]


def test_the_length_is_the_number_of_runs_in_memory() -> None:
    assert len(OwnedRuns()) == 0
    assert len(owning(a="a", b="b")[0]) == 2


async def test_who_waits_for_a_run_hears_when_that_run_has_left() -> None:
    owned = OwnedRuns()
    one, other = owned.watch_left("a"), owned.watch_left("b")
    owned.left("a")
    assert (one.done(), other.done()) == (True, False)
    other.cancel()
