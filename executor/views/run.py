"""A run as a whole: RunView, as its journal tells it, node by node; RunGraph, its plan with what became of each node
and edge; RunDocument, what it was made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

import msgspec
import orjson

from compiler.imports import as_ours
from compiler.keys import join_key
from compiler.plan import Plan
from executor.errors import NotFound
from executor.journal.codec import data_of
from executor.journal.projection import Entry, NodeState
from executor.journal.reader import output_of, read
from executor.store.contract import Store
from executor.store.rows import TERMINAL, Record, RunRow
from executor.views import GraphEdge, GraphNode, NodeView, RunDocument, RunGraph, RunView, WaitView
from executor.views.slices import SlicedProjection, Slices

# Of all nodes together. A view is one answer, made at once; the outputs of a run may have 256 MiB.
OUTPUTS_MAX_BYTES = 4 * 1024 * 1024
# What a person wants to hear first about a node that is in several states at once.
_WORST = ("failed", "needs_attention", "running", "retrying", "waiting", "cancelled", "succeeded", "skipped", "pending")


async def build(store: Store, plan: Plan, row: RunRow, waits: tuple[WaitView, ...]) -> RunView:
    projection = SlicedProjection(plan.variables)
    outputs = _Outputs(store)
    slices = Slices()
    async for record in read(store, row.id, upto=row.seq):  # what came since belongs to another moment
        await slices.rest()
        state = projection.apply(Entry.of(record))
        if state is not None and state.output_seq == record.seq:
            await outputs.add(record)
    if row.status in TERMINAL:
        projection.end()
    nodes: list[NodeView] = []
    failed: list[str] = []
    for state in projection.taken_out():
        await slices.rest()
        node = outputs.put_into(node_view(plan, state), state.output_seq)
        nodes.append(node)
        if state.status == "failed":
            failed.append(node.key)
    return RunView(
        id=row.id,
        workflow=row.workflow,
        version=row.version,
        status=row.status,
        input=orjson.loads(row.input),
        output=None if row.output is None else orjson.loads(row.output),
        error=None if row.error is None else orjson.loads(row.error),
        seq=row.seq,
        created_at_ms=row.created_at_ms,
        started_at_ms=row.started_at_ms,
        finished_at_ms=row.finished_at_ms,
        response=projection.response,
        variables=projection.variables or {},
        nodes=tuple(nodes),
        failed_nodes=tuple(failed),
        waits=waits,
        draft_id=row.draft_id,
        draft_rev=row.draft_rev,
    )


def node_view(plan: Plan, state: NodeState) -> NodeView:
    """Without its output; of the start of a container that is the number of scopes, which its event says."""
    number = plan.node_index(state.node)
    return NodeView(
        key=join_key(state.node, state.path),
        node=state.node,
        block=plan.nodes[number].block if number is not None else state.node,
        path=state.path,
        status=state.status,
        attempt=state.attempt,
        started_at_ms=state.started_at_ms,
        finished_at_ms=state.finished_at_ms,
        route=state.left_by if state.scopes is None else None,
        reason=state.reason,
        error=state.error,
        output=None if state.scopes is None else {"count": state.scopes},
        lost=state.lost,
        cached=state.cached,
        child=state.child,
    )


class _Outputs:
    """Those of a view, by the event that has them: in the order of the journal, as long as they fit."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left_bytes = OUTPUTS_MAX_BYTES
        self._values: dict[int, Any] = {}
        self._cut: dict[int, int] = {}  # sizes of those that do not fit

    async def add(self, record: Record) -> None:
        size = len(record.output) if record.output is not None else data_of(record).get("size", 0)
        if size > self._left_bytes:
            self._cut[record.seq] = size
            return
        self._left_bytes -= size
        output = await output_of(self._store, record)
        self._values[record.seq] = None if output is None else orjson.loads(output)

    def put_into(self, view: NodeView, seq: int | None) -> NodeView:
        if seq is None:
            return view
        if seq in self._cut:
            return msgspec.structs.replace(view, output_size=self._cut[seq], output_truncated=True)
        return msgspec.structs.replace(view, output=self._values.pop(seq))


async def graph(store: Store, plan: Plan, row: RunRow) -> RunGraph:
    """The plan's nodes and edges with what became of them, summed over all scopes."""
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


async def document(store: Store, row: RunRow, env_names: Collection[str]) -> RunDocument:
    """What the run was made from, as it was then: from the version of the stored workflow, or as it was kept
    with the run. Raises NotFound(document_not_kept)."""
    data, digest = await _stored_document(store, row)
    if data is None:
        raise NotFound(f"the document of run {row.id} is not stored", code="document_not_kept")
    ours = as_ours(orjson.loads(data), env_names)
    return RunDocument(
        row.id, row.workflow, row.version, digest, row.draft_id, row.draft_rev, ours.imported, ours.document
    )


async def _stored_document(store: Store, row: RunRow) -> tuple[bytes | None, str]:
    if row.version is not None:
        stored = await store.get_workflow(row.workflow, row.version)
        return (stored.document, stored.hash) if stored else (None, "")
    if row.document_hash is not None:
        return await store.get_document(row.document_hash), row.document_hash
    return None, ""
