"""RunGraph: the plan's nodes and edges with what became of them, summed over all scopes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson

from compiler.plan import Plan
from executor.store.contract import Store
from executor.store.rows import TERMINAL, RunRow
from executor.views import GraphEdge, GraphNode, RunGraph

PAGE = 10_000
# What a person wants to hear first about a node that is in several states at once.
_WORST = ("failed", "needs_attention", "running", "retrying", "waiting", "cancelled", "succeeded", "skipped", "pending")
_OPEN = ("running", "retrying", "waiting", "needs_attention")
_STATE = {
    "node.started": "running",
    "node.succeeded": "succeeded",
    "region.sized": "succeeded",
    "region.exited": "succeeded",
    "node.failed": "failed",
    "node.skipped": "skipped",
    "retry.scheduled": "retrying",
    "wait.opened": "waiting",
}


async def build(store: Store, plan: Plan, row: RunRow) -> RunGraph:
    states: dict[tuple[int, str], str] = {}
    routes: dict[tuple[int, str], str | None] = {}
    after = 0
    while records := await store.read_events(row.id, after, PAGE):
        for record in records:
            after = record.seq
            number = plan.node_index(record.node) if record.node else None
            state = _STATE.get(record.type)
            if number is None or state is None:
                continue
            key = (number, record.path)
            states[key] = state
            data: dict[str, Any] = orjson.loads(record.data) if record.data else {}
            if record.type == "node.failed" and data.get("route") is None and data["error"]["code"] == "cancelled":
                states[key] = "cancelled"  # stopped with its run: the word the run's own view uses
            if record.type == "wait.opened" and data["kind"] == "attention":
                states[key] = "needs_attention"
            if record.type in ("node.succeeded", "region.sized", "region.exited"):
                routes[key] = data.get("route", "out")
            elif record.type == "node.failed" or record.type == "node.skipped":
                passed = data.get("reason") in ("skip_if", "expired")
                routes[key] = "out" if passed else data.get("route")
    if row.status in TERMINAL:
        states = {key: "cancelled" if s in _OPEN else s for key, s in states.items()}
    return RunGraph(row.id, plan.hash, _nodes(plan, states), _edges(plan, routes))


def _nodes(plan: Plan, states: dict[tuple[int, str], str]) -> tuple[GraphNode, ...]:
    counts: dict[int, Counter[str]] = {}
    for (number, _), state in states.items():
        counts.setdefault(number, Counter())[state] += 1
    out = []
    for number, node in enumerate(plan.nodes):
        counted = counts.get(number, Counter())
        state = next((state for state in _WORST if counted[state]), "pending")
        region = plan.regions[plan.region_of[number]].id
        out.append(GraphNode(node.id, node.block, node.type, node.name, region, state, dict(counted), node.sentinel))
    return tuple(out)


def _edges(plan: Plan, routes: dict[tuple[int, str], str | None]) -> tuple[GraphEdge, ...]:
    taken: dict[int, Counter[str | None]] = {}
    for (number, _), route in routes.items():
        taken.setdefault(number, Counter())[route] += 1
    out = []
    for number, node in enumerate(plan.nodes):
        counted = taken.get(number, Counter())
        for edge in node.out:
            live = counted[edge.handle]
            dead = counted.total() - live
            state = "live" if live else "dead" if dead else "pending"
            counts = {name: count for name, count in (("live", live), ("dead", dead)) if count}
            out.append(GraphEdge(node.id, plan.nodes[edge.target].id, edge.handle, state, counts))
    return tuple(out)
