"""NodeDetail: the input and output of one node key, at any attempt and at any moment of the run.

Outputs and errors are in the journal. Inputs are not: they are made again as they were made then, by folding the values
up to the moment the attempt started and filling the node's params. One thing can differ from the handler's input: a
variable that a block beside it changed between the start's record and the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import orjson
from msgspec.structs import astuple

from compiler.keys import NodeKey, Path, join_key, parse_key, split_key
from compiler.plan import Plan
from executor.blocks.services import Services
from executor.errors import BlockError, NotFound
from executor.kernel.core.events import ScopesOpened
from executor.kernel.journal.codec import Codec, data_of
from executor.kernel.journal.projection import Entry, NodeState, Status, decision
from executor.kernel.journal.reader import Records, output_of
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.store import Store
from executor.kernel.values.fold import Fold
from executor.kernel.values.payload import Bound
from executor.kernel.values.payload import encode as encode_payload
from executor.kernel.values.redact import MARK, Redactor
from executor.kernel.values.resolve import compile_template
from executor.kernel.values.scope import Values
from executor.service.views import AttemptView, CheckpointView, NodeDetail, StepView
from executor.service.views.run import Slices


async def build(
    store: Store,
    plan: Plan,
    row: RunRow,
    services: Services,
    redactor: Redactor,
    key_text: str,
    attempt: int | None = None,
    seq: int | None = None,
) -> NodeDetail:
    """`key_text` names a node, or a container (its input is its start's, its output its end's); by default the last
    `attempt`, as it is now. Raises NotFound: node_not_found, attempt_not_found."""
    first, last = _keys(plan, key_text)
    upto = row.seq if seq is None else min(seq, row.seq)
    node = plan.nodes[last[1]]
    state = NodeState(node.id, Codec(plan).path_text(last[0]), container=first != last)
    records = await _records(store, plan, row.id, {first[1], last[1]}, state.path, upto)
    for record in records:
        state.apply(Entry.of(record))
    if row.status in TERMINAL and upto == row.seq:
        state.end()
    if attempt is None:
        attempt = max(state.attempts, default=0)
    elif attempt not in state.attempts:
        raise NotFound(f"there is no attempt {attempt} of {key_text}", code="attempt_not_found")
    started, ended = _span(records, plan.nodes[first[1]].id, node.id, attempt)
    data: Mapping[str, Any] = {} if ended is None else data_of(ended)
    decided = None if ended is None else decision(ended.type, data)
    filled, failure = None, None
    begins = started or (ended if data.get("reused") else None)
    if begins is not None:
        filled, failure = await _input(store, plan, row, services, redactor, first, begins)
    kept = await store.get_checkpoint(row.id, Codec(plan).key_text(last)) if seq is None else None
    return NodeDetail(
        run=row.id,
        key=key_text,
        node=node.id if first == last else node.block,
        block=node.block,
        name=node.name,
        type=node.type if first == last else node.type.partition(":")[0],
        path=state.path,
        seq=upto,
        status=_status(state, attempt),
        attempt=attempt,
        attempts=tuple(AttemptView(*astuple(state.attempts[number])) for number in sorted(state.attempts)),
        input=filled,
        input_error=failure,
        output=await _output(store, ended),
        error=data.get("error"),
        route=None if decided is None or decided.status == "skipped" else decided.route,
        reason=data.get("reason"),
        because=data.get("because"),
        reused=bool(data.get("reused")),
        steps=() if state.steps is None else tuple(StepView(*astuple(step)) for step in state.steps.in_order()),
        checkpoint=None if kept is None else CheckpointView(kept.attempt, kept.at_ms, kept.data),
    )


def _keys(plan: Plan, text: str) -> tuple[NodeKey, NodeKey]:
    node, path = split_key(text)
    names = [node] if plan.node_index(node) is not None else [f"{node}:start", f"{node}:end"]
    try:
        keys = [parse_key(plan, join_key(name, path)) for name in names]
    except ValueError as error:
        raise NotFound(f"the plan has no node '{text}'", code="node_not_found") from error
    return keys[0], keys[-1]


async def _records(store: Store, plan: Plan, run: str, nodes: set[int], path: str, upto: int) -> list[Record]:
    found = [
        record
        for number in nodes
        async for record in Records(store, run, upto=upto, node=plan.nodes[number].id, path=path)
    ]
    return sorted(found, key=lambda record: record.seq)


def _status(state: NodeState, attempt: int) -> Status | Literal["pending"]:
    """Return the status of the node after its last attempt, or of the attempt itself if others followed."""
    if not state.attempts:
        return "pending"
    return state.status if attempt == max(state.attempts) else state.attempts[attempt].status


def _span(records: list[Record], first: str, last: str, attempt: int) -> tuple[Record | None, Record | None]:
    """Return the record that began this attempt of node `first`, and the one that ended it at node `last` (None if not
    yet)."""
    started = [r for r in records if r.node == first and r.type == "node.started" and r.attempt == attempt]
    ended = [r for r in records if r.node == last and _ends_attempt(r) and r.attempt in (attempt, 0)]
    if not ended:  # a container whose start failed has no other end
        ended = [r for r in records if r.type in ("node.failed", "retry.scheduled") and r.attempt == attempt]
    return (started[-1] if started else None), (ended[-1] if ended else None)


def _ends_attempt(record: Record) -> bool:
    return record.type == "retry.scheduled" or decision(record.type, data_of(record)) is not None


async def _output(store: Store, ended: Record | None) -> bytes | None:
    if ended is None or ended.type == "retry.scheduled":
        return None
    if ended.type == "region.sized":
        return orjson.dumps({"count": data_of(ended)["count"]})
    return await output_of(store, ended)


async def _input(
    store: Store, plan: Plan, row: RunRow, services: Services, redactor: Redactor, key: NodeKey, begins: Record
) -> tuple[bytes | None, dict[str, Any] | None]:
    values, opened = await _values_before(store, plan, row, services, begins.seq)
    node = plan.nodes[key[1]]
    path = key[0]
    if node.sentinel and node.type.startswith("loop"):
        # A loop's own test reads as if it stood in the body, at the next index.
        path = (*path, (node.body, opened.get((key[0], node.body), 0)))
    try:
        filled = compile_template(node).fill(values, path)
        shown = _shown(filled, orjson.loads(bytes(node.params)))
        return encode_payload(redactor.redact_value(shown)), None
    except BlockError as error:
        failure = {"code": error.code, "message": redactor.redact(error.message), "hint": redactor.redact(error.hint)}
        return None, failure


async def _values_before(
    store: Store, plan: Plan, row: RunRow, services: Services, seq: int
) -> tuple[Values, dict[tuple[Path, int], int]]:
    """Return the values before event `seq`, and how many scopes each container had opened by then."""
    env = {name: MARK if name in services.secrets else value for name, value in services.env.items()}
    env |= dict.fromkeys(services.kept, MARK)
    values = Values(plan, orjson.loads(row.input), env)
    codec = Codec(plan)
    fold = Fold(plan, values)
    opened: dict[tuple[Path, int], int] = {}
    slices = Slices()
    async for record in Records(store, row.id, upto=seq - 1):
        if slices.is_over:
            await slices.rest()
        event = codec.to_event(record)
        fold.apply(event, await output_of(store, record))
        if isinstance(event, ScopesOpened):
            path, start = event.key
            opened[path, plan.nodes[start].body] = event.first + event.count
    return values, opened


def _shown(filled: Any, written: Any) -> Any:
    """Return the filled params for people: code as it was written, beside the values its references had."""
    if isinstance(filled, Bound):
        return {"$code": written, "values": {**filled.texts, **filled.values}}
    if isinstance(filled, dict) and isinstance(written, Mapping):
        return {name: _shown(value, written.get(name)) for name, value in filled.items()}
    if isinstance(filled, list) and isinstance(written, list) and len(filled) == len(written):
        return [_shown(value, part) for value, part in zip(filled, written, strict=True)]
    return filled
