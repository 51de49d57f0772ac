"""What settings say about the queue, for one input."""

from __future__ import annotations

from msgspec.structs import replace

from compiler.plan import Limit, Plan, Rate, Settings
from executor.kernel.run.new_run import KEY_LENGTH_MAX, filled, placement_of
from executor.kernel.store.run_rows import Placement


def test_settings_and_the_priority_of_a_submission() -> None:
    settings = Settings(pool="gpu", priority=3, fair="<input.who>")
    plan = Plan("w", "start", (), settings=settings)
    assert placement_of(plan, {"who": "ann"}) == Placement("gpu", 3, "ann")
    assert placement_of(plan, {"who": "ann"}, -1) == Placement("gpu", -1, "ann")
    assert placement_of(replace(plan, settings=Settings()), None) == Placement()


def test_two_texts_that_are_the_same_key_are_one_limit() -> None:
    limits = (Limit("<input.a>", 5), Limit("x", 3), Limit("y", 1))
    plan = Plan("w", "start", (), settings=Settings(limits=limits, rates=(Rate("<input.a>", 2.0),)))
    placement = placement_of(plan, {"a": "x"})
    assert (placement.limits, placement.rates) == ((("x", 3), ("y", 1)), (("x", 2.0),))
    assert placement.is_limited and not Placement().is_limited


def test_references_are_filled_in_as_text() -> None:
    input = {"a": {"b": [1, "two"]}, "none": None}
    assert filled("plain", input) == "plain"
    assert filled("x <input.a.b[1]> <input.a.b[0]> y", input) == "x two 1 y"
    assert filled("<input.a>", input) == '{"b":[1,"two"]}'
    assert filled("[<input.missing>]", input) == "[]"
    assert filled('<input.none ?? "n/a">', input) == "n/a"
    assert filled("<input>", "all of it") == "all of it"


def test_keys_are_short_and_have_no_control_characters() -> None:
    assert filled("<input>", "a\0b\nc") == "a b c"
    long, other = (filled("<input>", "x" * 500 + end) for end in ("1", "2"))
    assert long != other and len(long) <= KEY_LENGTH_MAX
