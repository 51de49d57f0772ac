"""Rewinding a handler with steps, such as an agent: a fork inside its run, with other results of single steps, or with
other params of its block from there on. Every finished step before is taken over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct

from compiler.keys import NodeKey
from compiler.plan import Plan
from executor.errors import BadRequest, BlockError
from executor.kernel.core import events as e
from executor.kernel.journal.codec import Codec, data_of
from executor.kernel.journal.reader import Records
from executor.kernel.journal.steps import NodeSteps
from executor.kernel.run.mismatch import ANY_INPUT
from executor.kernel.run.new_run import Origin, origin_of
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.store.topics.store import Store
from executor.kernel.values.payload import encode
from executor.service.parts import Parts

CALLS_MAX = 200  # in a preview

Steps = Mapping[str, Mapping[str, Any]]  # results by node key and number of the step
Params = Mapping[str, Mapping[str, Any]]  # by block


class Rewind(Struct, frozen=True):
    """The changes of a fork inside a node. `origin`: of the plan with other params of the blocks `anew`."""

    steps: Steps = {}
    origin: Origin | None = None
    anew: frozenset[str] = frozenset()


NO_REWIND = Rewind()


class Call(Struct, frozen=True):
    """A step that the source made, or a block that it ran (`n` is 0), after the point of a fork."""

    key: str
    n: int
    kind: str
    name: str
    effect: str


class ForkPreview(Struct, frozen=True):
    """A fork takes over the first `seq` events, with `calls` finished steps, which used `usage` and cost `cost`. What
    the source did after them, and the fork may do again, is in `again`; `more`: there is more of it."""

    run: str
    seq: int
    calls: int
    usage: dict[str, int]
    cost: float | None
    again: tuple[Call, ...]
    more: bool


async def point_of(store: Store, row: RunRow, steps: Steps) -> int:
    """Return the event after which a fork can have other results of these steps: the last one before another step of
    the node began. Raises BadRequest if a step did not end."""
    wanted = {(key, int(n)) for key, numbers in steps.items() for n in numbers if n.isdecimal()}
    point, begun = row.seq, set[str]()
    async for record in Records(store, row.id, upto=row.seq, types=("step.started", "step.finished", "node.succeeded")):
        key = f"{record.node}@{record.path}" if record.path else record.node or ""
        if record.type == "step.finished" and (key, data_of(record)["n"]) in wanted:
            begun.add(key)
        elif key in begun:
            point = min(point, record.seq - 1)
    return point


def edited(plan: Plan, events: Sequence[e.Event], steps: Steps) -> dict[int, bytes]:
    """Return the results to record in place of others, by index of the event. Raises BadRequest."""
    codec, found = Codec(plan), dict[int, bytes]()
    keys = {codec.key_text(event.key): event.key for event in events if isinstance(event, e.StepFinished)}
    for text, numbers in steps.items():
        for number, value in numbers.items():
            pointer = "/".join(("/steps", *(part.replace("~", "~0").replace("/", "~1") for part in (text, number))))
            index = _finish(events, keys.get(text), number)
            if index is None:
                message = f"step {number} of {text!r} has no result in the first {len(events)} events"
                hint = "`steps` of the node lists their numbers; a step that has ended can have another result"
                raise BadRequest(message, code="step_not_recorded", pointer=pointer, hint=hint)
            after = next((n for n, one in enumerate(events[index:], index) if _begins(one, keys[text])), None)
            if after is not None:
                message = f"a later step of {text!r} depends on step {number}"
                raise BadRequest(message, code="step_used", pointer=pointer, hint=f"fork at {after}, before it began")
            try:
                found[index] = encode(value)
            except BlockError as error:
                raise BadRequest(error.message, code=error.code, pointer=pointer, hint=error.hint) from error
    return found


def _finish(events: Sequence[e.Event], key: NodeKey | None, number: str) -> int | None:
    found = None
    for index, event in enumerate(events):
        if isinstance(event, e.StepFinished) and event.key == key and str(event.n) == number:
            found = index
    return found


def _begins(event: e.Event, key: NodeKey) -> bool:
    return isinstance(event, e.StepStarted | e.NodeSucceeded | e.NodeFailed) and event.key == key


async def with_params(
    parts: Parts, row: RunRow, plan: Plan, document: Mapping[str, Any], params: Params
) -> tuple[Plan, Origin]:
    """Return the plan and origin of the document with other params of some blocks. Raises BadRequest, CompileError."""
    blocks = dict(document.get("blocks") or {})
    for block, changes in params.items():
        if block not in blocks:
            message = f"the workflow has no block '{block}'"
            raise BadRequest(message, code="node_not_found", pointer=f"/params/{block}", hint="use the id of a block")
        blocks[block] = {**blocks[block], "params": {**(blocks[block].get("params") or {}), **changes}}
    data = orjson.dumps({**document, "blocks": blocks})
    new = await parts.compiler.plan(data, plan.trigger)
    shapes = [[(node.id, node.out, node.sentinel, node.body) for node in each.nodes] for each in (plan, new)]
    if shapes[0] != shapes[1]:
        message = "these params change which blocks follow which"
        raise BadRequest(message, code="params_reorder", pointer="/params", hint="continue with a draft instead")
    origin = origin_of(data, new)
    return new, Origin(row.workflow, None, origin.document_hash, origin.document)


def marked(record: Record, run: str, anew: bool) -> bytes | None:
    """Return the data of a copied event of a step: who paid for it; and `anew`, that its input may be another one."""
    data = data_of(record)
    if record.type == "step.finished":
        data.setdefault("from_run", run)
    elif record.type == "step.started" and anew:
        data["input_hash"] = ANY_INPUT
    return orjson.dumps(data) if data else None


async def preview(store: Store, plan: Plan, row: RunRow, seq: int) -> ForkPreview:
    steps: dict[str, NodeSteps] = {}
    again: list[Call] = []
    names = {node.id: node for node in plan.nodes}
    codec = Codec(plan)
    async for record in Records(store, row.id, upto=row.seq, types=("step.started", "step.finished", "node.started")):
        event, data = codec.to_event(record), data_of(record)
        assert isinstance(event, e.StepStarted | e.StepFinished | e.NodeStarted)
        key, node = codec.key_text(event.key), names[record.node or ""]
        if record.seq <= seq:
            if not isinstance(event, e.NodeStarted):
                steps.setdefault(key, NodeSteps()).apply(record.type, data, record.attempt, record.seq, record.at_ms)
        elif isinstance(event, e.StepStarted):
            again.append(Call(key, event.n, event.kind, event.name, event.effect))
        elif isinstance(event, e.NodeStarted) and node.sentinel is None and key not in steps:
            again.append(Call(key, 0, "block", node.name, node.effect))
    done = [step for each in steps.values() for step in each.in_order() if step.finished_seq is not None]
    usage: dict[str, int] = {}
    for step in done:
        for name, count in step.usage.items():
            usage[name] = usage.get(name, 0) + count
    costs = [step.cost for step in done if step.cost is not None]
    shown = tuple(again[:CALLS_MAX])
    return ForkPreview(row.id, seq, len(done), usage, sum(costs) if costs else None, shown, len(again) > CALLS_MAX)
