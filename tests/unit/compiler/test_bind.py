from __future__ import annotations

from typing import Any

import pytest

from compiler.compile import compile_document
from compiler.plan import Plan, Ref

from .support import CATALOG, CONDITION, block, codes, compiled, doc, node, only, plan_of, ref

LOOP = {
    "l": block(
        "loop", name_="Review", mode="while", condition="<loop.index> < 3 && <b.ok> && <start.x> && <review.results>"
    ),
    "a": block(parent="l", own="<loop.index>", named="<review.iteration>", back="<b.out>", self="<a.out>"),
    "b": block(parent="l", here="<A.out>", outer="<start.x>"),
    "z": block(all="<review.results[0]>", last="<Review.last.b>", inner="<b.out>"),
}
WIRES = "start l; l.body a; a b; l z"


def _number(plan: Plan, node_id: str) -> int:
    number = plan.node_index(node_id)
    assert number is not None
    return number


def test_loop_references() -> None:
    plan = plan_of(LOOP, WIRES)
    body, start, a, b, end = 1, *(_number(plan, i) for i in ("start", "a", "b", "l:end"))
    assert ref(plan, "a", "loop.index") == Ref("loop.index", "scope", region=body, path=("index",))
    assert ref(plan, "a", "review.iteration") == Ref("review.iteration", "scope", region=body, path=("iteration",))
    assert ref(plan, "a", "b.out") == Ref("b.out", "block", node=b, region=body, mode="previous", path=("out",))
    assert ref(plan, "a", "a.out") == Ref("a.out", "block", node=a, region=body, mode="previous", path=("out",))
    assert ref(plan, "b", "A.out") == Ref("A.out", "block", node=a, path=("out",))
    assert ref(plan, "b", "start.x") == Ref("start.x", "block", node=start, path=("x",))
    assert ref(plan, "z", "review.results[0]") == Ref("review.results[0]", "block", node=end, path=("results", 0))
    assert ref(plan, "z", "Review.last.b") == Ref("Review.last.b", "block", node=end, path=("last", "b"))
    assert ref(plan, "z", "b.out") == Ref("b.out", "block", node=b, mode="last", path=("out",))


@pytest.mark.parametrize("sentinel", ["l:start", "l:end"])
def test_the_test_of_a_loop_reads_from_the_next_iteration(sentinel: str) -> None:
    plan = plan_of(LOOP, WIRES)
    assert ref(plan, sentinel, "loop.index") == Ref("loop.index", "scope", region=1, path=("index",))
    assert ref(plan, sentinel, "review.results").kind == "scope"
    b = ref(plan, sentinel, "b.ok")
    assert (b.mode, b.region, b.node) == ("previous", 1, plan.node_index("b"))
    assert ref(plan, sentinel, "start.x").mode == "current"
    assert node(plan, sentinel).code == ("/condition",)


def test_items_of_a_container_are_read_from_outside() -> None:
    plan = plan_of(
        {
            "o": block("loop", mode="each", items="<start.list>"),
            "i": block("parallel", "o", mode="each", items="<loop.item>"),
            "a": block(
                parent="i", x="<parallel.item>", y="<o.item>", z="<parallel.currentItem.k>", w="<loop.currentItem>"
            ),
        },
        "start o; o.body i; i.body a",
    )
    assert ref(plan, "o:start", "start.list").kind == "block"
    assert ref(plan, "i:start", "loop.item") == Ref("loop.item", "scope", region=1, path=("item",))
    assert node(plan, "i:end").needs == ()
    assert ref(plan, "a", "parallel.item").region == 2
    assert ref(plan, "a", "o.item").region == 1
    assert ref(plan, "a", "parallel.currentItem.k").path == ("item", "k")
    assert ref(plan, "a", "loop.currentItem").path == ("item",)


def test_a_parallel_cannot_be_looked_into() -> None:
    result = compiled(
        {"p": block("parallel", count=2, name_="Fan"), "a": block(parent="p"), "z": block(x="<a.out>")},
        "start p; p.body a; p z",
    )
    finding = only(result, "reference_into_parallel")
    assert finding.pointer == "/blocks/z/params/x"
    assert finding.hint == "Use <Fan.results>, a list with one entry per branch."


def test_upstream_is_needed_outside_of_loops() -> None:
    result = compiled(
        {"a": block(x="<b.out>", y="<a.out>"), "b": block(), "c": block(x="<b.out>")}, "start a; a b; start c"
    )
    found = [(d.block, d.pointer) for d in result.diagnostics if d.code == "reference_not_upstream"]
    assert found == [("a", "/blocks/a/params/x"), ("a", "/blocks/a/params/y"), ("c", "/blocks/c/params/x")]


def test_feedback_through_a_parallel_goes_to_the_loop_around() -> None:
    plan = plan_of(
        {
            "l": block("loop", count=2),
            "p": block("parallel", "l", count=2),
            "a": block(parent="p", x="<b.out>"),
            "b": block(parent="p"),
        },
        "start l; l.body p; p.body a; a b",
    )
    assert (ref(plan, "a", "b.out").mode, ref(plan, "a", "b.out").region) == ("previous", 1)


def test_skipped_blocks_warn_unless_there_is_a_default() -> None:
    blocks = {
        "c": block("condition", cases=CONDITION),
        "a": block(),
        "b": block(),
        "m": block(x="<a.out>", y="<b.out ?? 0>", z="<c.case>"),
    }
    result = compiled(blocks, "c.yes a; c.no b; a m; b m")
    assert only(result, "reference_may_be_skipped").pointer == "/blocks/m/params/x"
    assert result.plan is not None
    assert ref(result.plan, "m", "b.out ?? 0").default == "0"


@pytest.mark.parametrize(
    ("wires", "warns"),
    [
        ("start a; start b; a m; b m", False),  # both always run
        ("start c; c.yes x; x a; x b; a m; b m", False),  # whenever x runs, so does a
        ("start c; c.yes a; c.no b; a m; b m", True),
        ("start a; a.error b; a m; b m", False),  # a itself ran or failed
        ("start x; x a; x.error b; a m; b m", True),
        ("start c; c.yes a; a m; start m", True),
    ],
)
def test_what_may_be_skipped(wires: str, warns: bool) -> None:
    blocks = {
        "c": block("condition", cases=CONDITION),
        "x": block(),
        "a": block(),
        "b": block(),
        "m": block(x="<a.out>"),
    }
    assert ("reference_may_be_skipped" in codes(compiled(blocks, wires))) is warns


def test_names_ignore_case_blanks_and_dots_and_the_longest_wins() -> None:
    plan = plan_of(
        {
            "a": block(name_="Draft"),
            "b": block(name_="Draft v1.2"),
            "c": block(w="<draft.out>", x="<DRAFT V1.2.out>", y="<draftv12.out>", z="<b.out>"),
        },
        "start a; a b; b c",
    )
    assert [plan.node(r.node).id for r in node(plan, "c").needs] == ["a", "b", "b", "b"]
    assert {r.path for r in node(plan, "c").needs} == {("out",)}


def test_ambiguous_names_warn() -> None:
    result = compiled(
        {"a": block(name_="Same"), "b": block(name_="same"), "c": block(x="<same.out>", y="<b.out>")}, "a b; b c"
    )
    assert only(result, "name_ambiguous").message == "<same.out>: 2 blocks have this name. <a> is read."


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("<darft.x>", "reference_unknown"),
        ("<unknown.x>", None),
        ("<draft.x; y>", None),
        ("a < b and c > d", None),
        ("<b>bold</b>", None),
        ("<loop.index>", "reference_outside_container"),
        ("<variable.nope>", "variable_undeclared"),
        ("<workflow.stauts>", "variable_undeclared"),
    ],
)
def test_what_names_nothing_stays_text(text: str, code: str | None) -> None:
    result = compiled({"draft": block(), "z": block(x=text)}, "draft z", variables={"status": 1})
    assert codes(result) == ([code] if code else [])
    assert result.plan is not None
    assert node(result.plan, "z").needs == ()


def test_variables_input_and_environment() -> None:
    plan = plan_of(
        {
            "a": block(
                x="<workflow.My Status.deep[0]>",
                y="<variable.mystatus>",
                z="<input.amount ?? 1>",
                w="k=${API_KEY} ${lower}",
            )
        },
        variables={"my status": {}},
    )
    needs = {r.text: r for r in node(plan, "a").needs}
    assert needs["workflow.My Status.deep[0]"].path == ("my status", "deep", 0)
    assert needs["variable.mystatus"].path == ("my status",)
    assert (needs["input.amount ?? 1"].kind, needs["input.amount ?? 1"].path) == ("input", ("amount",))
    assert needs["${API_KEY}"] == Ref("${API_KEY}", "env", path=("API_KEY",))
    assert "${lower}" not in needs


def test_environment_names_that_are_known() -> None:
    document = doc({"a": block(x="${lower} ${OTHER}")})
    result = compile_document(document, CATALOG, env_names=["lower", "OTHERS"])
    assert only(result, "env_unknown").hint == 'Did you mean "OTHERS"?'
    assert result.plan is not None
    assert [r.text for r in node(result.plan, "a").needs] == ["${lower}", "${OTHER}"]


@pytest.mark.parametrize(
    ("text", "strict", "warns"),
    [
        ("<f.result.deep.er>", False, False),
        ("<f.output.result>", False, False),
        ("<f.error.code>", False, False),
        ("<f.rsult>", True, True),
        ("<f>", False, False),
        ("<l.index>", True, True),
        ("<l.results>", False, False),
        ("<a.whatever>", False, False),
    ],
)
def test_fields_are_compared_with_the_output_schema(text: str, strict: bool, warns: bool) -> None:
    blocks = {
        "f": block("function", code="return 1"),
        "l": block("loop", count=1),
        "a": block(parent="l"),
        "z": block(x=text),
    }
    result = compiled(blocks, "f l; l.body a; l z")
    assert result.plan is not None
    assert node(result.plan, "z").needs[0].strict is strict
    assert ("reference_unknown_field" in codes(result)) is warns


def test_a_block_that_is_not_in_the_plan_reads_as_nothing() -> None:
    result = compiled(
        {"a": block(enabled_=False), "hook": block("webhook"), "z": block(x="<a.out>", y="<hook.body ?? 1>")},
        "start z; hook z",
    )
    assert [d.code for d in result.diagnostics] == ["reference_absent", "reference_absent"]
    assert result.plan is not None
    assert {(r.kind, r.path) for r in node(result.plan, "z").needs} == {("variable", ("",))}


def test_a_default_must_be_json() -> None:
    result = compiled({"a": block(), "z": block(x="<a.out ?? none>", y="<unknown.out ?? none>")}, "a z")
    assert only(result, "reference_default_invalid").pointer == "/blocks/z/params/x"


def test_code_is_bound_and_literals_are_left_alone() -> None:
    code = "const KEY = 1; // <start.c>\nreturn `${KEY} ${TOKEN}` + '<start.s>' + <start.v> + (a <b.c && d> e)"
    plan = plan_of(
        {"b": block(), "f": block("function", code=code), "h": block("http", raw="<start.raw>", url="<start.url>")},
        "start b; b f; f h",
    )
    assert [r.text for r in node(plan, "f").needs] == ["${TOKEN}", "start.s", "start.v"]
    assert node(plan, "f").code == ("/code",)
    assert [r.text for r in node(plan, "h").needs] == ["start.url"]


def test_each_text_is_needed_once_and_skip_if_counts() -> None:
    plan = plan_of(
        {"a": block(x="<start.n> <start.n>", y={"z": ["<start.n>"]}, policy_={"skip_if": "<start.skip> || <start.n>"})}
    )
    assert [r.text for r in node(plan, "a").needs] == ["start.n", "start.skip"]


def test_variable_paths() -> None:
    params: dict[str, Any] = {"x": {"$ref": "$.declared.a[0]"}, "y": {"$ref": "$.nope"}, "z": {"$ref": "$.bad path"}}
    result = compiled({"a": block(assign_="hit", **params)}, variables={"declared": 1})
    assert only(result, "variable_undeclared").pointer == "/blocks/a/params/y/$ref"
    assert [d.pointer for d in result.diagnostics if d.code == "path_invalid"] == [
        "/blocks/a/assign",
        "/blocks/a/params/z/$ref",
    ]
