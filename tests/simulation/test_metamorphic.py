"""What must not matter: the order of a document, the names of its blocks, what nothing leads to, a step in between.

Each random workflow is written down in another way, compiled, and run in some order with faults; the run has to come to
what the reference says of the workflow as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pytest

from compiler.compile import compile_document
from compiler.plan import Plan
from tests.simulation.check import agree
from tests.simulation.document import Blocks, document_of
from tests.simulation.reference import judge
from tests.support.core.drive import Drive, Faults
from tests.support.core.generator import Behaviour, Block, Place, Table, Workflow, every, generate
from tests.support.core.watch import Observed

pytestmark = pytest.mark.proof

SEEDS = 100
CHUNK = 25
STEP = "between"  # the block that splits an edge


@pytest.mark.parametrize("start", range(0, SEEDS, CHUNK))
def test_the_order_in_a_document_does_not_matter(start: int) -> None:
    for workflow, table, rng in _workflows(start):
        document = document_of(workflow, rng)
        backwards = {**document, "blocks": dict(reversed(document["blocks"].items())), "edges": document["edges"][::-1]}
        for other in (document, backwards):
            _same(workflow, table, Drive(workflow, _plan(other), table, 1, Faults.draw(rng)).run())


@pytest.mark.parametrize("start", range(0, SEEDS, CHUNK))
def test_names_do_not_matter(start: int) -> None:
    for workflow, table, rng in _workflows(start):
        numbers = rng.sample(range(1000), len(workflow.by_id))  # no order of names is kept
        new = {old: f"n{number}" for old, number in zip(workflow.by_id, numbers, strict=True)}
        back = {name: old for old, name in new.items()}
        renamed = replace(workflow, blocks=[_renamed(block, new) for block in workflow.blocks])
        plan = _plan(document_of(renamed, rng))
        seen = Drive(renamed, plan, _Renamed(table, renamed, back), 1, Faults.draw(rng)).run()
        _same(workflow, table, _translated(seen, partial(_by_old_names, back)))


@pytest.mark.parametrize("start", range(0, SEEDS, CHUNK))
def test_what_nothing_leads_to_does_not_matter(start: int) -> None:
    for workflow, table, rng in _workflows(start):
        document = document_of(workflow, rng)
        alone = _plan(document)
        into = rng.choice(workflow.blocks[1:] or [None])
        document["blocks"] = {"lost": {"type": "choice"}, **document["blocks"], "after": {"type": "response"}}
        document["edges"].insert(0, {"source": "lost", "handle": "a", "target": "after"})
        if into is not None:  # nor does it hold up what waits for it
            document["edges"].insert(0, {"source": "lost", "handle": "b", "target": into.id})
        plan = _plan(document)
        assert plan == alone
        _same(workflow, table, Drive(workflow, plan, table, 1, Faults.draw(rng)).run())


@pytest.mark.parametrize("start", range(0, SEEDS, CHUNK))
def test_a_step_in_between_does_not_matter(start: int) -> None:
    for workflow, table, rng in _workflows(start):
        longer = deepcopy(workflow)
        places = [region for region in _regions(longer.blocks) if any(block.out for block in region)]
        if not places:
            continue
        region = rng.choice(places)
        source = rng.choice([block for block in region if block.out])
        edge = rng.randrange(len(source.out))
        handle, target = source.out[edge]
        source.out[edge] = (handle, STEP)
        between = Block(STEP, "plain", inline=rng.random() < 0.5, out=[("out", target)])
        region.insert([block.id for block in region].index(target), between)
        longer = replace(longer)  # what it knows by id is known anew
        seen = Drive(longer, _plan(document_of(longer, rng)), _Stepped(table, longer), 1, Faults.draw(rng)).run()
        _same(workflow, table, _translated(seen, lambda label: "" if label.startswith(STEP) else label))


def _workflows(start: int) -> Iterator[tuple[Workflow, Table, Random]]:
    for seed in range(start, start + CHUNK):
        workflow = generate(seed)
        yield workflow, Table(workflow), Random(f"{seed} metamorphic")


def _plan(document: dict[str, Any]) -> Plan:
    compiled = compile_document(document, Blocks())
    assert compiled.plan is not None, compiled.diagnostics
    return compiled.plan


def _same(workflow: Workflow, table: Table, seen: Observed) -> None:
    agree(judge(workflow, table), seen)


def _translated(seen: Observed, label_of: Callable[[str], str]) -> Observed:
    """With other labels; those that become empty are left out."""

    def these(by_label: dict[str, Any]) -> dict[str, Any]:
        return {label_of(label): value for label, value in by_label.items() if label_of(label)}

    return replace(seen, decided=these(seen.decided), position=these(seen.position), counts=these(seen.counts))


def _by_old_names(back: dict[str, str], label: str) -> str:
    return re.sub(r"n\d+", lambda found: back[found[0]], label)


def _renamed(block: Block, new: dict[str, str]) -> Block:
    out = [(handle, new[target]) for handle, target in block.out]
    body, cleanup = ([_renamed(child, new) for child in inside] for inside in (block.body, block.cleanup))
    return replace(block, id=new[block.id], out=out, body=body, cleanup=cleanup)


def _regions(blocks: list[Block]) -> Iterator[list[Block]]:
    yield blocks
    for block in every(blocks):
        yield from (inside for inside in (block.body, block.cleanup) if inside)


class _Renamed(Table):
    """What blocks do by their names of before."""

    def __init__(self, table: Table, renamed: Workflow, back: dict[str, str]) -> None:
        super().__init__(renamed)
        self._table, self._back = table, back

    def of(self, block: Block, place: Place) -> Behaviour:
        before = self._table.workflow.by_id[self._back[block.id]]
        return self._table.of(before, tuple((_by_old_names(self._back, name), n) for name, n in place))


class _Stepped(Table):
    """The new block does nothing; the others do what they did."""

    def __init__(self, table: Table, longer: Workflow) -> None:
        super().__init__(longer)
        self._table = table

    def of(self, block: Block, place: Place) -> Behaviour:
        return Behaviour() if block.id == STEP else self._table.of(self._table.workflow.by_id[block.id], place)
