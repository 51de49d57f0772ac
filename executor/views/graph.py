"""RunGraph: the plan's nodes and edges with what became of them, summed over all scopes."""

from __future__ import annotations

from collections import Counter

from compiler.plan import Plan
from executor.journal.projection import Entry
from executor.journal.reader import read
from executor.store.contract import Store
from executor.store.rows import TERMINAL, RunRow
from executor.views import GraphEdge, GraphNode, RunGraph
from executor.views.slices import SlicedProjection, Slices

# What a person wants to hear first about a node that is in several states at once.
_WORST = ("failed", "needs_attention", "running", "retrying", "waiting", "cancelled", "succeeded", "skipped", "pending")


async def build(store: Store, plan: Plan, row: RunRow) -> RunGraph:
    projection = SlicedProjection()
    slices = Slices()
    async for record in read(store, row.id, upto=row.seq):
        await slices.rest()
        projection.apply(Entry.of(record))
    if row.status in TERMINAL:
        projection.end()
    states: dict[int, Counter[str]] = {}
    routes: dict[int, Counter[str | None]] = {}
    for state in projection.taken_out():
        await slices.rest()
        number = plan.node_index(state.node)
        if number is not None:
            states.setdefault(number, Counter())[state.status] += 1
            if state.decided_seq is not None:
                routes.setdefault(number, Counter())[state.route] += 1
    return RunGraph(row.id, plan.hash, _nodes(plan, states), _edges(plan, routes))


def _nodes(plan: Plan, states: dict[int, Counter[str]]) -> tuple[GraphNode, ...]:
    out = []
    for number, node in enumerate(plan.nodes):
        counted = states.get(number, Counter())
        state = next((state for state in _WORST if counted[state]), "pending")
        region = plan.regions[plan.region_of[number]].id
        out.append(GraphNode(node.id, node.block, node.type, node.name, region, state, dict(counted), node.sentinel))
    return tuple(out)


def _edges(plan: Plan, routes: dict[int, Counter[str | None]]) -> tuple[GraphEdge, ...]:
    out = []
    for number, node in enumerate(plan.nodes):
        counted = routes.get(number, Counter())
        for edge in node.out:
            live = counted[edge.handle]
            dead = counted.total() - live
            state = "live" if live else "dead" if dead else "pending"
            counts = {name: count for name, count in (("live", live), ("dead", dead)) if count}
            out.append(GraphEdge(node.id, plan.nodes[edge.target].id, edge.handle, state, counts))
    return tuple(out)
