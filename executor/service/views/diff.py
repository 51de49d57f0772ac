"""RunDiff: where two runs went different ways, and which results differ.

It compares the two journals in order, up to the first event that is not the same but for what differs between any two
runs (times, ids, who answered when), and by node key: the status and the output of each."""

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
from executor.kernel.journal.reader import Records, output_of
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.store.topics.store import Store
from executor.service.views import view_of
from executor.service.views.run import SlicedProjection, Slices

NODES_MAX = 200  # differing nodes; more are only counted
VALUES_MAX = 50  # differences inside one output
PREVIEW_CHARS = 200
_FLEETING = frozenset({"run", "source_run", "due_ms", "wait", "child", "size", "by", "from_run", "keeps", "again"})
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
        one, two = self.head, other.head
        return (one.status, one.route, one.error, self.digest) == (two.status, two.route, two.error, other.digest)


async def build(store: Store, a: RunRow, plan_a: Plan, b: RunRow, plan_b: Plan) -> RunDiff:
    slices = Slices()
    left, right = _Side(store, a, plan_a, slices), _Side(store, b, plan_b, slices)
    diverged = await _diverged(left, right)
    nodes_a, nodes_b = await left.nodes(), await right.nodes()
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
                values: tuple[ValueDiff, ...] = ()
                more = False
                if one.digest != two.digest:
                    values, more = await value_diffs(await left.output(one), await right.output(two), slices)
                found.append(NodeDiff(key, one.head, two.head, values, more))
    only_b = list(nodes_b)
    return RunDiff(
        a=view_of(RunHead, a, run=a.id),
        b=view_of(RunHead, b, run=b.id),
        same=diverged is None and not differing and not only_a and not only_b and a.status == b.status,
        same_plan=a.plan_hash == b.plan_hash,
        diverged=diverged,
        nodes=tuple(found),
        only_a=tuple(only_a[:NODES_MAX]),
        only_b=tuple(only_b[:NODES_MAX]),
        equal=both - differing,
        differing=differing + len(only_a) + len(only_b),
        input=(await value_diffs(a.input, b.input, slices))[0],
        output=(await value_diffs(a.output, b.output, slices))[0],
    )


async def _diverged(left: _Side, right: _Side) -> Divergence | None:
    records, others = left.journal(), right.journal()
    try:
        while True:
            one, two = await anext(records, None), await anext(others, None)
            if one is None and two is None:
                return None
            if one is None or two is None:
                return Divergence(left.shown(one), right.shown(two), ())
            if _as_written(one) == _as_written(two):  # most, in two runs of one plan
                continue
            counts, others_counts = left.counts(one), right.counts(two)
            fields = tuple(name for name in counts if counts[name] != others_counts[name])
            if fields:
                return Divergence(left.shown(one), right.shown(two), fields)
    finally:
        await records.aclose()
        await others.aclose()


def _as_written(record: Record) -> tuple[object, ...]:
    return record.type, record.node, record.path, record.attempt, record.data, record.output


class _Side:
    """One of the two runs."""

    def __init__(self, store: Store, row: RunRow, plan: Plan, slices: Slices) -> None:
        self._store = store
        self._row = row
        self._plan = plan
        self._slices = slices

    async def journal(self) -> AsyncGenerator[Record]:
        async for record in Records(self._store, self._row.id, upto=self._row.seq):
            if self._slices.is_over:
                await self._slices.rest()
            if record.type not in ASIDE:
                yield record

    def counts(self, record: Record) -> dict[str, Any]:
        data = data_of(record)
        return {
            "type": record.type,
            "node": key_of(record),
            "attempt": record.attempt,
            "data": {name: value for name, value in data.items() if name not in _FLEETING and name != "blob"},
            "output": self._lasting(record, _here(record)),
        }

    def shown(self, record: Record | None) -> EventHead | None:
        if record is None:
            return None
        output = _here(record)
        text = None if output is None else output[: PREVIEW_CHARS * 4].decode(errors="replace")[:PREVIEW_CHARS]
        data = self.counts(record)["data"]
        return EventHead(record.seq, record.type, key_of(record), record.attempt, data, text)

    async def nodes(self) -> dict[str, _Node]:
        projection = SlicedProjection()
        digests: dict[int, bytes] = {}  # by the event that decided a node
        async for record in Records(self._store, self._row.id, upto=self._row.seq):
            if self._slices.is_over:
                await self._slices.rest()
            state = projection.apply_record(record)
            if state is not None and state.decided_seq == record.seq:
                lasting = _count(state.scopes) or self._lasting(record, _here(record))
                if lasting is not None:
                    digests[record.seq] = hashlib.sha256(lasting).digest()
        nodes: dict[str, _Node] = {}
        for state in projection.taken_out():
            if self._slices.is_over:
                await self._slices.rest()
            nodes[join_key(state.node, state.path)] = _Node.of(state, digests.pop(state.decided_seq or 0, b""))
        return nodes

    async def output(self, node: _Node) -> bytes | None:
        if node.scopes is not None or node.decided_seq is None:
            return _count(node.scopes)
        record = await anext(Records(self._store, self._row.id, after=node.decided_seq - 1))
        return self._lasting(record, await output_of(self._store, record))

    def _lasting(self, record: Record, output: bytes | None) -> bytes | None:
        """Return the output without what a wait wrote into it about itself. A blob is represented by its hash."""
        if output is None or record.type != "node.succeeded" or not output.startswith(b"{"):
            return output
        number = self._plan.node_index(record.node or "")
        if number is None or self._plan.nodes[number].type not in _WAITS:
            return output
        value: dict[str, Any] = orjson.loads(output)
        compared = {name: item for name, item in value.items() if name not in _WAIT_FIELDS}
        return orjson.dumps(compared, option=orjson.OPT_SORT_KEYS)


def _here(record: Record) -> bytes | None:
    blob = data_of(record).get("blob")
    return record.output if blob is None else str(blob).encode()


def _count(scopes: int | None) -> bytes | None:
    return None if scopes is None else orjson.dumps({"count": scopes})


# --- values


_NOTHING = object()


def _load(data: bytes | None) -> Any:
    return _NOTHING if data is None else orjson.loads(data)


async def value_diffs(one: bytes | None, two: bytes | None, slices: Slices) -> tuple[tuple[ValueDiff, ...], bool]:
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
    """Yield the differences in the order of `a`, and None for a value that is the same. Values nest at most 64 deep."""
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
