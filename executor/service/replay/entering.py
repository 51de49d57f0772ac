"""Enters a durable function with the steps of a journal: it makes its calls again, and nothing begins.

The driver is that of every run. Where the journal has no more arrivals, it would begin what the code has called; here
it stops instead, with the code as it stands there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Literal, cast

import orjson
from msgspec import Struct

from compiler.compile import compile_document
from compiler.keys import NodeKey
from compiler.plan import Plan
from compiler.tracing.durable import BODY, UNDO, DurableFunction
from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.durable import DurableBlock, durable_blocks
from executor.blocks.types.registry import Registry
from executor.errors import BadRequest
from executor.kernel.core.evolve import evolve
from executor.kernel.core.state import State, Step
from executor.kernel.handler.base import Access, Leaving, StepContext
from executor.kernel.journal.codec import Codec, data_of
from executor.kernel.process.clock import SystemClock
from executor.kernel.process.timers import Timers
from executor.kernel.run.attention import OtherCode
from executor.kernel.run.border import Border
from executor.kernel.run.durable import Driver
from executor.kernel.run.made import Entry
from executor.kernel.run.mismatch import ANY_INPUT, Arrival, CodeUnfit, Expected, Mismatch, changed
from executor.kernel.run.published import Published
from executor.kernel.run.recorded import BothEnds, Recorded
from executor.kernel.run.step_work import Call, StepJournal, StepWork
from executor.kernel.run.undo import Cancelled, UndoDriver
from executor.kernel.store.run_rows import NewRun
from executor.kernel.store.topics.store import Store
from executor.kernel.values.payload import Bound
from executor.kernel.values.redact import Redactor
from executor.service.replay.journals import Journal


class JournalEnds(BaseException):
    """The code has made all calls of the journal, and waits, or makes others."""


class Entered(Struct):
    """The end of an entry. `open`: it waits where the journal ends, and `calls` are those that the journal does not
    have, `waits` those that have no end in it. `parted`: it makes other calls than the journal; `error` says how."""

    end: Literal["returned", "raised", "open", "parted"]
    value: Any = None
    error: BaseException | None = None
    calls: tuple[Call, ...] = ()
    waits: tuple[Call, ...] = ()


class Replay(Driver):
    """`stopped` is called where the entry stops while the code still stands there: at a call that is not that of the
    journal (`parted`), in the lane, and where the journal ends. `tasks`: those that made the calls, by number."""

    def __init__(self, entry: Entry, journal: Journal, stopped: Callable[[Replay], object], *more: Any) -> None:
        loop, store = asyncio.get_running_loop(), cast(Store, journal)  # only what `Journals` has is read
        steps = StepJournal(store, journal.run, _ignore, _ignore, lambda: None, _ignore, loop)
        work = StepWork(entry.attempt, steps, cast(Border, _Border()), lambda: self.now_ms)
        clock = SystemClock()
        super().__init__(entry, steps, work, clock, Timers(clock), *more)
        self._published = cast(Published, _Published())
        self.tasks: dict[int, asyncio.Task[Any]] = {}
        self.calls: dict[int, Call] = {}
        self.known = entry.known
        self.parted: Mismatch | None = None
        self._records = {record.seq: record for record in journal.records}
        self._stopped = stopped
        self._expected = _Expected(self)
        self._is_open = journal.end is None  # else it gets no mark: it was over before the code was changed

    def _call(self, *args: Any, **options: Any) -> Call:
        try:
            call = super()._call(*args, **options)
        except Leaving:
            if isinstance(self.refused, Mismatch):
                self.part(self.refused)
            raise
        known = self.known.get(call.n)
        if known is not None and known.input_hash == ANY_INPUT and known.name != call.name:
            raise self.refuse(changed(known, call))
        task = asyncio.current_task()
        if task is not None:
            self.tasks[call.n], self.calls[call.n] = task, call
        return call

    @property
    def begins(self) -> set[int]:
        """The calls that would begin now: not those that have an answer already."""
        return {n for n, made in self._made.items() if n not in self.known and not made.future.done()}

    def part(self, error: Mismatch) -> None:
        error.explain(self._records.get(error.was.started_seq), self.known, self._journal.run_id, self._file)
        self.parted = error
        self._stopped(self)

    def patched(self, name: str) -> bool:
        return super().patched(name) if self._is_open or not self._expected.is_beyond(self._n + 1) else False

    def _begin(self) -> None:
        self._stopped(self)
        raise JournalEnds


class UndoReplay(Replay, UndoDriver):
    """The same, of a function whose run is cancelled."""


class _Expected(Expected):
    """Tells the replay while the code still stands where it is."""

    def __init__(self, replay: Replay) -> None:
        super().__init__(replay.known)
        self._replay = replay

    def deliver(self, arrival: Arrival | None, made: int) -> None:
        try:
            super().deliver(arrival, made)
        except Mismatch as error:
            self._replay.part(error)
            raise


class _Border:
    """Secrets were removed from what is in a journal."""

    redactor = Redactor(())

    def clean(self, output: Any, data: bytes) -> bytes:
        return data


class _Published:
    """Takes states that the code publishes. They are not compared: a change of them fits every journal."""

    def put(self, state: Any) -> None:
        pass

    async def note(self, attempt: int) -> None:
        pass


class _Next(Struct, frozen=True):
    input: bytes
    version: int | None


class _Attempt:
    """The attempt, as far as the code of a durable function asks, with the agents that it awaits."""

    def __init__(self, journal: Journal, calls: Replay, number: int, registry: Registry) -> None:
        self.run_id = journal.run
        self.workflow = journal.workflow
        self.key_text = BODY
        self.number = number
        self.idempotency_key = f"{journal.run}:{BODY}"
        self._calls = calls
        self._registry = registry
        self._end = journal.end

    async def prepare_next(self, input: Any) -> NewRun:
        """Return the next run, with the version that it was recorded with."""
        recorded = orjson.loads((self._end and self._end.output) or b"null")
        version = recorded.get("version") if isinstance(recorded, dict) else None
        return cast(NewRun, _Next(orjson.dumps(input), version))

    async def durable_calls(self, code: object) -> Replay:
        return self._calls

    @cached_property
    def services(self) -> Services:
        return Services(Sandbox(threads=1), GuardedClient(), registry=self._registry)

    async def evaluate(self, calls: Sequence[Bound]) -> list[Any]:
        return await self.services.sandbox.evaluate(calls, now_ms=self.clock(), seed=self.run_id, owner=self.run_id)

    def memory(self) -> None:
        """It is read and written in steps."""

    def clock(self) -> int:
        return self._calls.now_ms

    def callback_url(self, wait: str) -> str:
        return f"callback:{wait}"

    def close(self) -> None:
        if "services" in vars(self):
            self.services.sandbox.close()


async def enter(
    durable: DurableFunction[..., Any],
    journal: Journal,
    to: int | None = None,
    stopped: Callable[[Replay], object] = lambda replay: None,
) -> Entered:
    """Enter the function with what the journal has, up to event `to`. Raises BadRequest, CorruptJournal."""
    registry = Registry.load(durable_blocks([durable]))
    entry, cancelled = _entry(plan_of(durable, registry), journal, to)
    replay = Replay(entry, journal, stopped)
    if cancelled is not None:
        replay = UndoReplay(entry, journal, stopped, cancelled)
    own = _Attempt(journal, replay, entry.attempt, registry)
    ctx = StepContext(
        cast(Access, own),
        {"function": durable.called, "arguments": journal.arguments, "code": journal.code},
        None,
        {},
        entry.started_ms,
    )
    try:
        done = await DurableBlock({durable.called: durable}).run(ctx)
    except (JournalEnds, Leaving):
        new = tuple(call for n, call in sorted(replay.calls.items()) if n in replay.begins and call.kind != "mark")
        open_ = (call for n, call in sorted(replay.calls.items()) if n in entry.known)
        return Entered("open", calls=new, waits=tuple(call for call in open_ if not entry.known[call.n].finished_seq))
    except Exception as error:
        parted = next((one for one in (error.__cause__, error) if isinstance(one, CodeUnfit | OtherCode)), None)
        return Entered("raised", error=error) if parted is None else Entered("parted", error=parted)
    finally:
        own.close()
    return Entered("returned", done.output)


def plan_of(durable: DurableFunction[..., Any], registry: Registry) -> Plan:
    compiled = compile_document(durable.document(), registry)
    assert compiled.plan is not None, compiled.diagnostics
    return compiled.plan


def _entry(plan: Plan, journal: Journal, to: int | None) -> tuple[Entry, Cancelled | None]:
    """Return the last entry up to event `to`: of the function, or of what undoes it."""
    numbers = {plan.node_index(BODY), plan.node_index(UNDO)}
    codec, state = Codec(plan), State.new(plan)
    last: NodeKey | None = None
    known: dict[int, Step] = {}
    waits: frozenset[int] = frozenset()
    taken_seq = attempt = upto = 0
    for record in journal.records:
        if to is not None and record.seq > to:
            break
        evolve(plan, state, codec.to_event(record))
        for key, tries in state.tries.items():  # of a node that has ended there are none
            if key[1] in numbers:
                last, taken_seq = key, tries.taken_seq
                known = {n: copy(step) for n, step in tries.by_n.items()}
                waits = frozenset(wait.step for wait in state.waits.get(key, {}).values() if wait.step is not None)
        if record.node in (BODY, UNDO):
            attempt = record.attempt
        upto = record.seq
    if not attempt:
        raise BadRequest(f"run {journal.run} has not begun the durable function{'' if to is None else ' there'}")
    first = journal.records[0]
    started = data_of(first)
    run = started.get("run", journal.run)
    node = BODY if last is None else codec.key_text(last)
    recorded = Recorded(journal, journal.run, node, upto)
    cancelled = None
    if taken_seq:
        before = Recorded(journal, journal.run, BODY, taken_seq)
        recorded = BothEnds(journal, journal.run, node, upto, taken_seq, before)
        cancelled = Cancelled(taken_seq, next(one.at_ms for one in journal.records if one.seq == taken_seq))
    seed = f"{run}:{BODY}"
    return Entry(BODY, attempt, seed, started.get("by"), first.at_ms, known, waits, recorded), cancelled


def _ignore(*given: object) -> None:
    """Nothing is recorded."""
