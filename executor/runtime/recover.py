"""From rows to a run loop: fold the journal, find out what was under way. A new run is just a short journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import orjson

from compiler import plan as plans
from compiler.plan import Plan
from executor.blocks.registry import Registry
from executor.core import commands as c
from executor.core import facts as f
from executor.core.decide import outstanding
from executor.core.events import RunStarted
from executor.core.evolve import evolve
from executor.core.state import State
from executor.errors import CorruptJournal
from executor.journal import Codec
from executor.runtime.absorb import Absorber
from executor.runtime.clock import Clock
from executor.runtime.hub import Hub
from executor.runtime.launch import Launcher
from executor.runtime.run import RunLoop
from executor.runtime.timers import Timers
from executor.services import Services
from executor.store.base import Record, RunRow, Store
from executor.values.redact import Redactor
from executor.values.scope import Values

PAGE = 10_000


@dataclass(slots=True)
class Parts:
    """What every run loop of a process shares."""

    store: Store
    registry: Registry
    services: Services
    clock: Clock
    timers: Timers
    hub: Hub
    redactor: Redactor
    token_hash: Callable[[str, str], str]


async def load_plan(store: Store, hash: str) -> Plan:
    """By hash, cached: a plan never changes."""
    cached = _plans.get(hash)
    if cached is None:
        data = await store.get_plan(hash)
        if data is None:
            raise CorruptJournal(f"plan {hash} is missing")
        cached = plans.decode(data)
        keep_plan(cached)
    return cached


def keep_plan(plan: Plan) -> None:
    """Keep a plan at hand; the oldest goes when there are too many."""
    if plan.hash not in _plans and len(_plans) >= PLANS_MAX:
        _plans.pop(next(iter(_plans)))
    _plans[plan.hash] = plan


_plans: dict[str, Plan] = {}
PLANS_MAX = 256


async def output_of(store: Store, record: Record) -> bytes | None:
    """The record's output, fetched from the blobs when it was too large for the row."""
    if record.output is None and record.data and b'"blob"' in record.data:
        blob = orjson.loads(record.data).get("blob")
        if blob is not None:
            return await store.get_blob(blob)
    return record.output


async def recover(parts: Parts, row: RunRow) -> tuple[RunLoop, list[f.Fact]]:
    """The loop for a claimed run and the facts it begins with. Raises CorruptJournal when the journal does not fold."""
    plan = await load_plan(parts.store, row.plan_hash)
    values = Values(plan, orjson.loads(row.input), parts.services.env)
    codec = Codec(plan)
    state = State.new(plan)
    absorber = Absorber(
        run_id=row.id,
        epoch=row.epoch,
        plan=plan,
        values=values,
        codec=codec,
        token_hash=parts.token_hash,
        now_ms=parts.clock.now_ms,
    )
    after = 0
    while after < row.seq:
        records = await parts.store.read_events(row.id, after, PAGE)
        if not records or records[0].seq != after + 1:
            raise CorruptJournal(f"run {row.id}: event {after + 1} is missing")
        for record in records:
            event = codec.to_event(record)
            evolve(plan, state, event)
            output = record.output
            if output is None and record.data is not None:
                output = await output_of(parts.store, record)
            absorber.replay(event, record, output)
            if isinstance(event, RunStarted) and event.source_run is not None:
                absorber.reuse(await _reused_outputs(parts.store, plan, event))
        after = records[-1].seq
    if state.seq != row.seq:
        raise CorruptJournal(f"run {row.id}: the run row says {row.seq} events, the journal has {state.seq}")

    launcher = Launcher(
        run_id=row.id,
        plan=plan,
        values=values,
        registry=parts.registry,
        services=parts.services,
        clock=parts.clock,
        key_text=codec.key_text,
        emit=lambda key, text: parts.hub.delta(row.id, key, parts.redactor.redact(text)),
        redactor=parts.redactor,
    )
    loop = RunLoop(
        row=row,
        plan=plan,
        state=state,
        values=values,
        launcher=launcher,
        absorber=absorber,
        store=parts.store,
        timers=parts.timers,
        now_ms=parts.clock.now_ms,
        signal=parts.hub.signal,
    )
    return loop, _first_facts(parts, plan, state, loop)


def _first_facts(parts: Parts, plan: Plan, state: State, loop: RunLoop) -> list[f.Fact]:
    now_ms = parts.clock.now_ms()
    first: list[f.Fact] = [] if state.parked else [f.Recovered(now_ms)]
    for command in outstanding(plan, state):
        match command:
            case c.RunNode():
                first.append(f.AttemptLost(now_ms, command.key, command.attempt))
            case c.SetTimer():
                loop.set_node_timer(command)
            case _:
                pass
    return first


async def _reused_outputs(store: Store, plan: Plan, event: RunStarted) -> dict[int, bytes]:
    """Outputs of the root nodes this run takes over from the run it was started from."""
    assert event.source_run is not None
    outputs: dict[int, bytes] = {}
    after = 0
    while records := await store.read_events(event.source_run, after, PAGE):
        for record in records:
            if record.node is None or record.path:
                continue
            number = plan.node_index(record.node)
            output = None
            if record.type in ("node.succeeded", "region.exited"):
                output = await output_of(store, record)
            elif record.type == "node.failed":  # what the blocks behind its error handle read
                output = orjson.dumps({"error": orjson.loads(record.data or b"{}")["error"]})
            if number in event.reuse and output is not None:
                outputs[number] = output
        after = records[-1].seq
    return outputs
