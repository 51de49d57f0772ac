import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from compiler.plan import Node, Plan, Policy, Ref, Region
from executor.errors import BlockError
from executor.kernel.values.payload import SIZE_MAX_BYTES, Bound, encode, render
from executor.kernel.values.resolve import compile_template
from executor.kernel.values.scope import Values

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)

S = Ref("s", "block", 0)
OK = Ref("s.ok", "block", 0, path=("ok",))
GONE = Ref("gone.x", "block", 1, path=("x",))
KEY = Ref("${KEY}", "env", path=("KEY",))
NOPE = Ref("${NOPE}", "env", path=("NOPE",))
NUM = Ref("${NUM}", "env", path=("NUM",))
VAR = Ref("workflow.v", "variable", path=("v",))
ALL = (S, OK, GONE, KEY, NOPE, NUM, VAR)


def make(params: Any, needs: tuple[Ref, ...] = ALL, **more: Any) -> Node:
    return Node(id="r", block="r", type="task", name="R", params=Raw(encode(params)), needs=needs, **more)


def values(output: Any = None, variables: dict[str, Any] | None = None) -> Values:
    nodes = tuple(Node(id=i, block=i, type="task", name=i) for i in ("s", "gone", "r"))
    root = Region("", "root", -1, 0, nodes, (0, 0, 0), (0,), (2,))
    made = Values(Plan("t", "s", (root,), variables=variables or {}), None, {"KEY": "s3cret", "NUM": "3"})
    made.succeeded(((), 0), encode(output))
    return made


def fill(params: Any, output: Any = None, variables: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return compile_template(make(params, **more)).fill(values(output, variables), ())


@given(json_values)
def test_a_whole_param_gets_the_value_itself(value: Any) -> None:
    assert fill({"x": "<s>", "deep": [{"y": "<s>"}]}, value) == {"x": value, "deep": [{"y": value}]}


@given(json_values, st.text(st.characters(exclude_characters="<$", exclude_categories=["Cs"]), min_size=1))
def test_in_text_it_is_rendered_once_and_not_looked_at_again(value: Any, around: str) -> None:
    assert fill({"x": f"{around}<s>{around}"}, value) == {"x": around + render(value) + around}


@pytest.mark.parametrize("text", ["<s.ok>", "${KEY}", "<workflow.v> ${KEY} <s>", '{"$ref": "$.v"}'])
def test_a_value_that_looks_like_a_reference_stays(text: str) -> None:
    filled = fill({"whole": "<s>", "text": "-<s>-", "code": "<s> === '<s>'"}, text, code=("/code",))
    assert (filled["whole"], filled["text"]) == (text, f"-{text}-")
    bound = filled["code"]
    assert isinstance(bound, Bound)
    assert (bound.values, bound.texts) == ({"s": text}, {"s": text})
    assert text not in bound.source


def test_rendering_in_text() -> None:
    output = {"ok": None}
    assert fill({"x": "[<s>] [<s.ok>] [<gone.x>]"}, output) == {"x": '[{"ok":null}] [null] []'}
    assert fill({"x": "<gone.x>"}, output) == {"x": None}


def test_what_is_not_known_stays_as_it_is() -> None:
    params = {"x": "hello <nosuch.value>", "y": "a < b and c > d", "z": "<nosuch>", "n": 3, "e": "${OTHER}"}
    assert fill(params) == params


def test_environment() -> None:
    assert fill({"x": "k=${KEY} ${NOPE}", "whole": "${KEY}", "unset": "${NOPE}"}) == {
        "x": "k=s3cret ${NOPE}",
        "whole": "s3cret",
        "unset": "${NOPE}",
    }


def test_variables_by_path() -> None:
    variables = {"hit": {"body": [1, {"a": 2}]}, "v": 1}
    params = {
        "whole": {"$ref": "$.hit.body"}, "one": [{"$ref": "$.hit.body[1].a"}], "none": {"$ref": "$.nope"},
        "schema": {"$ref": "#/$defs/x"}, "more": {"$ref": "$.v", "other": 1}, "dollar": {"$ref": "$5"},
    }  # fmt: skip
    assert fill(params, None, variables) == {
        "whole": [1, {"a": 2}], "one": [2], "none": None,
        "schema": {"$ref": "#/$defs/x"}, "more": {"$ref": "$.v", "other": 1}, "dollar": {"$ref": "$5"},
    }  # fmt: skip
    with pytest.raises(BlockError, match="is not a variable path"):
        compile_template(make({"x": {"$ref": "$.a[*]"}}))


def test_code_gets_values_beside_it() -> None:
    filled = fill(
        {
            "cases": [
                {"when": "<s.ok> > ${NUM} && '${NUM}' && <gone.x> === null && ${NOPE}"},
                {"when": " "},
                {"when": True},
            ]
        },
        {"ok": 5},
        code=("/cases/0/when", "/cases/1/when", "/cases/2/when"),
    )
    bound = filled["cases"][0]["when"]
    assert bound.values == {"s.ok": 5, "${NUM}": 3, "gone.x": None, "${NOPE}": None}
    assert bound.texts == {"${NUM}": "3"}
    assert 'v["s.ok"]' in bound.source and "<" not in bound.source
    assert filled["cases"][1:] == [{"when": " "}, {"when": True}]  # no expression, no Bound


def test_code_without_references_is_bound_too() -> None:
    assert fill({"x": "1 < 2"}, code=("/x",)) == {"x": Bound("1 < 2", {}, {})}


def test_pointers_are_escaped() -> None:
    assert isinstance(fill({"a/b": {"c~d": "1"}}, code=("/a~1b/c~0d",))["a/b"]["c~d"], Bound)


def test_skip_if() -> None:
    template = compile_template(make({}, policy=Policy(skip_if="<s.ok> === true")))
    bound = template.skip_if(values({"ok": True}), ())
    assert bound is not None and bound.values == {"s.ok": True}
    assert compile_template(make({})).skip_if(values(), ()) is None


def test_params_are_the_callers_own() -> None:
    held = values({"list": [1]}, {"v": {"a": [1]}})
    template = compile_template(make({"x": "<s>", "v": "<workflow.v>", "fixed": [1], "r": {"$ref": "$.v"}}))
    first = template.fill(held, ())
    first["x"]["list"].append(2)
    first["v"]["a"].append(2)
    first["r"]["a"].append(2)
    first["fixed"].append(2)
    assert template.fill(held, ()) == {"x": {"list": [1]}, "v": {"a": [1]}, "fixed": [1], "r": {"a": [1]}}


def test_nodes_without_params_share_what_is_compiled() -> None:
    """A chain of a hundred thousand steps keeps one for each of its nodes."""
    bare = compile_template(make({}))
    assert compile_template(make({})) is bare
    assert compile_template(make({}, policy=Policy(skip_if="true"))) is not bare
    assert bare.fill(values(), ()) == {}


def test_a_strict_reference_fails_wherever_it_stands() -> None:
    strict = Ref("s.nosuch", "block", 0, path=("nosuch",), strict=True)
    for params, code in (({"x": "<s.nosuch>"}, ()), ({"x": "a <s.nosuch>"}, ()), ({"x": "<s.nosuch> > 1"}, ("/x",))):
        with pytest.raises(BlockError) as caught:
            fill(params, {"ok": 1}, needs=(strict,), code=code)
        assert (caught.value.code, caught.value.retryable) == ("reference_failed", False)


def test_an_end_sentinel_gets_no_size() -> None:
    params = {"mode": "each", "items": "<s>", "count": 3, "max": 5}
    assert fill(params, [1, 2], sentinel="end", body=1) == {"mode": "each", "max": 5}
    assert fill(params, [1, 2], sentinel="start", body=1) == {"mode": "each", "items": [1, 2], "count": 3, "max": 5}


def test_a_text_has_a_bound() -> None:
    big = "x" * (SIZE_MAX_BYTES // 2 - 2)
    assert len(fill({"x": "<s><s>"}, big)["x"]) == len(big) * 2
    with pytest.raises(BlockError) as caught:
        fill({"x": "<s><s>12345"}, big)
    assert caught.value.code == "payload_too_large"


@pytest.mark.parametrize("count", [2000])
def test_a_join_of_two_thousand_outputs_is_linear(count: int, make_node: Callable[..., Node]) -> None:
    def cost(size: int) -> float:
        refs = tuple(Ref(f"n{i}.v", "block", i, path=("v",)) for i in range(size))
        texts = [f"<n{i}.v>" for i in range(size)]
        nodes = [make_node(f"n{i}") for i in range(size)]
        join = Node(
            id="join", block="join", type="task", name="join", needs=refs,
            params=Raw(encode({"text": " ".join(texts), "list": texts})),
        )  # fmt: skip
        root = Region("", "root", -1, 0, (*nodes, join), (0,) * (size + 1), (0,), (size,))
        held = Values(Plan("t", "n0", (root,)), None, {})
        for i in range(size):
            held.succeeded(((), i), encode({"v": i}))
        started = time.thread_time()
        filled = compile_template(join).fill(held, ())
        took = time.thread_time() - started
        assert filled["list"] == list(range(size)) and filled["text"] == " ".join(map(str, range(size)))
        return took

    small = min(cost(count // 10) for _ in range(3))
    # ten times the outputs: a quadratic join would cost a hundred times as much
    assert min(cost(count) for _ in range(3)) < 60 * small + 0.5


def test_what_is_literal_stays_as_it_is() -> None:
    raw = {"a": ["<s>", {"$ref": "$.v"}]}
    assert fill({"raw": raw, "read": "<s>"}, 5, {"v": 6}, literal=("/raw",)) == {"raw": raw, "read": 5}
