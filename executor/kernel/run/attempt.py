"""One attempt while its handler runs, and what the handler can ask of it. See `StepContext` for what each call does.

The log, the time limit and the mark of the end are made when the handler asks for one of them: most never do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from functools import cached_property, partial
from threading import Lock
from types import coroutine
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from compiler.keys import NodeKey
from compiler.plan import Cache
from executor.errors import BlockError
from executor.kernel.core.facts import WaitStep
from executor.kernel.core.state import Step
from executor.kernel.handler.base import ChildRequest, Over, Suspend
from executor.kernel.handler.needs import Connections, Services
from executor.kernel.journal.codec import Codec
from executor.kernel.journal.reader import Records
from executor.kernel.process.lane_cache import Kept, Leave
from executor.kernel.process.observe import Doing, with_parent
from executor.kernel.process.threads import call_on
from executor.kernel.run.ahead import Ahead
from executor.kernel.run.attempt_log import AttemptLog
from executor.kernel.run.border import Border
from executor.kernel.run.children import cancel_message
from executor.kernel.run.durable import Driver
from executor.kernel.run.kept import Checkpoints, RunMemory, StepCache
from executor.kernel.run.loaded import LoadedRun
from executor.kernel.run.made import Entry
from executor.kernel.run.parts import Parts
from executor.kernel.run.places import Place, Waiting
from executor.kernel.run.recorded import BothEnds, First, Recorded, RecordedSince, event_of, first_of
from executor.kernel.run.results import Arrivals, StepNote, Stream
from executor.kernel.run.step_work import Ended, StepJournal, StepWork
from executor.kernel.run.steps import AttemptSteps
from executor.kernel.run.time_limit import TimeLimit
from executor.kernel.run.undo import Cancelled, UndoDriver
from executor.kernel.run.wait_ends import WaitEnds
from executor.kernel.store.patience import with_retries
from executor.kernel.store.run_rows import NewRun
from executor.kernel.values.payload import Bound
from executor.kernel.values.resolve import environment_names

T = TypeVar("T")
log = logging.getLogger("weft.launch")
_making = Lock()


class Host:
    """The run of attempts, as long as it is in memory. `ahead` is None if no attempt begins before its start is on
    disk."""

    def __init__(self, run: LoadedRun, parts: Parts, ahead: Ahead | None = None) -> None:
        self.run = run
        self.parts = parts
        self.ahead = ahead
        self.border = Border(run, parts)
        self.loop = asyncio.get_running_loop()
        # For lines of the log. Without this object, which tasks and timers that outlive an attempt would keep alive.
        self.doing: Callable[[NodeKey, int], Doing] = partial(_doing, run.id, run.row.workflow, run.codec)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.run.row, self.parts)

    async def ask(self, ask: Callable[[], Awaitable[T]], what: str) -> T:
        """Read from the database, again after an error. Raises BlockError."""
        what = f"{what} run {self.run.id}"
        return await with_retries(ask, what=what, failed="the database could not be read", log=log)

    async def prepare_next(self, input: Any) -> NewRun:
        clean = self.parts.redactor.redact_value(input)
        runs = self.parts.further_runs
        return await self.ask(
            lambda: runs.prepare_next(self.run.row, self.run.plan, clean), "preparing the run that continues"
        )


def _doing(run: str, workflow: str, codec: Codec, key: NodeKey, attempt: int) -> Doing:
    return Doing(run, workflow, codec.key_text(key), attempt)


class _Aids(Struct):
    log: AttemptLog
    limit: TimeLimit
    over: Over

    def end(self) -> None:
        self.over.end()
        self.log.end()


class Attempt:
    """An attempt, whose start is recorded by event `seq` at the latest. `started_as` is its key in the plan of `host`;
    `key` is that in the present plan of the run. `grace` is the timer of a cancelled attempt, `place` that of a limit.
    One that runs inside the loop of the run has no task."""

    __slots__ = (
        "_aids", "_arrivals", "cancelled", "drains", "ended", "grace", "host", "key", "key_text", "node", "number",
        "place", "seq", "started_as", "task", "wait_ends",
    )  # fmt: skip

    def __init__(self, host: Host, key: NodeKey, number: int, seq: int, arrivals: Arrivals) -> None:
        self.host = host
        self.key = self.started_as = key
        self.key_text = host.run.codec.key_text(key)
        self.node = host.run.plan.nodes[key[1]]
        self.number = number
        self.seq = seq
        self.task: asyncio.Task[None] | None = None
        self.cancelled = self.drains = False
        self.grace: asyncio.TimerHandle | None = None
        self.place: Waiting | None = None
        self.ended = False
        self.wait_ends = WaitEnds()
        self._arrivals = arrivals
        self._aids: _Aids | None = None

    @property
    def aids(self) -> _Aids:
        with _making:  # a thread may ask, also after the end
            if self._aids is None:
                host, policy = self.host, self.node.policy
                made = _Aids(
                    AttemptLog(host.parts.redactor, self.keep, self._show, host.loop),
                    TimeLimit(policy.timeout_ms / 1000, (policy.heartbeat_timeout_ms or 0) / 1000, host.loop),
                    Over(),
                )
                if self.ended:
                    made.end()
                self._aids = made
            return self._aids

    def end(self) -> None:
        """End what its handler can do: it has returned."""
        with _making:
            self.ended = True
            aids, self._aids = self._aids, None  # the log refers to this object
        if aids is not None:
            aids.end()

    def end_grace(self) -> None:
        """Cancel the timer: while it is set it holds the attempt, and all values of its run."""
        if self.grace is not None:
            self.grace.cancel()

    def leave_place(self) -> Place | None:
        """Return the place that it had, or waited for: the append that records its end leaves it."""
        waiting, self.place = self.place, None
        return None if waiting is None else waiting.leave()

    def keep(self, text: str | StepNote, stream: Stream) -> None:
        self._arrivals.add_log((self.key, self.number, text, stream))

    def _keep_quietly(self, note: StepNote) -> None:
        self._arrivals.add_quietly((self.key, self.number, note, "log"))

    async def begun(self) -> None:
        """Wait until its start is on disk."""
        if self.host.ahead is not None:
            await self.host.ahead.reached(self.seq)

    # --- see StepContext

    @property
    def run_id(self) -> str:
        return self.host.run.id

    @property
    def workflow(self) -> str:
        return self.host.run.plan.name

    @property
    def idempotency_key(self) -> str:
        return f"{self.host.run.id}:{self.steps_key}"

    @property
    def steps_key(self) -> str:
        """The key of the node whose steps its handler continues: its own, or that of the node which it undoes."""
        run = self.host.run
        undone = run.plan.undone
        is_undo = undone is not None and bool(self.started_as[0])
        return run.codec.key_text(undone) if undone is not None and is_undo else self.key_text

    @property
    def type(self) -> str:
        return self.node.type

    @property
    def services(self) -> Services:
        return self.host.parts.services

    @property
    def connections(self) -> Connections:
        return self.host.parts.connections

    def clock(self) -> int:
        return self.host.parts.clock.now_ms()

    def log(self, *values: object) -> None:
        self.aids.log.log(*values)

    def emit(self, text: str) -> None:
        self.aids.log.emit(text)

    def limit(self) -> TimeLimit:
        return self.aids.limit

    def waiting(self) -> AbstractContextManager[None]:
        return self.aids.limit.waiting()

    def queueing(self) -> AbstractContextManager[None]:
        return self.aids.limit.queueing()

    def heartbeat(self) -> None:
        self.aids.limit.heartbeat()

    def over(self) -> Over:
        return self.aids.over

    async def checkpoint(self, value: Any) -> None:
        data = self.host.checkpoints.encode(value)
        await self.begun()
        await self.host.checkpoints.with_retries(lambda: self._put(data))

    def checkpoint_from_thread(self, value: Any) -> None:
        call_on(self.host.loop, self.checkpoint(value), "use `await ctx.checkpoint(value)` here")

    async def _put(self, data: bytes) -> None:
        if self.ended:  # an abandoned thread must not overwrite what a later attempt keeps
            message = f"attempt {self.number} of {self.key_text} has ended: its checkpoint was not stored"
            raise BlockError(message, code="attempt_over", retryable=False)
        await self.host.checkpoints.put(self.key_text, self.number, data)

    async def evaluate(self, calls: Sequence[Bound]) -> list[Any]:
        run, parts = self.host.run.id, self.host.parts
        seed = f"{run}:{self.key_text}:{self.number}"
        return await parts.services.sandbox.evaluate(calls, now_ms=parts.clock.now_ms(), seed=seed, owner=run)

    def memory(self) -> RunMemory:
        return RunMemory(self.host.run.row, self.host.parts)

    def results_of(
        self, step: str, params: Mapping[str, Any], cache: Cache, schema: dict[str, Any] | None
    ) -> StepCache:
        return StepCache(self.host.run.row, self.host.parts, self.node, step, params, cache, schema)

    def steps(self) -> AttemptSteps:
        if self.node.inline:
            raise BlockError("blocks of this type have no steps", code="steps_not_available", retryable=False)
        work = StepWork(self.number, self._journal(), self.host.border)
        return AttemptSteps(self.node.name, self._entered_with(), self._earlier, work, self.task)

    async def _earlier(self, seq: int) -> Ended:
        """Return the end of a step of an earlier attempt."""
        await self.begun()
        return await self._recorded_since().at(seq)

    def _recorded_since(self) -> RecordedSince:
        return RecordedSince(self.host.parts.store, self.run_id, self.key_text, 0)

    def _entered_with(self) -> dict[int, Step]:
        """Return the steps with which it was entered."""
        tries = self.host.run.state.tries.get(self.started_as)
        return {} if tries is None else {n: copy(step) for n, step in tries.by_n.items()}

    def _open(self, waits: Sequence[tuple[Suspend, WaitStep]], drops: tuple[int, ...]) -> None:
        self._arrivals.put(self.host.border.waits(self.key, self.number, waits, drops))

    def _journal(self) -> StepJournal:
        host = self.host
        flush = self._arrivals.changed.set
        return StepJournal(host.parts.store, host.run.id, self.keep, self._keep_quietly, flush, self._open, host.loop)

    async def durable_calls(self, code: object) -> Driver:
        await self.begun()
        driver = self._lane_of_before(code) or await self._new_lane(code)
        self.wait_ends.listen(driver.wait_ended)
        return driver

    def _lane_of_before(self, code: object) -> Driver | None:
        """Return the lane that the attempt before has left, to continue in it."""
        run, key = self.host.run, self.started_as
        lanes = self.host.parts.owned.lanes
        driver = lanes.take(run.id, key, run.row.epoch, run.plan.hash, code)
        if driver is None:
            return None
        assert isinstance(driver, Driver)
        waits, steps = self._open_waits(), run.state.tries[key].by_n
        known = {n: copy(steps[n]) for n in driver.outstanding if n in steps}
        self._without_later_ends(known)
        first = First(driver.seed, driver.started_ms, driver.by)
        entry = self._entry(known, waits, self._recorded_since(), first, code)
        if driver.resume(entry, *self._work()):
            return driver
        driver.discard()
        return None

    def _open_waits(self) -> frozenset[int]:
        """Return the steps that are open waits for it, as it has not received their ends."""
        open = self.host.run.state.waits.get(self.started_as, {}).values()
        return frozenset([wait.step for wait in open if wait.step is not None] + [end.n for end in self.wait_ends.ends])

    def _without_later_ends(self, known: Mapping[int, Step]) -> None:
        """Take out of the steps the ends that it receives while it runs."""
        for end in self.wait_ends.ends:
            if end.n in known:
                known[end.n].finished_seq, known[end.n].failed = 0, False

    def _work(self) -> tuple[StepJournal, StepWork]:
        journal = self._journal()
        return journal, StepWork(self.number, journal, self.host.border, self.host.parts.clock.now_ms)

    def _entry(
        self, known: Mapping[int, Step], waits: frozenset[int], recorded: Recorded, first: First, code: object
    ) -> Entry:
        """`first`: `run` is the seed."""
        given = known, waits, recorded, lambda: self.drains, partial(self._keep_lane, code)
        return Entry(self.node.name, self.number, first.run, first.by, first.at_ms, *given)

    def _keep_lane(self, code: object, lane: Kept) -> bool:
        run = self.host.run
        if environment_names(self.node):  # of secrets that may have other values by then
            return False
        leave = Leave(lane, self.started_as, self.number, run.row.epoch, run.plan.hash, code)
        return self.host.parts.owned.lanes.keep(run.id, leave)

    async def _new_lane(self, code: object) -> Driver:
        host, known, key = self.host, self._entered_with(), self.started_as
        store, run, state = host.parts.store, host.run.id, host.run.state
        waits = self._open_waits()
        self._without_later_ends(known)
        first = await host.ask(lambda: first_of(store, run), "reading the start of")
        upto = max((step.finished_seq for step in known.values()), default=0)
        recorded = Recorded(store, run, self.key_text, upto)
        taken_seq = state.tries[key].taken_seq if self.steps_key != self.key_text else 0
        if taken_seq:
            host.parts.owned.lanes.forget(run)
            before = Recorded(store, run, self.steps_key, taken_seq)
            recorded = BothEnds(store, run, self.key_text, upto, taken_seq, before)
        entry = self._entry(known, waits, recorded, first._replace(run=f"{first.run}:{self.steps_key}"), code)
        journal, work = self._work()
        if taken_seq:
            taken = await host.ask(lambda: event_of(store, run, taken_seq), "reading the end of")
            cancelled = Cancelled(taken_seq, taken.at_ms)
            return UndoDriver(entry, journal, work, host.parts.clock, host.parts.timers, cancelled)
        return Driver(entry, journal, work, host.parts.clock, host.parts.timers)

    def callback_url(self, wait: str) -> str:
        return self.host.parts.links.url(self.run_id, wait, "callback")

    async def prepare_child(self, request: ChildRequest) -> NewRun:
        """Secrets do not go on into another run's input: it reads them by name itself."""
        run, parts = self.host.run.id, self.host.parts
        clean = parts.redactor.redact_value
        request = replace(request, definition=clean(request.definition), input=clean(request.input))
        tracing = parts.services.tracing
        above = None if tracing is None else await tracing.traceparent(run, self.key_text, self.number)
        with with_parent(above):
            return await self.host.ask(lambda: parts.further_runs.prepare_child(run, request), "preparing a child of")

    async def cancel_child(self, run: str) -> None:
        """Have a child run undo what it did, and end. More than once is the same."""
        parts, message = self.host.parts, cancel_message(self.host.run.id)
        cancel = partial(parts.store.cancel_run, run, message, parts.clock.now_ms())
        if await self.host.ask(cancel, "cancelling a child of"):
            parts.wake(run)

    async def prepare_next(self, input: Any) -> NewRun:
        return await self.host.prepare_next(input)

    async def repeat_wanted(self) -> bool:
        """Return True if a person was asked about the previous attempt and chose to make this one."""
        node, _, path = self.key_text.partition("@")
        host = self.host
        closed = Records(host.parts.store, host.run.id, node=node, path=path or None, types=("wait.closed",))
        return any([r.attempt == self.number - 1 and (r.path or "") == path async for r in closed])

    def _show(self, text: str) -> None:
        """Send live text to readers: not before the start of its attempt is on disk."""
        host = self.host
        text = host.parts.redactor.redact(text)
        if host.ahead is None:
            host.parts.hub.delta(host.run.id, self.key_text, text, self.seq)
        else:
            host.ahead.after(self.seq, partial(host.parts.hub.delta, host.run.id, self.key_text, text, self.seq))


@coroutine
def within(
    limit: Callable[[], TimeLimit], handler: Awaitable[T], loop: asyncio.AbstractEventLoop
) -> Generator[Any, Any, T]:
    """Run a handler within its time limit, which is made when the handler first waits. Raises TimeoutError."""
    steps, began_s = handler.__await__(), loop.time()
    try:
        waits_for = next(steps)
    except StopIteration as ended:
        return cast(T, ended.value)
    return (yield from limit().around(steps, waits_for, began_s))
