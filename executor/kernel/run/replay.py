"""Folds the journal of a run into an empty run, or into one that a snapshot has filled."""

from __future__ import annotations

import orjson

from compiler.plan import Plan
from executor.errors import CorruptJournal
from executor.kernel.core.events import RunStarted
from executor.kernel.journal.codec import data_of
from executor.kernel.journal.projection import BLOCK_OUTPUT, CONTAINER_OUTPUT
from executor.kernel.journal.reader import Journals, output_of, read
from executor.kernel.run.loaded import LoadedRun
from executor.kernel.values.payload import trimmed


async def replay(store: Journals, run: LoadedRun, upto: int | None = None) -> int:
    """Apply the events after `run.saved`, up to and with event `upto`. Returns the time of the last event. Raises
    CorruptJournal if the journal does not fold, or is not as long as the run's row."""
    at_ms = 0
    async for record in read(store, run.id, after=max(0, run.saved.seq - 1), upto=upto):
        at_ms = max(at_ms, record.at_ms)
        if record.seq == run.saved.seq:
            continue  # read for its time
        if record.seq != run.state.seq + 1:
            raise CorruptJournal(f"run {run.id}: event {run.state.seq + 1} is missing")
        output = record.output
        if output is None and record.data is not None:
            output = await output_of(store, record)
        event = run.apply(record, output)
        if isinstance(event, RunStarted) and event.source_run is not None:
            run.notes.reused = await _reused_outputs(store, run.plan, event)
    if run.state.seq != run.row.seq:
        raise CorruptJournal(f"run {run.id}: the run row has {run.row.seq} events, the journal has {run.state.seq}")
    return at_ms


async def _reused_outputs(store: Journals, plan: Plan, event: RunStarted) -> dict[int, bytes]:
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
            if failed.get("route") == "error":  # what the blocks after its error handle read; on `continue` null
                output = trimmed(orjson.dumps({"error": failed["error"]}))
        if output is not None:
            outputs[number] = output
    return outputs
