"""Drives the code of a durable function: an entry of it, from its first line until it ends or leaves.

The code runs in a lane (`lane.py`), its steps in the event loop around it. What ends a call is an arrival: the end of a
step or of a wait. Arrivals are delivered one at a time, in the order of their events in the journal, and the lane runs
until nothing is ready before the next one. So calls have the same numbers in each entry, and get the same results,
however they lie side by side.

Nothing begins before all arrivals of the journal are delivered. When neither a step is under way nor an arrival left,
the handler leaves: the waits that are new open, those that the code has cancelled close, and it is entered again when
any of them ends. A timer whose time comes while a step is under way is recorded as a step.

A step that has failed may begin again after a pause. A short pause, or one beside steps that are under way, passes
here; else the handler leaves until then.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from itertools import count
from typing import Any, Final

from msgspec.structs import replace

from executor.errors import BlockError, StoreError
from executor.kernel.core.events import StepFinished, UpdateAnswered
from executor.kernel.handler.base import Leaving, Suspend
from executor.kernel.process.clock import Clock
from executor.kernel.process.observe import begin as begin_doing
from executor.kernel.process.observe import doing
from executor.kernel.process.timers import Timers
from executor.kernel.run.attention import step_question
from executor.kernel.run.lane_bounds import nothing_comes
from executor.kernel.run.lane_calls import LaneCalls
from executor.kernel.run.lane_due import LaneDue
from executor.kernel.run.lane_steps import LaneSteps
from executor.kernel.run.lane_waits import LaneWaits
from executor.kernel.run.made import Entry, Made
from executor.kernel.run.mismatch import Mismatch
from executor.kernel.run.recorded import event_of
from executor.kernel.run.results import AtEach, Left
from executor.kernel.run.step_work import NO_KEY, Call, Ended, StepJournal, StepWork
from executor.kernel.run.wait_ends import WaitEnd

NULL: Final = b"null"
LIVE: Final = 1 << 62  # as the number of an event that has none yet: it comes after those of the journal


class Driver(LaneCalls):
    """Implements `DurableCalls`. `left`, once it has left: its waits."""

    _may_be_cancelled = False

    def __init__(self, entry: Entry, journal: StepJournal, work: StepWork, clock: Clock, timers: Timers) -> None:
        self._clock, self._timers = clock, timers
        self._loop = journal.loop
        self._main: asyncio.Task[Any] | None = None
        self._live = count(LIVE)
        self._ended: dict[int, Ended | WaitEnd] = {}  # in this entry, not delivered yet
        self._received_seq = 0
        self._wake = asyncio.Event()
        self._own: asyncio.Task[Any] | None = None  # which runs it
        self._rests = False  # it waits in `_next`
        self._due_ms: int | None = None  # and until when
        super().__init__(entry, journal, work)

    def _enter(self, entry: Entry, journal: StepJournal, work: StepWork) -> None:
        super()._enter(entry, journal, work)
        self._around = copy_context()
        self.left: Left | None = None
        self._stays = False
        self._received_seq = max(self._received_seq, *(step.finished_seq for step in entry.known.values()), 0)
        self._waits = LaneWaits(entry, self._made, work, self._arrived)
        self._due = LaneDue(self._made, self._clock)
        self._steps = LaneSteps(journal, work, self._due, self._step_over)

    def _drop(self, made: Made) -> None:
        self._steps.stop(made)

    # --- between two attempts ---

    def resume(self, entry: Entry, journal: StepJournal, work: StepWork) -> bool:
        """Continue in the lane that was left, with a new attempt. `known` has the outstanding calls. Returns False if
        one of them neither waits nor has ended, such as a step that is to be done again."""
        over = {n for n, step in entry.known.items() if step.finished_seq}
        outstanding = self.outstanding
        if not {n for n, awaited in outstanding.items() if awaited} <= entry.open ^ over <= outstanding.keys():
            return False
        for n in outstanding.keys() - entry.open - over:  # its wait was closed, because the code has dropped it
            del self._made[n]
        self._enter(entry, journal, work)
        self._published.enter(journal, work.border)
        self._arrivals += sorted((entry.known[n].finished_seq, n) for n in over)  # a heap
        return True

    def _is_kept(self) -> bool:
        if not (self._stays and self._entry.keep(self)):
            return False
        self._is_over = True
        self._published.leave()
        del self._entry, self._journal, self._work, self._waits, self._steps, self._own  # they hold the run in memory
        return True

    def discard(self) -> None:
        """End the code where it waits. See `lane_cache.py`."""
        self._lane.end()

    # --- the turns ---

    async def run(self, main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Return the result of the code, or raise its error. Raises Leaving, ContinueAsNew, and BlockError:
        `steps_changed`, `limit_steps`, `not_deterministic`, `durable_stuck`."""
        self._own = asyncio.current_task()
        try:
            task = self._main or self._begin_code(main())
            self._idle()
            while not self._has_ended():
                await self._turn(task)
                self._idle()
            self._expected.end(self._n)
            await self._published.note(self._entry.attempt)
            await self._finish_steps()
            if self._continues is not None:
                raise self._continues
            return self._result(task)
        except Mismatch as error:
            with suppress(StoreError):  # then it has fewer words
                recorded = await event_of(self._journal.store, self._journal.run_id, error.was.started_seq)
                error.explain(recorded, self._entry.known, self._journal.run_id, self._file)
            raise
        finally:
            await self._end()

    def _begin_code(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        self._file = coroutine.cr_code.co_filename  # type: ignore[attr-defined]  # that of an `async def` has it
        context = copy_context()
        context.run(begin_doing, lambda: self._around.run(doing))  # that of the present attempt
        self._main = self._lane.create_task(coroutine, context=context)
        return self._main

    async def _turn(self, main: asyncio.Task[Any]) -> None:
        """Deliver what comes next; if nothing has come, begin what the code has called, and wait."""
        end = self._ended.get(self._arrivals[0][1]) if self._arrivals else None
        if isinstance(end, WaitEnd) and not end.stored:
            if end.stored is None:
                await self._woken()
            else:
                del self._ended[heapq.heappop(self._arrivals)[1]]
            return
        if self._cancel(main):
            return
        self._expected.deliver(self._arrivals[0] if self._arrivals else None, self._n)
        if self._arrivals:
            await self._deliver(*heapq.heappop(self._arrivals))
            return
        await self._published.note(self._entry.attempt)
        self._begin()
        if self._arrivals:
            return
        opening = {made.needs for n in self._new if (made := self._made[n]).needs}
        if self._is_busy() or opening:
            changes = await self._waits.changes()
            if any(changes):
                self._journal.open(*changes)
                self._waits.changed(changes)
        if self._arrivals or self._steps.failed is not None or opening & self._waits.open:
            return
        await (self._next() if self._is_busy() else self._leave())

    def _has_ended(self) -> bool:
        return self._continues is not None or (self._main is not None and self._main.done())

    def _is_busy(self) -> bool:
        """Returns True if something ends or begins soon."""
        return bool(self._steps) or self._due.is_short()

    def _result(self, main: asyncio.Task[Any]) -> Any:
        return main.result()

    def _cancel(self, main: asyncio.Task[Any]) -> bool:
        """Cancel the code if that comes next. Returns True if it did: see `undo.py`."""
        return False

    def _is_held(self, n: int) -> bool:
        """Returns True for a call that does not begin, because the cancel comes before."""
        return False

    def _idle(self) -> None:
        """Let the lane run. Raises what the code cannot catch."""
        own = asyncio.current_task()
        assert own is not None
        asyncio.tasks._leave_task(self._loop, own)  # from Python 3.14 on tasks cannot run inside of another one
        try:
            self._lane.run_idle()
            while self._deliver_ready():
                self._lane.run_idle()
        finally:
            asyncio.tasks._enter_task(self._loop, own)
        if self.refused is not None:
            raise self.refused
        if (broken := self._lane.refused) is not None:
            raise BlockError(str(broken), code="not_deterministic", retryable=False) from broken
        if self._steps.failed is not None:
            raise self._steps.failed

    def _deliver_ready(self) -> bool:
        """Deliver what comes next, if it was read from the journal. Returns False if that is not so."""
        broken = self.refused is not None or self._lane.refused is not None
        if not self._arrivals or broken or self._may_be_cancelled or self._has_ended():
            return False
        seq, n = self._arrivals[0]
        ended = self._entry.recorded.ready(seq)
        if ended is None:
            return False
        self._expected.deliver(heapq.heappop(self._arrivals), self._n)
        self._take(self._made.pop(n), ended)
        return True

    async def _deliver(self, seq: int, n: int) -> None:
        made, ended = self._made.pop(n), self._ended.pop(n, None)
        self._waits.over(n)
        if ended is None:
            ended = await self._entry.recorded.at(seq)
        elif isinstance(ended, WaitEnd):
            self._received_seq = ended.seq
            ended = await self._entry.recorded.since(ended.seq)
        self._take(made, ended)

    def _begin(self) -> None:
        """Begin what the code has called: all earlier arrivals are delivered."""
        new, self._new = self._new, []
        for n in new:
            made = self._made.get(n)
            if made is None:  # a wait of an earlier entry, whose end came first
                continue
            if not made.future.done() and (self._is_held(n) or self._is_before_its_wait(made)):
                self._new.append(n)
                continue
            known = self._entry.known.get(n)
            if known is not None and known.due_ms is not None:
                made.times, made.pause_ms = known.times, known.due_ms
                self._due.add(known.due_ms, n)
            if made.future.done():
                if made.pause_ms is not None:
                    self._steps.stop(made)
                elif n not in self._waits.open:
                    self._made.pop(n)
            elif made.pause_ms is not None:
                pass
            elif known is not None and known.lost:
                output = made.work.output_schema if made.work is not None else None
                made.suspend = partial(_question, step_question(self._entry.block, n, made.call.name, output))
                made.work = None
                self._waits.ask(n)
            elif made.event is not None:
                self._end_now(made.call, made.event)
            elif made.work is not None:
                self._steps.start(made)
            elif made.suspend is not None:
                self._waits.ask(n)
            elif made.due_ms is not None and n not in self._waits.open:
                self._due.add(made.due_ms, n)

    def _is_before_its_wait(self, made: Made) -> bool:
        return made.needs in self._made and made.needs not in self._waits.open and made.needs not in self._entry.known

    def _step_over(self, made: Made, ended: Ended | None) -> None:
        if ended is not None:
            self._arrived(made.call.n, ended)
        if ended is None or not self._has_gone_on(made.call.n):
            self._wake.set()

    def _has_gone_on(self, n: int) -> bool:
        """Deliver the end of step `n` in the callback in which it came, and begin what follows. Returns False if there
        is more to do, for `run`: this saves four passes of the event loop for each step of a chain."""
        assert self._own is not None
        if not self._rests or self._own.cancelling() or self._may_be_cancelled or self._steps.failed is not None:
            return False
        if self._arrivals[0][1] != n:
            return False
        try:
            self._expected.deliver(heapq.heappop(self._arrivals), self._n)
            ended = self._ended.pop(n)
            assert isinstance(ended, Ended), "it is a step"
            self._take(self._made.pop(n), ended)
            self._idle()
            if self._has_ended() or self._arrivals or self._published.is_due:
                return False
            self._begin()
        except BaseException as error:
            self._steps.failed = self._steps.failed or error
            return False
        self._journal.flush()
        more = self._new or self._arrivals or not self._waits.are_settled
        return bool(self._steps) and not more and self._due.first()[0] == self._due_ms

    def _arrived(self, n: int, ended: Ended | WaitEnd) -> None:
        """Its event is handed over: of those that are not in the journal yet, the order is that of these calls."""
        self._ended[n] = ended
        heapq.heappush(self._arrivals, (next(self._live), n))

    def wait_ended(self, end: WaitEnd) -> None:
        end.changed = self._wake.set
        self._arrived(end.n, end)
        self._wake.set()

    async def _next(self) -> None:
        """Wait for the end of a step, or of a timer or pause."""
        due_ms, n = self._due.first()
        if due_ms is not None and due_ms <= self._clock.now_ms():
            made = self._made[n]
            if made.work is None:
                self._end_now(made.call)
            else:
                self._steps.start(made)
            return
        number = None if due_ms is None else self._timers.set(due_ms, self._wake.set)
        rests = not self._steps
        self._timers.resting += rests
        self._due_ms, self._rests = due_ms, True
        try:
            await self._woken()
        finally:
            self._rests = False
            self._timers.resting -= rests
            if number is not None:
                self._timers.cancel(number)

    async def _woken(self) -> None:
        self._journal.flush()
        self._wake.clear()
        await self._wake.wait()

    def _end_now(self, call: Call, event: tuple[UpdateAnswered, bytes] | None = None) -> None:
        """Record a step that is nothing but this moment, and its event, in one append."""
        attempt, now_ms = self._entry.attempt, self._clock.now_ms()
        if event is not None:
            self._journal.note(*event)
        self._journal.note(replace(call, kind="step").started(attempt))
        self._journal.note(StepFinished(NO_KEY, attempt, call.n, ended_ms=now_ms), NULL)
        self._arrived(call.n, Ended(now_ms, NULL))

    async def _finish_steps(self) -> None:
        """Let the steps end that are under way; the code does not wait for them."""
        self._steps.is_ending = True
        for made in list(self._made.values()):
            self._steps.stop(made)
        while self._steps:
            await self._woken()

    async def _leave(self) -> None:
        """Raises Leaving, unless the request of a wait cannot be made: then that has arrived."""
        waits, drops = await self._waits.changes(self._due.timers())
        if self._arrivals:
            return
        until_ms = self._due.pause_ms()
        if not (waits or len(self._waits.open) > len(drops)) and until_ms is None:
            raise nothing_comes()
        self.left = Left(tuple(waits), AtEach(drops, until_ms, self._received_seq))
        self._waits.changed((waits, drops))
        awaited = {n for n, awaited in self.outstanding.items() if awaited}
        self._stays = not (self._new or self._may_be_cancelled) and awaited <= self._waits.open
        raise Leaving

    async def _end(self) -> None:
        if self._is_kept():
            return
        self._is_over = self._steps.is_over = True
        if self._entry.drains():
            with suppress(asyncio.CancelledError):  # a second time: the process stops
                await self._finish_steps()
        await self._steps.end()
        self._lane.end()


async def _question(suspend: Suspend) -> Suspend:
    return suspend
