from __future__ import annotations

import re

import orjson

from compiler.compile import compile_document
from compiler.diagnostics import FINDINGS_MAX, CompileError, suggest
from compiler.plan import decode, encode
from tests.support.cost import computes_within

from .support import BIG, CATALOG, CONDITION, block, codes, compiled, doc, only, plan_of


def test_bytes_text_and_mapping_give_the_same_plan() -> None:
    document = doc({"a": block(x="<start.x>")})
    data = orjson.dumps(document)
    plans = [compile_document(d, CATALOG).plan for d in (document, data, data.decode(), bytearray(data))]
    assert len({plan.hash for plan in plans if plan is not None}) == 1
    assert None not in plans


def test_a_plan_survives_its_encoding() -> None:
    plan = plan_of({"c": block("condition", cases=CONDITION), "a": block(x="<c.case ?? 0>")}, "c.yes a; c.no a")
    again = decode(encode(plan))
    assert again == plan
    assert again.hash == plan.hash


def test_another_definition_has_another_hash() -> None:
    assert plan_of({"a": block(x=1)}).hash != plan_of({"a": block(x=2)}).hash
    assert plan_of({"a": block(at_=[1, 2])}).hash == plan_of({"a": block()}).hash, "positions do not count"


def test_errors_come_first_and_all_at_once() -> None:
    result = compiled({"a": block("nope"), "b": block("http", method=1), "lost": block()}, "start a; a b; b zzz")
    assert codes(result) == ["edge_target_missing", "block_type_unknown", "param_invalid", "block_unreachable"]
    reached = compiled({"a": block("nope"), "b": block("http", method=1)}, "start a; a b; b zzz").diagnostics
    error = CompileError(reached)
    assert re.fullmatch(r"/edges/2/target: .* \(and 2 more\)", error.message)
    assert str(error) == f"{error.message} {reached[0].hint}"


def test_findings_are_bounded() -> None:
    result = compiled({f"b{i}": block("nope") for i in range(2_000)}, "start b0", limits=BIG)
    assert len(result.diagnostics) == FINDINGS_MAX + 1
    assert "too_many_findings" in codes(result)


def test_another_format_is_refused() -> None:
    assert (
        only(compile_document(doc({"a": block()}) | {"format": "weft/9"}, CATALOG), "format_unknown").pointer
        == "/format"
    )
    unnamed = doc({"a": block()})
    del unnamed["format"]
    result = compile_document(unnamed, CATALOG)
    assert result.plan is not None
    assert codes(result) == ["format_missing"]


def test_notes_are_no_nodes() -> None:
    plan = plan_of({"a": block(), "n": block("note", text="<a.x> !")}, notes=[{"text": "hi"}])
    assert [n.id for n in plan.nodes] == ["start", "a"]


def test_equal_expressions_are_checked_once() -> None:
    cases = [{"id": "yes", "when": "1 + 1 === 42"}, {"id": "no"}]
    before = len(CATALOG.checked)
    compiled({"a": block("condition", cases=cases), "b": block("condition", cases=cases)}, "a.yes b")
    assert CATALOG.checked[before:] == ["1 + 1 === 42"]


def test_big_documents_with_raised_limits() -> None:
    n = 2_000
    fan = {f"b{i}": block(x="<start.x>") for i in range(n)} | {"join": block(all=[f"<b{i}.out>" for i in range(n)])}
    wires = "; ".join(f"start b{i}; b{i} join" for i in range(n))
    chain = {f"b{i}": block(x=f"<b{i - 1}.out>" if i else "") for i in range(5_000)}
    with computes_within(15):
        plan = plan_of(fan, wires, limits=BIG)
        assert plan.regions[0].indegree[-1] == n
        assert len(plan.nodes[-1].needs) == n
        line = plan_of(chain, "start b0; " + "; ".join(f"b{i} b{i + 1}" for i in range(4_999)), limits=BIG)
        assert [n.id for n in line.nodes[-2:]] == ["b4998", "b4999"]


def test_suggest() -> None:
    assert suggest("Conditoin", ["condition", "router"]) == 'Did you mean "condition"?'
    assert suggest("zzz", ["condition"]) == ""
