"""From rows to a run loop: fold the journal, find out what was under way. A new run is just a short journal."""

from __future__ import annotations

import orjson

from compiler.plan import Plan
from executor.core import commands as c
from executor.core import facts as f
from executor.core.decide import outstanding
from executor.core.events import RunStarted
from executor.core.evolve import evolve
from executor.errors import CorruptJournal, Fenced
from executor.journal.codec import data_of
from executor.journal.projection import BLOCK_OUTPUT, CONTAINER_OUTPUT
from executor.journal.reader import load_plan, output_of, read
from executor.runtime.adoption import Adoption
from executor.runtime.attempts import Attempts
from executor.runtime.loaded import LoadedRun
from executor.runtime.loop import RunLoop
from executor.runtime.parts import Parts
from executor.runtime.recorder import Recorder
from executor.runtime.results import Arrivals
from executor.store.contract import Store
from executor.store.rows import RunRow
from executor.values.payload import trimmed


def begin(parts: Parts, adoption: Adoption, plan: Plan) -> tuple[RunLoop, list[f.Fact]]:
    """The same for a run that is not created yet: nothing is read."""
    run = LoadedRun.empty(adoption.row, plan, parts.services.env)
    recorder = Recorder(run, parts)
    for record in adoption.new.records:
        event = run.codec.to_event(record)
        evolve(plan, run.state, event)
        run.fold.apply(event, record.output)
        recorder.replay(event, record)
    loop = RunLoop(run, parts, recorder, Attempts(run.id, parts, Arrivals()), adoption)
    return loop, _first_facts(parts.clock.now_ms(), run, loop)


async def recover(parts: Parts, row: RunRow, attempts: Attempts | None = None) -> tuple[RunLoop, list[f.Fact]]:
    """The loop for a claimed run and the facts it begins with. `attempts`: those under way, when this lease had an
    earlier loop; they are not lost. Raises CorruptJournal when the journal does not fold, Fenced when another worker
    has the run by now."""
    run = LoadedRun.empty(row, await load_plan(parts.store, row.plan_hash), parts.services.env)
    plan, state = run.plan, run.state
    recorder = Recorder(run, parts)
    async for record in read(parts.store, row.id):
        if record.seq != state.seq + 1:
            raise CorruptJournal(f"run {row.id}: event {state.seq + 1} is missing")
        event = run.codec.to_event(record)
        evolve(plan, state, event)
        output = record.output
        if output is None and record.data is not None:
            output = await output_of(parts.store, record)
        run.fold.apply(event, output)
        recorder.replay(event, record)
        if isinstance(event, RunStarted) and event.source_run is not None:
            recorder.reuse(await _reused_outputs(parts.store, plan, event))
    if state.seq != row.seq:
        now = await parts.store.get_run(row.id)
        if now is None or now.epoch != row.epoch:
            raise Fenced
        raise CorruptJournal(f"run {row.id}: the run row has {row.seq} events, the journal has {state.seq}")
    if attempts is None:
        attempts = Attempts(row.id, parts, Arrivals())
    loop = RunLoop(run, parts, recorder, attempts)
    return loop, _first_facts(parts.clock.now_ms(), run, loop)


def _first_facts(now_ms: int, run: LoadedRun, loop: RunLoop) -> list[f.Fact]:
    first: list[f.Fact] = [] if run.state.parked else [f.Recovered(now_ms)]
    under_way = loop.attempts.keys()
    for command in outstanding(run.plan, run.state):
        match command:
            case c.RunNode(key, attempt) if key not in under_way:
                first.append(f.AttemptLost(now_ms, key, attempt, run.row.lost_together))
            case c.SetTimer():
                loop.deadlines.set(command)
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
        if record.type in (BLOCK_OUTPUT, CONTAINER_OUTPUT):
            output = await output_of(store, record)
        elif record.type == "node.failed":
            failed = data_of(record)
            if failed.get("route") == "error":  # what the blocks behind its error handle read; on `continue` null
                output = trimmed(orjson.dumps({"error": failed["error"]}))
        if output is not None:
            outputs[number] = output
    return outputs
