"""The generator itself: what it makes compiles, from each of its triggers, and nothing is missing in it."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import Phase, given, seed, settings

from compiler.plan import Plan
from executor.blocks.types.registry import Registry
from tests.fuzz.budget import examples
from tests.fuzz.documents import documents, triggers
from tests.fuzz.oracle import check
from tests.fuzz.params import Document
from tests.fuzz.parts import all_parts, parts_of

pytestmark = pytest.mark.proof

ROUNDS_MAX = 40  # three or four are enough as a rule; twelve were not once


@examples(150)
@given(document=documents())
def test_documents_that_are_right_compile(registry: Registry, document: Document) -> None:
    for trigger in (None, *triggers(document)):
        compiled = check(orjson.dumps(document), registry, trigger)
        assert compiled.plan is not None, compiled.diagnostics
        if trigger is not None and document["blocks"][trigger].get("enabled", True):
            assert _blocks_of(compiled.plan) == _reached_from(trigger, document)


def test_the_generator_knows_every_part(registry: Registry) -> None:
    """Block types with all their params and choices, policies, settings, fields: one that is new must be made, too."""
    missing = all_parts(registry)
    for round in range(ROUNDS_MAX):
        if not missing:
            return

        @seed(round)
        @settings(max_examples=200, derandomize=False, database=None, phases=[Phase.generate])
        @given(document=documents())
        def make(document: Document) -> None:
            missing.difference_update(parts_of(document))

        make()
    assert sorted(missing) == [], "tests/fuzz/params.py and documents.py should make these"


def _blocks_of(plan: Plan) -> set[str]:
    return {node.block for node in plan.nodes}


def _reached_from(trigger: str, document: Document) -> set[str]:
    """A second opinion: whatever edges lead to, without what is switched off."""
    blocks, reached, stack = document["blocks"], set(), [trigger]
    while stack:
        at = stack.pop()
        if at in reached or not blocks[at].get("enabled", True):
            continue
        reached.add(at)
        stack += [edge["target"] for edge in document["edges"] if edge["source"] == at]
    return reached
