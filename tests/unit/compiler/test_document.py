from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.compile import compile_document
from compiler.document import Limits
from tests.support.cost import computes_within

from .support import CATALOG, block, codes, compiled, doc, only


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"{", "json_malformed"),
        (b"", "json_malformed"),
        (b"[1]", "json_malformed"),
        (b"\xff\xfe", "json_malformed"),
        (b'{"a": NaN}', "json_malformed"),
        ("{\ud800", "json_malformed"),
        (b"[" * 10_000 + b"]" * 10_000, "json_too_deep"),
        (b'{"blocks":' * 10_000 + b"1" + b"}" * 10_000, "json_too_deep"),
        (b'{"x":' + b"[" * 70 + b"]" * 70 + b"}", "json_too_deep"),
        (b'{"x":"' + b"a" * 5_000_000 + b'"}', "document_too_large"),
        (b"{" * 5_000_000, "document_too_large"),
        (b"{}", "format_unknown"),
        (b'{"blocks": 3}', "format_unknown"),
        ({"x": {1, 2}}, "json_malformed"),
    ],
)
def test_what_is_no_document_gives_a_diagnostic_fast(data: Any, code: str) -> None:
    with computes_within(1):
        result = compile_document(data, CATALOG)
    assert result.plan is None
    assert codes(result) == [code]


def test_malformed_json_says_where() -> None:
    message = only(compile_document(b'{"a": 1,\n  oops}', CATALOG), "json_malformed").message
    assert "line 2" in message


def test_a_deep_mapping_is_refused_too() -> None:
    nested: dict[str, Any] = {}
    for _ in range(10_000):
        nested = {"x": nested}
    assert codes(compile_document(nested, CATALOG)) == ["json_too_deep"]


def test_depth_at_the_bound_passes_and_one_more_does_not() -> None:
    def nested(depth: int) -> dict[str, Any]:
        value: Any = 1
        for _ in range(depth):
            value = [value]
        return doc({"a": block("set", value=value)})

    fits = 64 - 4  # document, blocks, block, params
    assert compile_document(nested(fits), CATALOG).plan is not None
    assert codes(compile_document(nested(fits + 1), CATALOG)) == ["json_too_deep"]


def test_all_broken_blocks_and_edges_are_reported_at_once() -> None:
    document = doc({"a": block()})
    document["blocks"] |= {"b": {"name": "no type"}, "c": 7, "bad id!": block(), "d": block(policy_={"timeout_s": -1})}
    document["edges"] += [{"source": "start"}, "x"]
    document["settings"] = {"max_concurrency": 0}
    result = compile_document(document, CATALOG)
    pointers = {d.pointer for d in result.diagnostics if d.code == "field_invalid"}
    assert pointers >= {
        "/blocks/b",
        "/blocks/c",
        "/blocks/d/policy/timeout_s",
        "/edges/1",
        "/edges/2",
        "/settings/max_concurrency",
    }
    assert only(result, "id_invalid").pointer == "/blocks/bad id!"


def test_limits_are_settings() -> None:
    blocks = {f"b{i}": block() for i in range(4)}
    wires = "; ".join(f"start b{i}" for i in range(4))
    assert codes(compiled(blocks, wires, limits=Limits(blocks=5, edges=4))) == []
    assert codes(compiled(blocks, wires, limits=Limits(blocks=4)), "error")[0] == "too_many_blocks"
    assert codes(compiled(blocks, wires, limits=Limits(edges=3)), "error") == ["too_many_edges"]
    assert codes(compiled({"a": block(x="y" * 11)}, limits=Limits(text_length=10))) == ["text_too_long"]


def test_the_largest_document_and_one_block_more() -> None:
    blocks = {f"b{i}": block() for i in range(1_999)}
    wires = "; ".join(f"start b{i}" for i in range(1_999))
    assert codes(compiled(blocks, wires)) == []
    assert codes(compiled({**blocks, "more": block()}, wires), "error")[0] == "too_many_blocks"


def test_an_unknown_field_gives_a_hint() -> None:
    result = compiled({"a": {"type": "task", "parrams": {}}})
    finding = only(result, "field_unknown")
    assert (finding.pointer, finding.severity, finding.hint) == (
        "/blocks/a/parrams",
        "warning",
        'Did you mean "params"?',
    )


def test_policy_and_settings_reach_the_plan() -> None:
    policy = {
        "retry": {"max_attempts": 5, "backoff": "fixed", "initial_ms": 10},
        "timeout_s": 1.5,
        "on_error": "continue",
        "group": "g",
        "skip_if": "<start.x>",
    }
    result = compiled(
        {"a": block(policy_=policy, assign_="$.hit"), "b": block()},
        "start a; a b",
        settings={
            "groups": {"g": 4},
            "max_concurrency": 7,
            "timeout_s": 60,
            "on_failure": "cancel",
            "durability": "ahead",
        },
        variables={"hit": None},
    )
    plan = result.plan
    assert plan is not None
    a = plan.nodes[1]
    assert (a.policy.retry.max_attempts, a.policy.retry.backoff, a.policy.retry.initial_ms) == (5, "fixed", 10)
    assert (a.policy.timeout_ms, a.policy.on_error, a.policy.group, a.policy.skip_if) == (
        1500,
        "continue",
        1,
        "<start.x>",
    )
    assert a.policy.assign == "$.hit"
    assert [r.text for r in a.needs] == ["start.x"]
    assert plan.nodes[2].policy.retry.max_attempts == 3, "the block type's default"
    assert (plan.groups[1].name, plan.groups[1].limit) == ("g", 4)
    settings = plan.settings
    assert (settings.max_concurrency, settings.timeout_ms, settings.on_failure, settings.durability) == (
        7,
        60_000,
        "cancel",
        "ahead",
    )


def test_policy_mistakes() -> None:
    result = compiled(
        {"a": block(policy_={"group": "opnai", "cache": {"ttl_s": 3}})}, settings={"groups": {"openai": 1}}
    )
    assert only(result, "group_unknown").hint == 'Did you mean "openai"?'
    assert only(result, "cache_unfit").pointer == "/blocks/a/policy/cache"
    assert compiled({"a": block(policy_={"cache": None, "skip_if": None})}).plan is not None


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.text(max_size=8)
    | st.sampled_from(["task", "loop", "<a.x>", "start"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["task", "loop", "parallel", "condition", "start", "router", "variables", "nope"])
        | JSON,
        "parent": st.sampled_from(["a", "b", "c", "start"]) | JSON,
        "params": st.dictionaries(
            st.sampled_from(["mode", "count", "items", "cases", "x", "condition", "assign"]), JSON
        )
        | JSON,
        "policy": JSON,
        "enabled": st.booleans() | JSON,
        "name": JSON,
    },
)
EDGE = st.fixed_dictionaries(
    {"source": st.sampled_from(["a", "b", "c", "start"]) | JSON, "target": st.sampled_from(["a", "b", "c"]) | JSON},
    optional={"handle": st.sampled_from(["body", "out", "error", "yes"]) | JSON},
)


@settings(max_examples=150, deadline=None)
@given(
    blocks=st.dictionaries(st.sampled_from(["a", "b", "c", "start"]), FIELDS | JSON),
    wires=st.lists(EDGE | JSON, max_size=8),
    more=JSON,
)
def test_no_document_raises(blocks: Any, wires: Any, more: Any) -> None:
    document = {
        "format": "weft/1",
        "blocks": blocks,
        "edges": wires,
        "variables": more,
        "settings": more,
        "input": more,
    }
    result = compile_document(orjson.dumps(document), CATALOG)
    assert (result.plan is None) == any(d.severity == "error" for d in result.diagnostics)
