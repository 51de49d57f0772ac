"""Undoes a durable function whose run is cancelled: its code is entered once more, in the cleanup of the run.

It gets what it had received, in the same order, and then the cancel, at the await where it is by then. What it begins
after that are steps of the node `undo`, with the numbers that follow. An entry of it that is lost is repeated like any
other: what the code had received, the cancel, what it has done since.

The cancel comes after all that was recorded before `cleanup.opened`, also after the answer of a person about a step
whose outcome is unknown: the code has to know what there is to undo. It waits for shields that the code is in; when it
waits, no other one begins.
"""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

from msgspec import Struct

from executor.errors import BlockError
from executor.kernel.process.clock import Clock
from executor.kernel.process.timers import Timers
from executor.kernel.run.durable import Driver
from executor.kernel.run.made import Entry
from executor.kernel.run.step_work import StepJournal, StepWork


class Cancelled(Struct, frozen=True):
    """The cancel, as the code gets it: with event `seq`."""

    seq: int
    at_ms: int


class UndoDriver(Driver):
    _may_be_cancelled = True

    def __init__(
        self, entry: Entry, journal: StepJournal, work: StepWork, clock: Clock, timers: Timers, cancelled: Cancelled
    ) -> None:
        super().__init__(entry, journal, work, clock, timers)
        self._cancelled = cancelled
        self._is_next = False  # but for shields
        self._is_delivered = False
        self._blocked: list[asyncio.Future[None]] = []  # shields that begin after it

    def _result(self, main: asyncio.Task[Any]) -> Any:
        if self._is_delivered:
            return None if main.cancelled() else main.result()
        main.result()
        message = "the function returned before the cancel reached it: what it did is done, and nothing was undone"
        raise BlockError(message, code="cancelled_late", retryable=False)

    def continue_as_new(self, input: Any) -> NoReturn:
        raise RuntimeError("a run that is cancelled cannot continue as new")

    async def enter_shield(self) -> None:
        if self._is_next and not self._is_delivered:
            begins: asyncio.Future[None] = self._lane.create_future()
            self._blocked.append(begins)
            await begins
        await super().enter_shield()

    def _cancel(self, main: asyncio.Task[Any]) -> bool:
        if self._is_delivered:
            return False
        self._is_next = self._is_next or self._knows_all()
        if not self._is_next or self._shields:
            return False
        self._is_delivered = True
        self.now_ms = max(self.now_ms, self._cancelled.at_ms)
        main.cancel()
        for begins in self._blocked:
            if not begins.done():
                begins.set_result(None)
        return True

    def _knows_all(self) -> bool:
        """Returns True if no end of a step that began before the cancel is to be delivered."""
        known = self._entry.known
        return not any(
            step.finished_seq or (step.lost and not made.future.done())
            for n, made in self._made.items()
            if (step := known.get(n)) is not None and step.started_seq < self._cancelled.seq
        )

    def _is_held(self, n: int) -> bool:
        known = self._entry.known.get(n)
        is_asked = known is not None and known.lost
        return not (self._is_delivered or self._shields or is_asked)
