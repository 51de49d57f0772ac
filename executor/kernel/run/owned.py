"""The runs that this process has in memory, and those that have left it last. They are woken here; the worker claims
them and puts them here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sized
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from compiler.plan import Plan
from executor.kernel.process.lane_cache import LaneCache
from executor.kernel.read.peers import DUE, FAMILY, INBOX, LEFT, Peers
from executor.kernel.read.watchers import Watchers
from executor.kernel.run.awaited import AwaitedRun
from executor.kernel.run.loaded import LoadedRun
from executor.kernel.store.run_rows import NewRun, RunRow
from executor.kernel.store.topics.snapshots import SNAPSHOT_SEQ_MIN
from executor.kernel.store.topics.waits import Answered, WaitRow

PARKED_BYTES: Final = 4 * 1024 * 1024  # of all runs here
RUN_BYTES_MAX: Final = 256 * 1024  # of one: reading a large one again costs little beside what it does
# The bytes that a run holds in memory, at most: measured with small and with large outputs.
RUN_BYTES, EVENT_BYTES, BYTES_PER_BYTE = 4096, 512, 8


class Parked(NamedTuple):
    """A run that has left memory, and the time of its last event."""

    run: LoadedRun
    at_ms: int
    bytes: int

    def claimed(self, row: RunRow) -> LoadedRun | None:
        """Return the run as it is with this row, or None if it is not the next lease of the same state."""
        mine = self.run
        same = (mine.row.epoch + 1, mine.state.seq, mine.plan.hash) == (row.epoch, row.seq, row.plan_hash)
        return replace(mine, row=row) if same else None


class ParkedRuns:
    """The runs that have left memory last, as their journals fold: one that continues soon is not read again. Nothing
    depends on it: a run is taken from here once, and used only if its row has the epoch and the last event that it left
    with, so that no other process has had it since."""

    def __init__(self) -> None:
        self._runs: dict[str, Parked] = {}
        self._bytes = 0

    def keep(self, run: LoadedRun, at_ms: int) -> None:
        """Keep a run that waits and has no owner from now on. No one else may change it."""
        seq = run.state.seq
        size = RUN_BYTES + EVENT_BYTES * seq + BYTES_PER_BYTE * (run.fold.bytes + len(run.row.input))
        if seq >= SNAPSHOT_SEQ_MIN or size > RUN_BYTES_MAX:
            return
        self.pop(run.id)
        self._runs[run.id] = Parked(run, at_ms, size)
        self._bytes += size
        while self._bytes > PARKED_BYTES:
            self.pop(next(iter(self._runs)))

    def pop(self, run: str) -> Parked | None:
        parked = self._runs.pop(run, None)
        if parked is not None:
            self._bytes -= parked.bytes
        return parked


class Loop(Protocol):
    """As `RunLoop` has them."""

    @property
    def root(self) -> str | None: ...

    def inbox_changed(self) -> None: ...

    def end_with_family(self) -> None: ...

    @property
    def held_bytes(self) -> int: ...

    @property
    def attempts(self) -> Sized: ...

    def stop(self) -> None: ...


Adopt = Callable[[NewRun, Plan, AwaitedRun | None], Awaitable[tuple[RunRow, bool] | None]]
# The wait, the answer as it is stored, who answered, the message for the run. What came of it, and the run if it was
# claimed.
AnswerHere = Callable[[WaitRow, bytes, str | None, bytes, int], Awaitable[tuple[Answered | None, RunRow | None] | None]]


class OwnedRuns:
    """`loops`: by run id. `due` is set when a run may be due to be claimed. `adopt` creates a run and takes it into
    memory in the same commit; `answer` does so with a run that it answers a question of. They return None, and nothing
    was done, when there is no room for it, or others wait. `missing`: what runs need that were given back here. All are
    the worker's to change. `parked`: runs that have left; `lanes`: those of durable functions that have left."""

    def __init__(self, peers: Peers | None = None, lanes: LaneCache | None = None) -> None:
        self._peers = peers or Peers()
        self.loops: dict[str, Loop] = {}
        self.due = asyncio.Event()
        self.missing: dict[str, str] = {}
        self.adopt: Adopt | None = None
        self.answer: AnswerHere | None = None
        self.parked = ParkedRuns()
        self.lanes = LaneCache() if lanes is None else lanes
        self._on_left: list[Callable[[], None]] = []
        self._left = Watchers()

    def __len__(self) -> int:
        return len(self.loops)

    def wake(self, run: str | None = None) -> None:
        """Something may be due; with `run`, something is in that run's inbox."""
        loop = self.loops.get(run) if run is not None else None
        if loop is not None:
            loop.inbox_changed()
            return
        self.due.set()
        if run is None:
            self._peers.notify(DUE, "")
        else:
            self._peers.notify(INBOX, run)

    def wake_family(self, root: str) -> None:
        """Note that a run was cancelled: runs below it that are in memory need not wait for its message."""
        self.end_family(root)
        self._peers.notify(FAMILY, root)

    def end_family(self, root: str) -> None:
        for loop in list(self.loops.values()):
            if loop.root == root:
                loop.end_with_family()

    def on_left(self, call: Callable[[], None]) -> None:
        """Call it each time a run has left memory: it ended, or waits."""
        self._on_left.append(call)

    def lacks(self, row: RunRow) -> str | None:
        """Return what the run waits for and this process does not have, or None."""
        if row.lease_owner is not None or row.finished_at_ms is not None:
            return None
        return self.missing.get(row.id)

    def watch_left(self, run: str) -> asyncio.Future[None]:
        """Return a future that is done when this run leaves memory. Take it BEFORE reading its row, then await it;
        cancel it when it is not needed any more. If another process has the run, it depends on a message of the bus,
        which may be lost."""
        return self._left.watch(run)

    def waited_elsewhere(self) -> list[str]:
        return [run for run in self._left.runs() if run not in self.loops]

    def left(self, run: str, finished: bool = False) -> None:
        if finished:
            self.lanes.forget(run)
        self._left.signal(run)
        self._peers.grown(run, LEFT)
        for call in self._on_left:
            call()

    def left_elsewhere(self, run: str) -> None:
        """Note that a run has left the memory of another process."""
        self._left.signal(run)
