import copy as copying
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.errors import BlockError
from executor.kernel.values.payload import MISSING
from executor.kernel.values.variables import OPS, apply, parse_path, read
from tests.support.cost import computes_within


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("$", ()),
        ("$.hit", ("hit",)),
        ("$.hit.body[0].x", ("hit", "body", 0, "x")),
        ('$["odd name"]["a.b"]', ("odd name", "a.b")),
        (r'$["q\"uote"]', ('q"uote',)),
        ("$.größe-2", ("größe-2",)),
    ],
)
def test_paths(text: str, path: tuple[str | int, ...]) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hit",
        ".hit",
        "$hit",
        "$..x",
        "$.x.",
        "$[*]",
        "$.x[-1]",
        "$[?(@.a)]",
        "$.x[1:2]",
        "$['x']",
        "$ .x",
        "$.a b",
        3,
    ],
)
def test_what_is_no_path(text: Any) -> None:
    with pytest.raises(BlockError) as caught:
        parse_path(text)
    assert (caught.value.code, caught.value.retryable) == ("path_invalid", False)


def test_a_path_has_a_bound() -> None:
    assert len(parse_path("$" + ".a" * 64)) == 64
    with pytest.raises(BlockError, match="more than 64 parts"):
        parse_path("$" + ".a" * 65)


def test_read() -> None:
    root = {"a": [{"b": 1}], "n": None}
    assert read(root, ("a", 0, "b")) == 1
    assert read(root, ("a", "0", "b")) == 1
    assert read(root, ("n",)) is None
    for path in (("a", 1), ("n", "x"), ("nope",), ("a", "x"), ("a", 0, "b", "c")):
        assert read(root, path) is MISSING


@pytest.mark.parametrize(
    ("before", "op", "after"),
    [
        ({}, ["set", "$.x", 1], {"x": 1}),
        ({"x": 1}, ["set", "$.x", None], {"x": None}),
        ({}, ["set", "$.a.b.c", 1], {"a": {"b": {"c": 1}}}),
        ({"a": None}, ["set", "$.a.b", 1], {"a": {"b": 1}}),
        ({}, ["set", "$.a[0].b", 1], {"a": [{"b": 1}]}),
        ({"a": [1]}, ["set", "$.a[1]", 2], {"a": [1, 2]}),
        ({"a": [1]}, ["set", "$.a[0]", 2], {"a": [2]}),
        ({"a": {"x": 1, "y": 2}}, ["merge", "$.a", {"y": 3, "z": 4}], {"a": {"x": 1, "y": 3, "z": 4}}),
        ({}, ["merge", "$.a", {"y": 3}], {"a": {"y": 3}}),
        ({"a": {"x": 1}}, ["del", "$.a.x", None], {"a": {}}),
        ({"a": [1, 2, 3]}, ["del", "$.a[1]", None], {"a": [1, 3]}),
        ({"a": 1}, ["del", "$.b.c", None], {"a": 1}),
        ({"a": [1]}, ["append", "$.a", [2]], {"a": [1, [2]]}),
        ({}, ["append", "$.a.list", 1], {"a": {"list": [1]}}),
        ({"n": 1}, ["increment", "$.n", 2.5], {"n": 3.5}),
        ({}, ["increment", "$.n", None], {"n": 1}),
    ],
)
def test_operations(before: dict[str, Any], op: list[Any], after: dict[str, Any]) -> None:
    apply(before, [op])
    assert before == after


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (["set", "$", 1], "name of a variable is missing"),
        (["set", "$[0]", 1], "name of a variable is missing"),
        (["set", "$.text.x", 1], "text has no field 'x'"),
        (["set", "$.list.x", 1], "a list has no field 'x'"),
        (["set", "$.list[5]", 1], "past the end"),
        (["set", "$.new[1]", 1], "no list with 1 items"),
        (["merge", "$.list", {}], "it holds a list, not an object"),
        (["merge", "$.obj", 1], "the value is a number, not an object"),
        (["append", "$.text", 1], "it holds text, not a list"),
        (["increment", "$.text", 1], "it holds text, not a number"),
        (["increment", "$.flag", 1], "it holds a boolean, not a number"),
        (["increment", "$.n", "1"], "the value is text, not a number"),
        (["increment", "$.big", 2**62], "out of range"),
        (["set", "$.n", 2**70], "does not fit in 64 bits"),
        (["append", "$.list", float("nan")], "not a JSON number"),
        (["swap", "$.n", 1], "unknown operation"),
    ],
)
def test_a_patch_that_fails_changes_nothing(op: list[Any], message: str) -> None:
    variables = {"text": "t", "list": [1], "obj": {"a": 1}, "n": 1, "flag": True, "big": 2**62}
    before = copying.deepcopy(variables)
    good: list[list[Any]] = [
        ["set", "$.obj.b", 2], ["append", "$.list", 2], ["merge", "$.obj", {"a": 5, "c": 6}], ["set", "$.fresh", 1],
        ["set", "$.list[0]", 9], ["increment", "$.n", 1], ["del", "$.list[1]", None],
        ["del", "$.text2", None], ["set", "$.list[1]", 7],
    ]  # fmt: skip
    with pytest.raises(BlockError, match=message) as caught:
        apply(variables, [*good, op])
    assert not caught.value.retryable
    assert variables == before
    assert list(variables) == list(before)


def test_values_put_in_are_copies() -> None:
    variables: dict[str, Any] = {}
    value = {"a": [1]}
    apply(variables, [["set", "$.x", value]])
    value["a"].append(2)
    assert variables == {"x": {"a": [1]}}


def test_appending_ten_thousand_times_is_linear() -> None:
    variables: dict[str, Any] = {"log": []}
    with computes_within(3):
        for n in range(10_000):
            apply(variables, [["append", "$.log", {"n": n}]])
    assert len(variables["log"]) == 10_000


values = (
    st.none()
    | st.integers(-9, 9)
    | st.text(max_size=2)
    | st.lists(st.integers(), max_size=2)
    | st.dictionaries(st.sampled_from("ab"), st.integers(), max_size=2)
)


@given(
    st.dictionaries(st.sampled_from("ab"), values),
    st.lists(
        st.tuples(st.sampled_from(OPS), st.sampled_from(["$.a", "$.b.a", "$.a[0]", "$.a[1].b", "$.b", "$"]), values),
        max_size=6,
    ),
)
def test_all_or_nothing(variables: dict[str, Any], ops: list[tuple[str, str, Any]]) -> None:
    before = copying.deepcopy(variables)
    try:
        apply(variables, ops)
    except BlockError:
        assert variables == before
