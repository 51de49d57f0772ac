"""A run as a whole: RunView, from its journal, node by node; RunGraph, its plan with the state of each node and edge;
RunDocument, the document that it was made from.

The view of a run of 100,000 steps takes a second. It is made in slices, between which other runs and requests proceed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec
import orjson

from compiler.catalog import Catalog
from compiler.keys import join_key
from compiler.plan import Plan
from executor.errors import NotFound
from executor.kernel.journal.codec import data_of
from executor.kernel.journal.projection import NodeState, Projection
from executor.kernel.journal.reader import Records, output_of
from executor.kernel.process.threads import aside
from executor.kernel.run.imports import as_ours
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.store import Store
from executor.service.views import (
    GraphEdge,
    GraphNode,
    LazyNodes,
    NodeView,
    RunDocument,
    RunGraph,
    RunView,
    WaitView,
    view_of,
)

# Limits for all nodes together. A view is one answer, made at once; the outputs of a run may have 256 MiB.
TRACEBACKS_MAX = 20  # for failed nodes; the view of the node has it for further ones
OUTPUTS_MAX_BYTES = 4 * 1024 * 1024
# The most important state first, for a node that is in several states at once.
_WORST = ("failed", "needs_attention", "running", "retrying", "waiting", "cancelled", "succeeded", "skipped", "pending")


async def build(store: Store, plan: Plan, row: RunRow, waits: tuple[WaitView, ...]) -> RunView:
    projection, outputs, slices = SlicedProjection(plan.variables), _Outputs(), Slices()
    async for record in Records(store, row.id, upto=row.seq):  # later events belong to another moment
        elsewhere = outputs.add(record, projection.apply_record(record))
        if elsewhere or slices.is_over:
            if elsewhere:
                outputs.put(record, await output_of(store, record))
            await slices.rest()
    if row.status in TERMINAL:
        projection.end()
    nodes: list[NodeView] = []
    tracebacks = _Tracebacks()
    for state in projection.taken_out():
        if slices.is_over:
            await slices.rest()
        output: _Output | None = None
        if (found := outputs.pop(state.output_seq)) is not None:
            data, size = found
            output = None if data is None else await slices.decoded(data), size
        nodes.append(node_view(plan, tracebacks.limited(state), output))
    run_output = None if row.output is None else await slices.decoded(row.output)
    published = await published_in(store, projection, slices)
    if slices.is_over:
        await slices.rest()
    return _view(row, projection, run_output, published, tuple(nodes), waits)


async def published_in(store: Store, projection: Projection, slices: Slices) -> Any:
    """Return the state that a durable function published last."""
    record = projection.published
    return None if record is None else await slices.decoded(await output_of(store, record) or b"null")


def of_ended(plan: Plan, row: RunRow, records: Sequence[Record]) -> RunView:
    """Return the view of a run that has ended here, from its journal, which refers to no output elsewhere. Its nodes
    are made when they are read."""
    projection = Projection(plan.variables)
    for record in records:
        if record.node is None or record.type in ("variables.patched", "node.state"):
            projection.apply_record(record)
    output = None if row.output is None else orjson.loads(row.output)
    published = None if projection.published is None else orjson.loads(projection.published.output or b"null")
    return _view(row, projection, output, published, LazyNodes(lambda: _nodes_of(plan, records)), ())


def _nodes_of(plan: Plan, records: Sequence[Record]) -> tuple[NodeView, ...]:
    projection, outputs = SlicedProjection(), _Outputs()
    for record in records:
        if outputs.add(record, projection.apply_record(record)):
            outputs.put(record, None)
    projection.end()
    nodes: list[NodeView] = []
    tracebacks = _Tracebacks()
    for state in projection.taken_out():
        output: _Output | None = None
        if (found := outputs.pop(state.output_seq)) is not None:
            data, size = found
            output = None if data is None else orjson.loads(data), size
        nodes.append(node_view(plan, tracebacks.limited(state), output))
    return tuple(nodes)


def _view(
    row: RunRow,
    projection: Projection,
    output: Any,
    published: Any,
    nodes: Sequence[NodeView],
    waits: tuple[WaitView, ...],
) -> RunView:
    return view_of(
        RunView,
        row,
        input=orjson.loads(row.input),
        output=output,
        state=published,
        error=None if row.error is None else orjson.loads(row.error),
        response=projection.response,
        variables=projection.variables or {},
        nodes=nodes,
        waits=waits,
        by=projection.by,
        continues=projection.continues,
        continued_as=projection.continued_as,
    )


def node_view(plan: Plan, state: NodeState, output: _Output | None = None) -> NodeView:
    """Return the view of a node. The output of a container's start is the number of scopes, from its event."""
    node, path = state.node, state.path
    number = plan.node_index(node)
    value: Any = None
    size: int | None = None
    if output is not None:
        value, size = output
    elif state.scopes is not None:
        value = {"count": state.scopes}
    steps = state.steps
    usage, cost, unpriced = (None, None, 0) if steps is None else steps.total()
    taken = (None, None, 0) if steps is None else steps.total(taken=True)
    return NodeView(
        join_key(node, path),
        node,
        plan.nodes[number].block if number is not None else node,
        path,
        state.status,
        state.attempt,
        state.started_at_ms,
        state.finished_at_ms,
        state.left_by if state.scopes is None else None,
        state.reason,
        state.error,
        value,
        state.lost,
        state.cached,
        state.child,
        size,
        size is not None,
        0 if steps is None else len(steps.by_n),
        usage,
        cost,
        unpriced,
        *taken[:2],
    )


class _Tracebacks:
    """The number of failed nodes so far; further ones than TRACEBACKS_MAX have no traceback."""

    def __init__(self) -> None:
        self._failed = 0

    def limited(self, state: NodeState) -> NodeState:
        if state.error is not None and self._failed >= TRACEBACKS_MAX:
            state.error = {name: value for name, value in state.error.items() if name != "traceback"}
        self._failed += state.status == "failed"
        return state


class _Outputs:
    """The outputs of nodes in the order of the journal, as long as they fit: by event, None for one that does not, with
    its size. Decoded when they are shown: until then thousands of objects would be in the way of the collector."""

    def __init__(self) -> None:
        self._left_bytes = OUTPUTS_MAX_BYTES
        self._found: dict[int, tuple[bytes | None, int | None]] = {}

    def add(self, record: Record, state: NodeState | None) -> bool:
        """Add the output of a record, which has led to `state`. Returns True if it is shown, and is elsewhere."""
        data = record.output
        if state is None or state.output_seq != record.seq or (data is None and record.data is None):
            return False
        size = data_of(record).get("size", 0) if data is None else len(data)
        if size > self._left_bytes:
            self._found[record.seq] = None, size
            return False
        self._left_bytes -= size
        if data is not None:
            self._found[record.seq] = data, None
        return data is None

    def put(self, record: Record, data: bytes | None) -> None:
        self._found[record.seq] = data, None

    def pop(self, seq: int | None) -> tuple[bytes | None, int | None] | None:
        """Return the output of event `seq`, once: encoded if it is shown, else its size."""
        return None if seq is None else self._found.pop(seq, None)


_Output = tuple[Any, int | None]  # a value, or the size of one that is not shown


async def graph(store: Store, plan: Plan, row: RunRow) -> RunGraph:
    projection = SlicedProjection()
    slices = Slices()
    async for record in Records(store, row.id, upto=row.seq):
        if slices.is_over:
            await slices.rest()
        projection.apply_record(record)
    if row.status in TERMINAL:
        projection.end()
    states: dict[int, Counter[str]] = {}
    routes: dict[int, Counter[str | None]] = {}
    for state in projection.taken_out():
        if slices.is_over:
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


async def document(store: Store, row: RunRow, env_names: Collection[str], catalog: Catalog) -> RunDocument:
    """Return the document that the run was made from, as it was then. Raises NotFound(document_not_kept)."""
    data, digest = await _stored_document(store, row)
    if data is None:
        raise NotFound(f"the document of run {row.id} is not stored", code="document_not_kept")
    ours = await aside(lambda: as_ours(orjson.loads(data), env_names, catalog))
    return RunDocument(
        row.id, row.workflow, row.version, digest, row.draft_id, row.draft_rev, ours.format, ours.document
    )


async def _stored_document(store: Store, row: RunRow) -> tuple[bytes | None, str]:
    if row.version is not None:
        stored = await store.get_workflow(row.workflow, row.version)
        return (stored.document, stored.hash) if stored else (None, "")
    if row.document_hash is not None:
        return await store.get_document(row.document_hash), row.document_hash
    return None, ""


# --- work in slices ---


T = TypeVar("T")
U = TypeVar("U")

SLICE_S: Final = 0.005
DECODED_AT_ONCE: Final = 32 * 1024  # bytes, well below a millisecond


class Slices:
    """Between two small pieces of work: `if slices.is_over: await slices.rest()`, which lets other tasks run."""

    __slots__ = ("_now_s", "_until_s")

    def __init__(self) -> None:
        self._now_s = asyncio.get_running_loop().time
        self._until_s = self._now_s() + SLICE_S

    @property
    def is_over(self) -> bool:
        return self._now_s() >= self._until_s

    async def rest(self) -> None:
        await asyncio.sleep(0)
        self._until_s = self._now_s() + SLICE_S

    async def of(self, make: Callable[[T], U], items: Iterable[T]) -> tuple[U, ...]:
        """Return `make` of each, where there may be many. Nothing else may change `items` meanwhile."""
        made = []
        for item in items:
            if self.is_over:
                await self.rest()
            made.append(make(item))
        return tuple(made)

    async def decoded(self, data: bytes) -> Any:
        """Return the value of JSON that may be long: the output of a loop has a part for each iteration."""
        if self.is_over:
            await self.rest()
        if len(data) <= DECODED_AT_ONCE:
            return orjson.loads(data)
        match data.lstrip()[:1]:
            case b"{":
                members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
                return {name: await self.decoded(bytes(part)) for name, part in members.items()}
            case b"[":
                return await self._decoded_items(msgspec.json.decode(data, type=list[msgspec.Raw]))
            case _:
                return orjson.loads(data)

    async def _decoded_items(self, items: list[msgspec.Raw]) -> list[Any]:
        made: list[Any] = []
        some, size = list[msgspec.Raw](), 0
        for item in items:
            if size + len(item) > DECODED_AT_ONCE:
                made += _list_of(some)
                some, size = [], 0
                if self.is_over:
                    await self.rest()
            if len(item) > DECODED_AT_ONCE:
                made.append(await self.decoded(bytes(item)))
            else:
                some.append(item)
                size += len(item)
        made += _list_of(some)
        return made


def _list_of(items: list[msgspec.Raw]) -> list[Any]:
    made: list[Any] = orjson.loads(b"[%s]" % b",".join(items))
    return made


class SlicedProjection(Projection):
    """A projection whose nodes end, and are freed, one by one as they are taken out, not all at once."""

    _has_ended = False

    def end(self) -> None:
        self._has_ended = True

    def taken_out(self) -> Iterator[NodeState]:
        keys = list(self.nodes)
        keys.reverse()
        while keys:  # they are freed one by one as well
            state = self.nodes.pop(keys.pop())
            if self._has_ended:
                state.end()
            yield state
