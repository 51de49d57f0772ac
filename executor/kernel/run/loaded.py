"""A run in memory: its row, its plan, and what its journal folds to: state, values and notes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import orjson

from compiler.keys import ROOT, NodeKey, parse_key, parse_wait
from compiler.plan import Plan
from executor.errors import CorruptJournal
from executor.kernel.core.events import Event, NodeSucceeded, RunContinuing, RunStarted, WaitClosed, WaitOpened
from executor.kernel.core.evolve import evolve
from executor.kernel.core.state import DECIDED, State, Status, Wait
from executor.kernel.journal.codec import Codec, data_of
from executor.kernel.journal.projection import BLOCK_OUTPUT, CONTAINER_OUTPUT
from executor.kernel.journal.reader import Journals, Records, output_of
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.store.topics.snapshots import SNAPSHOT_SEQ_MIN, SnapshotRow
from executor.kernel.values.fold import Fold
from executor.kernel.values.payload import trimmed
from executor.kernel.values.scope import Values

log = logging.getLogger("weft.snapshots")

# Events between two snapshots: so many take a fiftieth of a second to fold.
EVERY = 5_000
# A run that leaves memory has time for a snapshot: one for every so many events.
LEAVING_EVERY = SNAPSHOT_SEQ_MIN
# And one more for each so many bytes of the last one: a run that grows does not write itself out again and again.
BYTES_PER_EVENT = 128

WaitKey = tuple[NodeKey, int]  # the number of the wait after the key of its node


@dataclass(slots=True)
class Notes:
    """Facts of earlier events that recording needs, beside state and values. `reused` has the outputs of nodes that are
    reused from another run, by node number; `signal_names` name and correlation of open waits for a signal; `children`
    the run that an open wait waits for. `is_parent` is True if the run has had children. `response` is the output of
    the block that ended the run, whose cleanups come first; `continues` is True if another run continues it then.
    `keeps`: the run that nodes take over from, and the blocks that do not; `outcomes` is the work of that run."""

    reused: Mapping[int, bytes] = field(default_factory=dict)
    signal_names: dict[WaitKey, tuple[str, str | None]] = field(default_factory=dict)
    children: dict[WaitKey, str] = field(default_factory=dict)
    is_parent: bool = False
    response: bytes | None = None
    continues: bool = False
    continuing: NodeKey | None = None  # the block whose next event records it
    keeps: tuple[str, tuple[str, ...]] | None = None
    outcomes: dict[str, list[Any]] | None = None  # see `earlier`: not part of what is folded

    def replay(self, event: Event, record: Record, output: bytes | None) -> None:
        """Apply an event that is stored."""
        if type(event) is NodeSucceeded and event.end_run:
            self.response = output
            self.continues = event.key == self.continuing
        elif type(event) is RunContinuing:
            self.continuing = event.key
        elif type(event) is RunStarted and event.keeps and event.source_run is not None:
            self.keeps = event.source_run, event.again
        if type(event) is WaitOpened:
            if event.kind == "signal":
                data = data_of(record)
                self.signal_names[event.key, event.attempt] = (data["name"], data.get("correlation"))
            elif event.kind == "child":
                self.children[event.key, event.attempt] = data_of(record)["child"]
                self.is_parent = True
        elif type(event) is WaitClosed:
            self.closed((event.key, event.attempt))

    def closed(self, key: WaitKey) -> str | None:
        """Note that this wait is closed. Returns the child it waited for."""
        self.signal_names.pop(key, None)
        return self.children.pop(key, None)

    def left_to_reuse(self, plan: Plan, state: State) -> dict[int, bytes]:
        """Return the outputs to reuse for nodes that have not ended yet."""
        root = state.scopes.get(ROOT)
        if root is None:
            return {}
        first = plan.regions[root.region].first
        return {n: output for n, output in self.reused.items() if Status(root.status[n - first]) not in DECIDED}


class Saved(NamedTuple):
    """The last snapshot of a run: the number of its events, and its size. Both are 0 if there is none."""

    seq: int = 0
    bytes: int = 0


NOT_SAVED = Saved()


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run in memory. `row` is as it was claimed; each event changes `state`, `fold` and `notes`."""

    row: RunRow
    plan: Plan
    codec: Codec
    state: State
    fold: Fold
    notes: Notes = field(default_factory=Notes)
    saved: Saved = NOT_SAVED

    @classmethod
    def empty(cls, row: RunRow, plan: Plan, env: Mapping[str, str], saved: Saved = NOT_SAVED) -> Self:
        fold = Fold(plan, Values(plan, orjson.loads(row.input), env))
        return cls(row, plan, Codec(plan), State.new(plan), fold, saved=saved)

    @property
    def id(self) -> str:
        return self.row.id

    def apply(self, record: Record, output: bytes | None) -> Event:
        """Apply the next event, as it is stored; `output` also if it is not in the row."""
        event = self.codec.to_event(record)
        evolve(self.plan, self.state, event)
        self.fold.apply(event, output)
        self.notes.replay(event, record, output)
        return event

    def open_wait(self, id: str) -> tuple[NodeKey, Wait] | None:
        """Return the node key and the wait, or None if this wait is closed, though the node may have another one by
        now."""
        try:
            text, attempt = parse_wait(id)
            key = parse_key(self.plan, text)
        except ValueError:
            return None
        wait = self.state.wait_of(key, attempt)
        return None if wait is None else (key, wait)


class Snapshots:
    """The snapshots of one run in memory, as `snapshot_of` makes them. The next is due when its journal has `due_seq`
    events."""

    def __init__(self, run: LoadedRun, snapshot_of: Callable[[LoadedRun], Awaitable[SnapshotRow | None]]) -> None:
        self._run = run
        self._snapshot_of = snapshot_of
        self._row: SnapshotRow | None = None
        self.due_seq = 0
        self._leaving_seq = 0
        self._plan_next(run.saved.seq, run.saved.bytes)

    def _plan_next(self, seq: int, bytes: int) -> None:
        least = bytes // BYTES_PER_EVENT
        self.due_seq = max(seq + max(EVERY, least), SNAPSHOT_SEQ_MIN)
        self._leaving_seq = max(seq + max(LEAVING_EVERY, least), SNAPSHOT_SEQ_MIN)

    async def make(self) -> None:
        """Make a snapshot for the next append, or the release. All events of the state are stored."""
        seq = self._run.state.seq
        try:
            row = await self._snapshot_of(self._run)
        except Exception:  # the run does not need it
            log.exception("run %s: no snapshot could be made", self._run.id)
            row = None
        if row is None:
            self._plan_next(2 * seq, 0)
        else:
            self._row = row
            self._plan_next(seq, len(row.data))

    async def make_before_leaving(self) -> None:
        if self._run.state.seq >= self._leaving_seq:
            await self.make()

    @property
    def is_made(self) -> bool:
        return self._row is not None

    def pop(self) -> SnapshotRow | None:
        """Return the snapshot to store now, or None."""
        row, self._row = self._row, None
        return row


async def replay(store: Journals, run: LoadedRun, upto: int | None = None) -> int:
    """Apply the events after `run.saved`, up to and with event `upto`. Returns the time of the last event. Raises
    CorruptJournal if the journal does not fold, or is not as long as the run's row."""
    at_ms = 0
    async for record in Records(store, run.id, after=max(0, run.saved.seq - 1), upto=upto):
        at_ms = max(at_ms, record.at_ms)
        if record.seq == run.saved.seq:
            continue  # read for its time
        if record.seq != run.state.seq + 1:
            raise CorruptJournal(f"run {run.id}: event {run.state.seq + 1} is missing")
        output = record.output
        if output is None and record.data is not None:
            output = await output_of(store, record)
        event = run.apply(record, output)
        if isinstance(event, RunStarted) and event.reuse:
            run.notes.reused = await _reused_outputs(store, run.plan, event)
    if run.state.seq != run.row.seq:
        raise CorruptJournal(f"run {run.id}: the run row has {run.row.seq} events, the journal has {run.state.seq}")
    return at_ms


async def _reused_outputs(store: Journals, plan: Plan, event: RunStarted) -> dict[int, bytes]:
    """Outputs of the root nodes this run takes over from the run it was started from."""
    assert event.source_run is not None
    outputs: dict[int, bytes] = {}
    async for record in Records(store, event.source_run):
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
