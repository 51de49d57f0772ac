"""The compiler takes anything: see `oracle.check`."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.blocks.registry import Registry
from tests.fuzz.budget import examples
from tests.fuzz.documents import Document, documents
from tests.fuzz.mutations import ODD_VALUES, spoiled
from tests.fuzz.oracle import check

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.json"))
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
anything = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@examples(100)
@given(document=documents())
def test_documents_that_are_right_compile(registry: Registry, document: Document) -> None:
    compiled = check(orjson.dumps(document), registry)
    assert compiled.plan is not None, compiled.diagnostics


@examples(800)
@given(data=spoiled())
def test_documents_that_are_wrong_are_told_so(registry: Registry, data: bytes) -> None:
    check(data, registry)


@examples(100)
@given(data=st.binary(max_size=200) | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_bytes_of_any_kind(registry: Registry, data: bytes) -> None:
    check(data, registry)


@examples(150)
@given(
    document=st.fixed_dictionaries(
        {},
        optional={
            "format": st.just("weft/1") | anything,
            "name": anything,
            "blocks": st.dictionaries(st.sampled_from(["start", "a", "b", "ß"]), anything) | anything,
            "edges": st.lists(anything, max_size=3) | anything,
            "settings": anything,
            "variables": anything,
            "input": anything,
            "connections": anything,
            "loops": anything,
            "state": anything,
            "version": anything,
        },
    )
)
def test_json_of_any_kind(registry: Registry, document: Document) -> None:
    """Members of both formats, ours and Sim's, with anything in them."""
    check(orjson.dumps(document), registry)


@examples(150)
@given(
    type=st.sampled_from(
        ["set", "http", "condition", "router", "loop", "parallel", "function", "approval", "variables"]
    ),
    params=st.dictionaries(
        st.sampled_from(
            [
                "value",
                "url",
                "cases",
                "routes",
                "mode",
                "count",
                "items",
                "condition",
                "code",
                "fields",
                "actions",
                "assign",
            ]
        ),
        anything | st.sampled_from(ODD_VALUES),
    ),
    policy=anything | st.dictionaries(st.sampled_from(["retry", "skip_if", "group", "cache"]), anything),
)
def test_params_of_any_kind(registry: Registry, type: str, params: Document, policy: object) -> None:
    block = {"type": type, "params": params, "policy": policy, "assign": "$.x"}
    blocks = {"start": {"type": "start"}, "a": block, "b": {"type": "set", "parent": "a", "params": {"value": 1}}}
    edges = [{"source": "start", "target": "a"}, {"source": "a", "handle": "body", "target": "b"}]
    check(orjson.dumps({"format": "weft/1", "blocks": blocks, "edges": edges}), registry)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_went_wrong_before(registry: Registry, path: Path) -> None:
    """{"why", "text": the document as text, or "document", "errors": codes that must be among its errors}."""
    case = orjson.loads(path.read_bytes())
    data = case["text"].encode("utf-8", "surrogatepass") if "text" in case else orjson.dumps(case["document"])
    compiled = check(data, registry)
    assert set(case["errors"]) <= {d.code for d in compiled.diagnostics if d.severity == "error"}, compiled.diagnostics
    assert bool(case["errors"]) == (compiled.plan is None)
