"""Loops and parallels: scopes open and close, whatever path gets them there."""

from __future__ import annotations

import pytest

from tests.support.core.generator import Block
from tests.support.snapshots import encode
from tests.unit.executor.kernel.core.story import Story, loop, parallel


def test_a_loop_tests_after_each_iteration_and_opens_a_fresh_scope() -> None:
    s = Story({"review": loop({"draft": "check", "check": ""}, "send"), "send": ""})
    assert s.start() == ["run started", "review:start starts"]
    assert s.sized("review:start", 2) == ["review:start sized 2", "review opens 0", "draft@review#0 starts"]
    assert s.done("draft@review#0") == ["draft@review#0 -> out", "check@review#0 starts"]
    assert s.done("check@review#0") == ["check@review#0 -> out", "review:end starts"]
    assert s.tested("review:end", again=True) == ["review opens 1", "draft@review#1 starts"]
    s.done("draft@review#1")
    assert s.done("check@review#1") == ["check@review#1 -> out", "review:end starts"]
    assert s.tested("review:end", again=False) == ["review:end leaves after 2", "send starts"]


@pytest.mark.parametrize("container", [loop({"a": ""}, "after"), parallel({"a": ""}, "after")])
def test_nothing_to_do_skips_the_body_and_goes_on(container: Block) -> None:
    s = Story({"each": container, "after": ""})
    s.start()
    assert s.sized("each:start", 0) == ["each:start sized 0", "each:end leaves after 0", "after starts"]


def test_a_dead_end_ends_the_iteration_not_the_loop() -> None:
    s = Story({"l": loop({"if": "yes:a", "a": ""})})
    s.start()
    s.sized("l:start", 1)
    assert s.done("if@l#0", None) == ["if@l#0 -> nowhere", "a@l#0 pruned by if@l#0", "l:end starts"]


def test_a_pruned_container_never_starts_and_prunes_what_follows() -> None:
    s = Story({"if": "yes:l", "l": loop({"a": ""}, "after error:alarm"), "after": "", "alarm": ""})
    s.start()
    assert s.done("if", "no") == [
        "if -> no",
        "l:start pruned by if",
        "l:end pruned by l:start",
        "after pruned by l:end",
        "alarm pruned by l:end",
        "run succeeded",
    ]


def test_all_branches_start_at_once_and_the_last_one_lets_go_on() -> None:
    s = Story({"fan": parallel({"a": ""}, "after"), "after": ""})
    s.start()
    assert s.sized("fan:start", 3) == [
        "fan:start sized 3",
        "fan opens 0,1,2",
        "a@fan[0] starts",
        "a@fan[1] starts",
        "a@fan[2] starts",
    ]
    assert s.done("a@fan[2]") == ["a@fan[2] -> out"]
    assert s.done("a@fan[0]") == ["a@fan[0] -> out"]
    assert s.done("a@fan[1]") == ["a@fan[1] -> out", "fan:end leaves after 3", "after starts"]


def test_the_window_slides_a_branch_opens_when_any_one_closes() -> None:
    s = Story({"fan": parallel({"a": ""}, limit=2)})
    s.start()
    assert s.sized("fan:start", 4)[1] == "fan opens 0,1"
    assert s.done("a@fan[1]") == ["a@fan[1] -> out", "fan opens 2", "a@fan[2] starts"]
    assert s.done("a@fan[2]") == ["a@fan[2] -> out", "fan opens 3", "a@fan[3] starts"]
    assert s.done("a@fan[3]") == ["a@fan[3] -> out"]
    assert s.done("a@fan[0]") == ["a@fan[0] -> out", "fan:end leaves after 4", "run succeeded"]


def test_each_branch_has_its_own_loop_counter() -> None:
    s = Story({"fan": parallel({"l": loop({"a": ""})})})
    s.start()
    s.sized("fan:start", 2)
    s.sized("l:start@fan[0]", 2)
    assert s.sized("l:start@fan[1]", 1) == ["l:start@fan[1] sized 1", "l@fan[1] opens 0", "a@fan[1]/l#0 starts"]
    s.done("a@fan[0]/l#0")
    assert s.tested("l:end@fan[0]", again=True) == ["l@fan[0] opens 1", "a@fan[0]/l#1 starts"]
    s.done("a@fan[1]/l#0")
    assert s.tested("l:end@fan[1]", again=False) == ["l:end@fan[1] leaves after 1"]
    s.done("a@fan[0]/l#1")
    assert s.tested("l:end@fan[0]", again=False) == [
        "l:end@fan[0] leaves after 2",
        "fan:end leaves after 2",
        "run succeeded",
    ]


def test_an_empty_container_in_an_iteration_ends_it_in_the_same_step() -> None:
    s = Story({"l": loop({"fan": parallel({"a": ""})})})
    s.start()
    s.sized("l:start", 2)
    assert s.sized("fan:start@l#0", 0) == ["fan:start@l#0 sized 0", "fan:end@l#0 leaves after 0", "l:end starts"]


def test_a_closed_scope_leaves_no_trace_in_the_state() -> None:
    s = Story({"l": loop({"a": ""})})
    s.start()
    s.sized("l:start", 50)
    sizes = []
    for turn in range(50):
        s.done(f"a@l#{turn}")
        assert list(s.state.scopes) == [()]
        s.tested("l:end", again=True)
        sizes.append(len(encode(s.state)))
    assert max(sizes) - min(sizes) < 16  # numbers grow, nothing else does
    assert s.why("a@l#3") == ("closed", ("its iteration or branch has ended",))


def test_lost_attempts_of_a_closed_scope_leave_no_trace_either() -> None:
    s = Story({"l": loop({"a": ""})})
    s.start()
    s.sized("l:start", 50)
    for turn in range(50):
        s.lost(f"a@l#{turn}")
        s.done(f"a@l#{turn}")
        s.tested("l:end", again=True)
    assert len(s.state.tries) <= 1


def test_a_body_may_start_with_several_blocks() -> None:
    s = Story({"l": loop({"a": "c", "b": "c", "c": ""})})
    s.start()
    assert s.sized("l:start", 1) == ["l:start sized 1", "l opens 0", "a@l#0 starts", "b@l#0 starts"]
    assert s.done("b@l#0") == ["b@l#0 -> out"]
    assert s.done("a@l#0") == ["a@l#0 -> out", "c@l#0 starts"]
