"""RunDiff: where two runs went different ways, and which results differ.

It compares the two journals in two ways. In order: the first event that is not the same, leaving out the parts that
differ between any two runs (times, ids, who answered when). By node key: the status and the output of each. With
parallel work the order of two runs may differ by chance; the results of the nodes do not.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import orjson
from msgspec import Struct

from compiler.keys import join_key
from compiler.plan import Plan
from executor.kernel.journal.codec import data_of, key_of
from executor.kernel.journal.projection import ASIDE, NodeState
from executor.kernel.journal.reader import output_of, read
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.store.topics.store import Store
from executor.service.views.run import SlicedProjection, Slices

NODES_MAX = 200  # differing nodes; more are only counted
VALUES_MAX = 50  # differences inside one output
PREVIEW_CHARS = 200
_FLEETING = frozenset({"run", "source_run", "due_ms", "wait", "child", "size", "by"})
# Fields that a wait adds to its output by itself.
_WAITS = frozenset({"approval", "form", "signal", "wait", "callback", "run_workflow"})
_WAIT_FIELDS = frozenset({"answered_at", "received_at", "due_ms", "resumed_ms", "run"})


class RunHead(Struct, frozen=True):
    run: str
    workflow: str
    version: int | None
    status: str
    seq: int


class EventHead(Struct, frozen=True):
    """`data` without fields that differ between any two runs; `output` is the beginning of its JSON."""

    seq: int
    type: str
    key: str | None
    attempt: int
    data: dict[str, Any]
    output: str | None


class Divergence(Struct, frozen=True):
    """The first events that differ. null: that journal has ended. `fields`: which of their fields differ."""

    a: EventHead | None
    b: EventHead | None
    fields: tuple[str, ...]


class ValueDiff(Struct, frozen=True):
    """`pointer` is a JSON pointer, "" for the whole value. `a` and `b` are the beginnings of the JSON values; null:
    missing."""

    pointer: str
    a: str | None
    b: str | None


class NodeHead(Struct, frozen=True):
    status: str
    attempt: int
    route: str | None
    error: str | None


class NodeDiff(Struct, frozen=True):
    """`output` has at most VALUES_MAX differences; `more`: there are others."""

    key: str
    a: NodeHead
    b: NodeHead
    output: tuple[ValueDiff, ...]
    more: bool = False


class RunDiff(Struct, frozen=True):
    """`same`: only times and ids differ. `nodes`, `only_a`, `only_b` have at most NODES_MAX entries each; `differing`
    is the total number."""

    a: RunHead
    b: RunHead
    same: bool
    same_plan: bool
    diverged: Divergence | None
    nodes: tuple[NodeDiff, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    equal: int
    differing: int
    input: tuple[ValueDiff, ...]
    output: tuple[ValueDiff, ...]


class _Node(Struct, frozen=True, gc=False):
    """The final state of a node key. `digest` is of its lasting output, see `_lasting`. `scopes`: see NodeState."""

    head: NodeHead
    digest: bytes
    decided_seq: int | None
    scopes: int | None

    @classmethod
    def of(cls, state: NodeState, digest: bytes) -> _Node:
        failed = state.error is not None and state.decided_seq is not None and state.status in ("failed", "cancelled")
        error = str(state.error["code"]) if failed and state.error else None
        head = NodeHead(state.status, state.attempt, state.left_by, error)
        return cls(head, digest, state.decided_seq, state.scopes)

    def ended_as(self, other: _Node) -> bool:
        """Return True if both ended alike; the number of attempts makes no difference."""
        one, two = self.head, other.head
        return (one.status, one.route, one.error, self.digest) == (two.status, two.route, two.error, other.digest)


async def build(store: Store, a: RunRow, plan_a: Plan, b: RunRow, plan_b: Plan) -> RunDiff:
    """Compare two runs. Raises CorruptJournal."""
    slices = Slices()
    diverged = await _diverged(store, a, plan_a, b, plan_b, slices)
    nodes_a, nodes_b = await _nodes(store, a, plan_a, slices), await _nodes(store, b, plan_b, slices)
    found: list[NodeDiff] = []
    only_a: list[str] = []
    both = differing = 0
    for key in list(nodes_a):  # compared nodes are freed here, and not all at once
        if slices.is_over:
            await slices.rest()
        one, two = nodes_a.pop(key), nodes_b.pop(key, None)
        if two is None:
            only_a.append(key)
            continue
        both += 1
        if not one.ended_as(two):
            differing += 1
            if len(found) < NODES_MAX:
                found.append(await _node_diff(store, key, a, plan_a, one, b, plan_b, two, slices))
    only_b = list(nodes_b)
    return RunDiff(
        a=_head(a),
        b=_head(b),
        same=diverged is None and not differing and not only_a and not only_b and a.status == b.status,
        same_plan=a.plan_hash == b.plan_hash,
        diverged=diverged,
        nodes=tuple(found),
        only_a=tuple(only_a[:NODES_MAX]),
        only_b=tuple(only_b[:NODES_MAX]),
        equal=both - differing,
        differing=differing + len(only_a) + len(only_b),
        input=(await _value_diffs(a.input, b.input, slices))[0],
        output=(await _value_diffs(a.output, b.output, slices))[0],
    )


# --- in order


async def _diverged(
    store: Store, a: RunRow, plan_a: Plan, b: RunRow, plan_b: Plan, slices: Slices
) -> Divergence | None:
    left, right = _journal(store, a, slices), _journal(store, b, slices)
    try:
        while True:
            one, two = await anext(left, None), await anext(right, None)
            if one is None and two is None:
                return None
            if one is None or two is None:
                return Divergence(_shown(one, plan_a), _shown(two, plan_b), ())
            if _as_written(one) == _as_written(two):  # most, in two runs of one plan
                continue
            counts_a, counts_b = _counts(one, plan_a), _counts(two, plan_b)
            fields = tuple(name for name in counts_a if counts_a[name] != counts_b[name])
            if fields:
                return Divergence(_shown(one, plan_a), _shown(two, plan_b), fields)
    finally:
        await left.aclose()
        await right.aclose()


async def _journal(store: Store, row: RunRow, slices: Slices) -> AsyncGenerator[Record]:
    async for record in read(store, row.id, upto=row.seq):
        if slices.is_over:
            await slices.rest()
        if record.type not in ASIDE:
            yield record


def _as_written(record: Record) -> tuple[object, ...]:
    return record.type, record.node, record.path, record.attempt, record.data, record.output


def _counts(record: Record, plan: Plan) -> dict[str, Any]:
    data = data_of(record)
    return {
        "type": record.type,
        "node": key_of(record),
        "attempt": record.attempt,
        "data": {name: value for name, value in data.items() if name not in _FLEETING and name != "blob"},
        "output": _lasting(plan, record, _here(record, data)),
    }


def _here(record: Record, data: dict[str, Any]) -> bytes | None:
    blob = data.get("blob")
    return record.output if blob is None else str(blob).encode()


def _shown(record: Record | None, plan: Plan) -> EventHead | None:
    if record is None:
        return None
    output = _here(record, data_of(record))
    text = None if output is None else output[: PREVIEW_CHARS * 4].decode(errors="replace")[:PREVIEW_CHARS]
    data = _counts(record, plan)["data"]
    return EventHead(record.seq, record.type, key_of(record), record.attempt, data, text)


# --- by node


async def _nodes(store: Store, row: RunRow, plan: Plan, slices: Slices) -> dict[str, _Node]:
    projection = SlicedProjection()
    digests: dict[int, bytes] = {}  # by the event that decided a node
    async for record in read(store, row.id, upto=row.seq):
        if slices.is_over:
            await slices.rest()
        state = projection.apply_record(record)
        if state is not None and state.decided_seq == record.seq:
            blob = data_of(record).get("blob")
            lasting = _lasting(plan, record, record.output if blob is None else str(blob).encode())
            if state.scopes is not None:
                lasting = _count(state.scopes)
            if lasting is not None:
                digests[record.seq] = hashlib.sha256(lasting).digest()
    nodes: dict[str, _Node] = {}
    for state in projection.taken_out():
        if slices.is_over:
            await slices.rest()
        nodes[join_key(state.node, state.path)] = _Node.of(state, digests.pop(state.decided_seq or 0, b""))
    return nodes


async def _node_diff(
    store: Store,
    key: str,
    a: RunRow,
    plan_a: Plan,
    node_a: _Node,
    b: RunRow,
    plan_b: Plan,
    node_b: _Node,
    slices: Slices,
) -> NodeDiff:
    values: tuple[ValueDiff, ...] = ()
    more = False
    if node_a.digest != node_b.digest:
        one, two = await _output(store, a, plan_a, node_a), await _output(store, b, plan_b, node_b)
        values, more = await _value_diffs(one, two, slices)
    return NodeDiff(key, node_a.head, node_b.head, values, more)


async def _output(store: Store, row: RunRow, plan: Plan, node: _Node) -> bytes | None:
    if node.scopes is not None:
        return _count(node.scopes)
    if node.decided_seq is None:
        return None
    record = await anext(read(store, row.id, after=node.decided_seq - 1))
    return _lasting(plan, record, await output_of(store, record))


def _count(scopes: int) -> bytes:
    return orjson.dumps({"count": scopes})


def _lasting(plan: Plan, record: Record, output: bytes | None) -> bytes | None:
    """Return the output without what a wait wrote into it about itself. A blob is represented by its hash."""
    if output is None or record.type != "node.succeeded" or not output.startswith(b"{"):
        return output
    number = plan.node_index(record.node or "")
    if number is None or plan.nodes[number].type not in _WAITS:
        return output
    value: dict[str, Any] = orjson.loads(output)
    compared = {name: item for name, item in value.items() if name not in _WAIT_FIELDS}
    return orjson.dumps(compared, option=orjson.OPT_SORT_KEYS)


# --- values


class _Nothing:
    pass


_NOTHING = _Nothing()


def _load(data: bytes | None) -> Any:
    return _NOTHING if data is None else orjson.loads(data)


async def _value_diffs(one: bytes | None, two: bytes | None, slices: Slices) -> tuple[tuple[ValueDiff, ...], bool]:
    """Return at most VALUES_MAX differences, and True if there are more."""
    found: list[ValueDiff] = []
    if one == two:
        return (), False
    for difference in _differences("", _load(one), _load(two)):
        if slices.is_over:
            await slices.rest()
        if difference is not None:
            found.append(difference)
            if len(found) > VALUES_MAX:
                break
    return tuple(found[:VALUES_MAX]), len(found) > VALUES_MAX


def _differences(pointer: str, a: Any, b: Any) -> Iterator[ValueDiff | None]:
    """Yield the differences depth first, in the order of `a`, and None for a value that is the same. Values nest at
    most 64 deep (executor.kernel.values.payload)."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in [*a, *(name for name in b if name not in a)]:
            step = name.replace("~", "~0").replace("/", "~1")
            yield from _differences(f"{pointer}/{step}", a.get(name, _NOTHING), b.get(name, _NOTHING))
    elif isinstance(a, list) and isinstance(b, list):
        for n in range(max(len(a), len(b))):
            one, two = a[n] if n < len(a) else _NOTHING, b[n] if n < len(b) else _NOTHING
            yield from _differences(f"{pointer}/{n}", one, two)
    elif type(a) is not type(b) or a != b:
        yield ValueDiff(pointer, _preview(a), _preview(b))
    else:
        yield None


def _preview(value: Any) -> str | None:
    if value is _NOTHING:
        return None
    text = orjson.dumps(value).decode()
    return text if len(text) <= PREVIEW_CHARS else text[:PREVIEW_CHARS] + "…"


def _head(row: RunRow) -> RunHead:
    return RunHead(row.id, row.workflow, row.version, row.status, row.seq)
