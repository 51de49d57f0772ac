"""NodeDetail: what one node key was given and what it put out, at any attempt and at any moment of the run.

Outputs and errors are in the journal. Inputs are not: they are made again as they were made then, by folding the values
up to the moment the attempt started and filling the node's params. One thing can differ from what the handler saw: a
variable that a block beside it changed between the start's record and the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from compiler.keys import NodeKey, Path, parse_key
from compiler.plan import Plan
from executor.blocks.base import Bound
from executor.core.events import ScopesOpened
from executor.errors import BlockError, NotFound
from executor.journal.codec import Codec
from executor.journal.reader import output_of
from executor.services import Services
from executor.store.contract import Store
from executor.store.rows import TERMINAL, EventFilter, Record, RunRow
from executor.values.fold import Fold
from executor.values.payload import encode as encode_payload
from executor.values.redact import MARK, Redactor
from executor.values.resolve import compile_template
from executor.values.scope import Values
from executor.views import AttemptView, CheckpointView, NodeDetail

PAGE = 1_000  # records folded without letting others have the event loop
# The records that change values; the others are most of a journal.
_CHANGES = frozenset(
    (
        "variables.patched",
        "node.succeeded",
        "node.skipped",
        "node.failed",
        "region.sized",
        "scope.opened",
        "region.exited",
    )
)
_ENDS = {
    "node.succeeded": "succeeded",
    "region.sized": "succeeded",
    "region.exited": "succeeded",
    "node.failed": "failed",
    "node.skipped": "skipped",
    "retry.scheduled": "retrying",
}


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
    """`key_text` names a node, or a container (its input is its start's, its output its end's). `attempt` None: the
    last one. `seq`: as it stood after that event; None: now. Raises NotFound: node_not_found, attempt_not_found."""
    first, last = _keys(plan, key_text)
    upto = row.seq if seq is None else min(seq, row.seq)
    records = await _records(store, plan, row.id, {first[1], last[1]}, Codec(plan).path_text(last[0]), upto)
    if first != last:  # that its start is done says nothing about a container
        records = [record for record in records if record.type != "region.sized"]
    own = [record for record in records if record.node == plan.nodes[last[1]].id]
    attempts = _attempts(records, over=row.status in TERMINAL and upto == row.seq)
    if attempt is None:
        attempt = max((a.attempt for a in attempts), default=0)
    elif all(a.attempt != attempt for a in attempts):
        raise NotFound(f"there is no attempt {attempt} of {key_text}", code="attempt_not_found")
    started, ended = _span(records, own, plan.nodes[first[1]].id, attempt)
    data = _data(ended)
    filled, failure = None, None
    begins = started or (ended if data.get("reused") else None)
    if begins is not None:
        filled, failure = await _input(store, plan, row, services, redactor, first, begins)
    node = plan.nodes[last[1]]
    return NodeDetail(
        run=row.id,
        key=key_text,
        node=node.id if first == last else node.block,
        block=node.block,
        name=node.name,
        type=node.type if first == last else node.type.partition(":")[0],
        path=Codec(plan).path_text(last[0]),
        seq=upto,
        status=_status(attempts, attempt),
        attempt=attempt,
        attempts=attempts,
        input=filled,
        input_error=failure,
        output=await _output(store, ended),
        error=data.get("error"),
        route=data.get("route", "out" if ended is not None and _ENDS[ended.type] == "succeeded" else None),
        reason=data.get("reason"),
        because=data.get("because"),
        reused=bool(data.get("reused")),
        checkpoint=await _checkpoint(store, row.id, Codec(plan).key_text(last)) if seq is None else None,
    )


def _keys(plan: Plan, text: str) -> tuple[NodeKey, NodeKey]:
    """The key asked for twice, or the two sentinels of the container asked for."""
    node, at, path = text.partition("@")
    ends = [text] if plan.node_index(node) is not None else [f"{node}:{end}{at}{path}" for end in ("start", "end")]
    try:
        keys = [parse_key(plan, end) for end in ends]
    except ValueError as error:
        raise NotFound(f"the plan has no node '{text}'", code="node_not_found") from error
    return keys[0], keys[-1]


async def _records(store: Store, plan: Plan, run: str, nodes: set[int], path: str, upto: int) -> list[Record]:
    """What the journal up to seq `upto` says of these nodes in the scope `path`."""
    found: list[Record] = []
    for number in nodes:
        after = 0
        while True:
            page, _ = await store.find_events(run, EventFilter(after, PAGE, node=plan.nodes[number].id))
            found += [record for record in page if record.path == path and record.seq <= upto]
            if len(page) < PAGE or page[-1].seq >= upto:
                break
            after = page[-1].seq
    return sorted(found, key=lambda record: record.seq)


def _attempts(records: list[Record], over: bool) -> tuple[AttemptView, ...]:
    """In order. `over`: the run has ended, so what has no end of its own was cancelled with it."""
    views: dict[int, dict[str, Any]] = {}
    for record in records:
        if record.type not in _ENDS and record.type not in ("node.started", "wait.opened", "wait.closed"):
            continue
        # A container's end sentinel has no attempts of its own when it leaves: it belongs to the last one.
        number = record.attempt or max(views, default=0)
        view = views.setdefault(number, {"attempt": number, "status": "running"})
        match record.type:
            case "node.started":
                view.setdefault("started_seq", record.seq)
                view.setdefault("started_at_ms", record.at_ms)
            case "wait.opened":
                view["status"] = "needs_attention" if _data(record)["kind"] == "attention" else "waiting"
            case "wait.closed" if _data(record)["outcome"] == "cancelled":
                view |= {"status": "cancelled", "finished_seq": record.seq, "finished_at_ms": record.at_ms}
            case "wait.closed":
                view["status"] = "running"
            case _:
                view |= {"status": _ENDS[record.type], "finished_seq": record.seq, "finished_at_ms": record.at_ms}
                if "error" in (data := _data(record)):
                    view["error"] = data["error"]
    for view in views.values():
        if over and view["status"] in ("running", "waiting", "needs_attention"):
            view["status"] = "cancelled"
    return tuple(AttemptView(**views[number]) for number in sorted(views))


def _status(attempts: tuple[AttemptView, ...], attempt: int) -> str:
    return next((view.status for view in attempts if view.attempt == attempt), "pending")


def _span(records: list[Record], own: list[Record], first: str, attempt: int) -> tuple[Record | None, Record | None]:
    """The record that began this attempt of node `first`, and the one that ended it (None: not yet)."""
    started = [r for r in records if r.node == first and r.type == "node.started" and r.attempt == attempt]
    ended = [r for r in own if r.type in _ENDS and r.attempt in (attempt, 0)]
    if not ended:  # a container whose start failed has no other end
        ended = [r for r in records if r.type in ("node.failed", "retry.scheduled") and r.attempt == attempt]
    return (started[-1] if started else None), (ended[-1] if ended else None)


async def _checkpoint(store: Store, run: str, key_text: str) -> CheckpointView | None:
    kept = await store.get_checkpoint(run, key_text)
    return None if kept is None else CheckpointView(kept.attempt, kept.at_ms, kept.data)


async def _output(store: Store, ended: Record | None) -> bytes | None:
    if ended is None or ended.type == "retry.scheduled":
        return None
    if ended.type == "region.sized":
        return orjson.dumps({"count": _data(ended)["count"]})
    return await output_of(store, ended)


async def _input(
    store: Store, plan: Plan, row: RunRow, services: Services, redactor: Redactor, key: NodeKey, begins: Record
) -> tuple[bytes | None, dict[str, Any] | None]:
    """The filled params as JSON, or why they could not be filled."""
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
    """The values as they were when event `seq` was made, and how many scopes each container had opened by then."""
    env = {name: MARK if name in services.secrets else value for name, value in services.env.items()}
    values = Values(plan, orjson.loads(row.input), env)
    codec = Codec(plan)
    fold = Fold(plan, values)
    opened: dict[tuple[Path, int], int] = {}
    after = 0
    while after < seq - 1:
        records = await store.read_events(row.id, after, min(PAGE, seq - 1 - after))
        if not records:
            break
        for record in records:
            if record.type in _CHANGES:
                event = codec.to_event(record)
                fold.apply(event, await output_of(store, record))
                if isinstance(event, ScopesOpened):
                    path, start = event.key
                    opened[path, plan.nodes[start].body] = event.first + event.count
        after = records[-1].seq
    return values, opened


def _shown(filled: Any, written: Any) -> Any:
    """The filled params for people: code as it was written, beside the values its references had."""
    if isinstance(filled, Bound):
        return {"$code": written, "values": {**filled.texts, **filled.values}}
    if isinstance(filled, dict) and isinstance(written, Mapping):
        return {name: _shown(value, written.get(name)) for name, value in filled.items()}
    if isinstance(filled, list) and isinstance(written, list) and len(filled) == len(written):
        return [_shown(value, part) for value, part in zip(filled, written, strict=True)]
    return filled


def _data(record: Record | None) -> dict[str, Any]:
    if record is None or record.data is None:
        return {}
    data: dict[str, Any] = orjson.loads(record.data)
    return data
