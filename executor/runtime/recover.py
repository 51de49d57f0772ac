"""From rows to a run loop: fold the journal, find out what was under way. A new run is just a short journal."""

from __future__ import annotations

import orjson

from compiler.plan import Plan
from executor.core import commands as c
from executor.core import facts as f
from executor.core.decide import outstanding
from executor.core.events import RunStarted
from executor.core.evolve import evolve
from executor.core.state import State
from executor.errors import CorruptJournal, Fenced
from executor.journal.codec import Codec, data_of
from executor.journal.reader import load_plan, output_of, read
from executor.runtime.cached import ResultCache
from executor.runtime.checkpoints import Checkpoints
from executor.runtime.launch import Launcher
from executor.runtime.loop import RunLoop
from executor.runtime.parts import Parts
from executor.runtime.recorder import Recorder
from executor.store.contract import Store
from executor.store.rows import RunRow
from executor.values.fold import Fold
from executor.values.scope import Values


async def recover(parts: Parts, row: RunRow) -> tuple[RunLoop, list[f.Fact]]:
    """The loop for a claimed run and the facts it begins with. Raises CorruptJournal when the journal does not fold,
    Fenced when another worker has the run by now."""
    plan = await load_plan(parts.store, row.plan_hash)
    values = Values(plan, orjson.loads(row.input), parts.services.env)
    codec = Codec(plan)
    state = State.new(plan)
    fold = Fold(plan, values)
    recorder = Recorder(
        run_id=row.id,
        epoch=row.epoch,
        plan=plan,
        fold=fold,
        codec=codec,
        token_hash=parts.links.hash_of,
        now_ms=parts.clock.now_ms,
        notify=parts.services.notify,
        parent=(row.parent_run_id, row.parent_key) if row.parent_run_id and row.parent_key else None,
        root=row.root_id,
        family_max=parts.services.limits.family,
    )
    async for record in read(parts.store, row.id):
        if record.seq != state.seq + 1:
            raise CorruptJournal(f"run {row.id}: event {state.seq + 1} is missing")
        event = codec.to_event(record)
        evolve(plan, state, event)
        output = record.output
        if output is None and record.data is not None:
            output = await output_of(parts.store, record)
        fold.apply(event, output)
        recorder.replay(event, record)
        if isinstance(event, RunStarted) and event.source_run is not None:
            recorder.reuse(await _reused_outputs(parts.store, plan, event))
    if state.seq != row.seq:
        now = await parts.store.get_run(row.id)
        if now is None or now.epoch != row.epoch:
            raise Fenced
        raise CorruptJournal(f"run {row.id}: the run row has {row.seq} events, the journal has {state.seq}")

    launcher = Launcher(
        run_id=row.id,
        plan=plan,
        values=values,
        registry=parts.registry,
        services=parts.services,
        clock=parts.clock,
        key_text=codec.key_text,
        emit=lambda key, text, seq: parts.hub.delta(row.id, key, parts.redactor.redact(text), seq),
        redactor=parts.redactor,
        checkpoints=Checkpoints(parts.store, row, parts.clock, parts.redactor),
        cache=ResultCache(parts.store, row, parts.clock, parts.redactor, parts.services.sandbox.matches),
        children=parts.children,
    )
    loop = RunLoop(
        row=row,
        plan=plan,
        state=state,
        fold=fold,
        launcher=launcher,
        recorder=recorder,
        store=parts.store,
        timers=parts.timers,
        now_ms=parts.clock.now_ms,
        signal=parts.hub.signal,
        messages_written=parts.hub.messages.set,
        wake=parts.wake,
        limits=parts.services.limits,
        turns=parts.turns,
    )
    return loop, _first_facts(parts, plan, state, loop, row.lost_together)


def _first_facts(parts: Parts, plan: Plan, state: State, loop: RunLoop, together: bool) -> list[f.Fact]:
    now_ms = parts.clock.now_ms()
    first: list[f.Fact] = [] if state.parked else [f.Recovered(now_ms)]
    for command in outstanding(plan, state):
        match command:
            case c.RunNode():
                first.append(f.AttemptLost(now_ms, command.key, command.attempt, together))
            case c.SetTimer():
                loop.set_node_timer(command)
            case _:
                pass
    return first


async def _reused_outputs(store: Store, plan: Plan, event: RunStarted) -> dict[int, bytes]:
    """Outputs of the root nodes this run takes over from the run it was started from."""
    assert event.source_run is not None
    outputs: dict[int, bytes] = {}
    async for record in read(store, event.source_run):
        number = plan.node_index(record.node) if record.node and not record.path else None
        if number not in event.reuse:
            continue
        output = None
        if record.type in ("node.succeeded", "region.exited"):
            output = await output_of(store, record)
        elif record.type == "node.failed":
            failed = data_of(record)
            if failed.get("route") == "error":  # what the blocks behind its error handle read; on `continue` null
                output = orjson.dumps({"error": failed["error"]})
        if output is not None:
            outputs[number] = output
    return outputs
