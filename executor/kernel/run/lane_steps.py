"""The steps of an entry of a durable function that are under way: what becomes of each from its start to its end.

The work of a step begins in the callback in which its start is on disk, and `over` is called in the one in which it
ends: no pass of the event loop lies between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial

from executor.errors import BlockError
from executor.kernel.process.observe import begin_task
from executor.kernel.run.lane_due import LaneDue
from executor.kernel.run.made import Made
from executor.kernel.run.results import Stored
from executor.kernel.run.step_work import CANCELLED, Ended, StepJournal, StepWork


class LaneSteps:
    """`over` is called when one is not under way any more, with its end; with None if it pauses, or `failed` is set,
    which ends the entry."""

    def __init__(
        self, journal: StepJournal, work: StepWork, due: LaneDue, over: Callable[[Made, Ended | None], None]
    ) -> None:
        self.failed: BaseException | None = None
        self.is_ending = False  # none is tried again
        self.is_over = False  # none begins
        self._loop = journal.loop
        self._work = work
        self._due = due
        self._report = over
        self._context = copy_context()
        self._under_way: set[Made] = set()

    def __len__(self) -> int:
        return len(self._under_way)

    def start(self, made: Made) -> None:
        self._under_way.add(made)
        made.pause_ms, made.stoppable = None, True
        self._work.begin_then(made.call, partial(self._begun, made))

    def stop(self, made: Made) -> None:
        """Stop the work of a step that is not needed, unless it changes something outside. Its end is recorded."""
        if made.pause_ms is not None:
            made.pause_ms = None
            self._under_way.add(made)
            made.task = self._loop.create_task(self._do(made, None), context=self._context.copy())
        elif made.stoppable and made.call.effect != "write":
            made.is_dropped = True
            if made.task is not None:
                made.task.cancel()

    async def end(self) -> None:
        """Stop all where they are. Their ends are recorded as cancelled."""
        self.is_over = True
        for made in list(self._under_way):
            if made.task is None or made.task.done():  # its start is not on disk yet
                self._under_way.discard(made)
                self._work.cancel(made.call)
            else:
                made.task.cancel()
        if tasks := [made.task for made in self._under_way if made.task is not None]:
            with suppress(asyncio.CancelledError):
                await asyncio.wait(tasks)

    def _begun(self, made: Made, stored: Stored | BlockError) -> None:
        if made in self._under_way:
            made.task = begin_task(self._do(made, stored), made.call.name, self._context.copy())

    async def _do(self, made: Made, stored: Stored | BlockError | None) -> None:
        """`stored`: its start, or why it has none; None if it is given up before it begins again."""
        ended: Ended | None = None
        try:
            ended = await (self._give_up(made) if stored is None else self._end_of(made, stored))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # of the journal: the attempt is over
            self.failed = self.failed or error
        finally:
            self._under_way.discard(made)
            self._report(made, ended)

    async def _end_of(self, made: Made, stored: Stored | BlockError) -> Ended | None:
        call, work = made.call, made.work
        assert work is not None, "only steps have a start of their own"
        try:
            try:
                if isinstance(stored, BlockError):
                    raise stored
                if self.is_over or made.is_dropped:
                    raise asyncio.CancelledError
                result = await work.run(call.n)
            finally:
                made.stoppable = False  # its end is not interrupted
        except asyncio.CancelledError:
            if self.is_over:
                self._work.cancel(call)
                raise
            return await self._give_up(made)
        except (Exception, SystemExit) as error:
            due_ms = work.again_ms(call.n, made.times + 1, error)
            if due_ms is None or made.future.done() or self.is_ending:
                return await self._work.fail(call, error)
            made.times += 1
            made.pause_ms = due_ms
            self._work.retry(call, made.times, due_ms, error)
            self._due.add(due_ms, call.n)
            return None
        return await self._work.finish(call, result)

    async def _give_up(self, made: Made) -> Ended:
        return await self._work.fail(made.call, BlockError(CANCELLED.message, code=CANCELLED.code))
