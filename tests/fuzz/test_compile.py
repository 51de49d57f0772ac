"""The compiler takes anything: see `oracle.check`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import orjson
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from compiler.document import PolicyDoc
from executor.blocks.types.registry import Registry
from tests.fuzz.budget import EXAMPLES, FIRST_SEED, examples, rounds
from tests.fuzz.documents import documents
from tests.fuzz.mutations import spoiled
from tests.fuzz.nonsense import FOR, ODD_VALUES
from tests.fuzz.oracle import check, check_all
from tests.fuzz.params import PARAMS, Document

pytestmark = pytest.mark.proof

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.json"))
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
anything = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


# Enough parts to spread over processes, each far below the time limit of a test.
@pytest.mark.parametrize("part", range(7 if EXAMPLES else 3))
def test_wrong_documents_are_refused(registry: Registry, part: int) -> None:
    @seed(FIRST_SEED + part)
    @examples(200)
    @given(data=spoiled())
    def compile(data: bytes) -> None:
        check_all(data, registry)

    compile()


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


@examples(200)
@given(data=st.data(), type=st.sampled_from(sorted(PARAMS)))
def test_params_of_any_kind(registry: Registry, data: st.DataObject, type: str) -> None:
    """Every block type with anything in each of its params and policies."""
    spec = registry.get(type)
    assert spec is not None, type
    params = data.draw(_members(spec.params["properties"]))
    block = {"type": type, "params": params, "policy": data.draw(anything | _members(PolicyDoc.__struct_fields__))}
    block |= data.draw(_members(["assign", "output_schema", "name"]))
    blocks = {"start": {"type": "start"}, "a": block, "b": {"type": "set", "parent": "a", "params": {"value": 1}}}
    edges = [{"source": "start", "target": "a"}, {"source": "a", "handle": "body", "target": "b"}]
    document = json.dumps({"format": "weft/1", "blocks": blocks, "edges": edges})
    check(document.encode(), registry)


def _members(names: Iterable[str]) -> st.SearchStrategy[Document]:
    """Some of these fields, with anything in them, or with nonsense of their own."""
    values = {name: st.sampled_from([*FOR.get(name, ()), *ODD_VALUES]) | anything for name in names}
    return st.fixed_dictionaries({}, optional=values)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_soak(registry: Registry) -> None:
    """Other documents every time; the seed of a round that fails is printed."""
    for number in rounds():

        @seed(number)
        @settings(max_examples=100, derandomize=False)
        @given(data=spoiled() | documents().map(orjson.dumps))
        def compile(data: bytes) -> None:
            check_all(data, registry)

        compile()


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_went_wrong_before(registry: Registry, path: Path) -> None:
    """{"why", "text": the document as text, or "document", "errors": codes that must be among its errors}."""
    case = orjson.loads(path.read_bytes())
    data = case["text"].encode("utf-8", "surrogatepass") if "text" in case else orjson.dumps(case["document"])
    compiled = check(data, registry)
    assert set(case["errors"]) <= {d.code for d in compiled.diagnostics if d.severity == "error"}, compiled.diagnostics
    assert bool(case["errors"]) == (compiled.plan is None)
