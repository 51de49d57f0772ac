"""The runs that this process has in memory. They are woken here; the worker claims them and puts them here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sized
from typing import Protocol

from compiler.plan import Plan
from executor.kernel.read.peers import DUE, FAMILY, INBOX, LEFT, Peers
from executor.kernel.read.watchers import Watchers
from executor.kernel.run.awaited import AwaitedRun
from executor.kernel.store.run_rows import NewRun, RunRow
from executor.kernel.store.topics.waits import Answered, WaitRow


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
    the worker's to change."""

    def __init__(self, peers: Peers | None = None) -> None:
        self._peers = peers or Peers()
        self.loops: dict[str, Loop] = {}
        self.due = asyncio.Event()
        self.missing: dict[str, str] = {}
        self.adopt: Adopt | None = None
        self.answer: AnswerHere | None = None
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

    def left(self, run: str) -> None:
        self._left.signal(run)
        self._peers.grown(run, LEFT)
        for call in self._on_left:
            call()

    def left_elsewhere(self, run: str) -> None:
        """Note that a run has left the memory of another process."""
        self._left.signal(run)
