"""Durable steps inside a handler: implements `Context.step` and `Context.wait`.

A step has two events, each on disk before anything follows from it: `step.started` before its work begins,
`step.finished` before the handler sees the output. They go the way of what an attempt logs: the run's loop records them
under its lease. Which steps a node has is in the state of the run (`core/state`), and their outputs are read from the
journal when a later attempt comes to them.

A wait is a step whose work is a wait of the node: the handler leaves by `Leaving`, the core opens the wait, and its end
finishes the step. Waits that are awaited side by side are open at the same time; the handler is entered again when the
last of them is over.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from inspect import isawaitable
from typing import Any, Final, TypeVar

import orjson
from msgspec import Struct
from msgspec.structs import replace

from compiler.keys import NodeKey
from executor.errors import BlockError, Fenced, Lost
from executor.kernel.core.events import ErrorInfo, StepEffect, StepFinished, StepKind, StepStarted
from executor.kernel.core.facts import WaitStep
from executor.kernel.core.state import Step
from executor.kernel.handler.base import Context, Leaving, MakeSuspend, Stepped, Suspend
from executor.kernel.handler.base import StepKind as Kind
from executor.kernel.journal.codec import data_of
from executor.kernel.journal.reader import Records, output_of
from executor.kernel.process.threads import call_on
from executor.kernel.process.tracebacks import traceback_of
from executor.kernel.run.attention import step_question
from executor.kernel.run.border import Border
from executor.kernel.run.results import StepNote, Stream
from executor.kernel.run.step_order import StepOrder
from executor.kernel.store.patience import with_retries
from executor.kernel.store.topics.store import Store
from executor.kernel.values.money import USD_MAX
from executor.kernel.values.payload import dump
from executor.kernel.values.payload import encode as encode_payload
from executor.kernel.values.schema import ASIDE_BYTES

T = TypeVar("T")
log = logging.getLogger("weft.steps")

STEPS_MAX: Final = 1_000  # of one entry of a handler
WAITS_MAX: Final = 20  # of one entry, side by side; further ones open when these are over
NAME_MAX: Final = 200  # characters
ANY_INPUT: Final = ""  # as the hash of the input of a step whose result counts for any: the block has other params now
USAGE_MAX: Final = 20  # counts of one step


class StepJournal(Struct, frozen=True):
    """Records and reads the steps of an attempt. `keep` takes a note to the loop of the run; `begun` waits until the
    start of the attempt is on disk."""

    store: Store
    run_id: str
    keep: Callable[[StepNote, Stream], None]
    begun: Callable[[], Awaitable[None]]
    loop: asyncio.AbstractEventLoop

    async def record(self, event: StepStarted | StepFinished, output: bytes | None = None) -> int:
        """Record the event and wait until it is on disk. Returns its seq. Raises BlockError if the attempt is over."""
        done: asyncio.Future[int] = self.loop.create_future()
        self.keep(StepNote(event, output, done), "log")
        return await done

    async def finished(self, seq: int) -> tuple[dict[str, Any], bytes | None]:
        """Data and output of event `seq`, of an earlier entry. Raises BlockError: the database cannot be read."""
        await self.begun()

        async def ask() -> tuple[dict[str, Any], bytes | None]:
            async for record in Records(self.store, self.run_id, after=seq - 1, upto=seq):
                return data_of(record), await output_of(self.store, record)
            raise BlockError(f"event {seq} of run {self.run_id} is missing", code="step_missing", retryable=False)

        what = f"a step of run {self.run_id}"
        return await with_retries(ask, what=what, failed="the database could not be read", log=log)


class AtEach(Struct, frozen=True):
    """The handler is entered again at the end of each of its waits, or at `due_ms`. Those of the steps `drops`, which
    earlier entries opened, are not needed any more."""

    drops: tuple[int, ...] = ()
    due_ms: int | None = None


class Left(Struct, frozen=True):
    """The waits of a handler that has left, in the order of its calls. `again` tells when it is entered again, or is
    None if that is at the end of the last of them."""

    waits: tuple[tuple[Suspend, WaitStep], ...]
    again: AtEach | None = None


class _Call(Struct, frozen=True):
    n: int
    kind: StepKind
    name: str
    input_hash: str
    effect: StepEffect


class _Found(Struct, frozen=True):
    output: Any


class AttemptSteps:
    """The steps of one attempt. `name` is its block's; `known` are the steps that earlier attempts began; `main` is the
    task of its handler.

    Waits that are begun side by side open together: none of them makes the handler leave before all are made.
    """

    __slots__ = (
        "_attempt", "_border", "_journal", "_known", "_leaving", "_lock", "_made", "_making", "_n", "_name", "_order",
        "_quiet", "_under_way", "_waits",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        attempt: int,
        known: Mapping[int, Step],
        journal: StepJournal,
        border: Border,
        main: asyncio.Task[Any] | None,
    ) -> None:
        self._name = name
        self._attempt = attempt
        self._known = known
        self._journal = journal
        self._border = border
        self._lock = threading.Lock()
        self._order = StepOrder(main)
        self._n = self._under_way = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._waits: list[tuple[Suspend, WaitStep]] = []
        self._making = 0
        self._made = asyncio.Event()
        self._leaving = False

    @property
    def left(self) -> Left | None:
        waits = sorted(self._waits, key=lambda wait: wait[1].n)
        return Left(tuple(waits)) if waits and self._leaving else None

    @property
    def refused(self) -> BlockError | None:
        return self._order.refused

    # --- see Context ---

    def step(
        self, kind: Kind, name: str, input: Any, work: Callable[[], Awaitable[Any]], effect: StepEffect
    ) -> Coroutine[Any, Any, Any]:
        return self._step(self._call(kind, name, input, effect), work)

    def wait(self, suspend: Suspend | MakeSuspend, name: str) -> Coroutine[Any, Any, Any]:
        name = name or (suspend.kind if isinstance(suspend, Suspend) else "wait")
        return self._wait(self._call("wait", name, None, "none"), suspend)

    def step_from_thread(self, kind: Kind, name: str, input: Any, work: Callable[[], Any], effect: StepEffect) -> Any:
        with self._order.in_thread(name):
            return self._step_in_thread(self._call(kind, name, input, effect), work)

    def wait_from_thread(self, suspend: Suspend | MakeSuspend, name: str) -> Any:
        with self._order.in_thread(name):
            return self._on_loop(self.wait(suspend, name))

    def _step_in_thread(self, call: _Call, work: Callable[[], Any]) -> Any:
        if (found := self._on_loop(self._enter(call))) is not None:
            return found.output
        try:
            with self._working():
                result = work()
        except (Fenced, Lost):
            raise
        except (Exception, SystemExit) as error:
            return self._on_loop(self._failed(call, error, work))
        return self._on_loop(self._finished(call, result))

    # --- one call ---

    @contextmanager
    def _working(self) -> Iterator[None]:
        token = _inside.set(self)
        try:
            yield
        finally:
            with suppress(ValueError):  # an abandoned handler is closed in the context of whatever frees it
                _inside.reset(token)

    def _call(self, kind: StepKind, name: str, input: Any, effect: StepEffect) -> _Call:
        """It has its number from here on, before anything is waited for. Raises BlockError."""
        if _inside.get() is self:
            message = f"step {name!r} was begun inside the work of another step of this block"
            raise BlockError(message, code="step_nested", retryable=False)
        with self._lock:
            self._order.claim(self._n + 1, name)
            self._n += 1
            n = self._n
        if n > STEPS_MAX:
            hint = "split the work into several blocks, or into runs that the block starts"
            message = f"the block has more than {STEPS_MAX:,} steps"
            raise BlockError(message, code="limit_steps", retryable=False, hint=hint)
        return new_call(self._border, n, kind, name, input, effect)

    async def _step(self, call: _Call, work: Callable[[], Awaitable[Any]]) -> Any:
        if (found := await self._enter(call)) is not None:
            return found.output
        try:
            with self._working():
                made: Any = work()
                if not isawaitable(made):
                    message = (
                        f"the work of step {call.name!r} returned {type(made).__name__}, which cannot be awaited: "
                        "write it as `async def`, or use ctx.step_from_thread in a plain function"
                    )
                    raise TypeError(message)
                result = await made
        except (Fenced, Lost):
            self._ended()
            raise
        except asyncio.CancelledError:
            # By the time limit, or because the result is not needed: the end of the attempt follows at once.
            self._ended()
            error = ErrorInfo("cancelled", "the step was cancelled", retryable=True)
            self._journal.keep(StepNote(StepFinished(_NO_KEY, self._attempt, call.n, error=error)), "log")
            raise
        except (Exception, SystemExit) as error:
            return await self._failed(call, error, work)
        return await self._finished(call, result)

    async def _wait(self, call: _Call, suspend: Suspend | MakeSuspend) -> Any:
        if (found := await self._known_output(call)) is not None:
            return found.output
        self._making += 1
        self._made.clear()
        try:
            await self._quiet.wait()
            if self._may_wait:
                made = suspend if isinstance(suspend, Suspend) else await suspend()
                if self._may_wait:
                    self._waits.append((made, WaitStep(call.n, call.name, call.input_hash)))
        finally:
            self._making -= 1
            if not self._making:
                self._made.set()
        await asyncio.sleep(0)  # the waits beside it begin
        await self._made.wait()
        await self._quiet.wait()
        self._leaving = True
        raise Leaving

    @property
    def _may_wait(self) -> bool:
        return not self._leaving and len(self._waits) < WAITS_MAX

    async def _enter(self, call: _Call) -> _Found | None:
        """Return the earlier output of the step, or None if it has begun now."""
        found = await self._known_output(call)
        if found is not None:
            return found
        known = self._known.get(call.n)
        if known is not None and known.lost:
            await self._quiet.wait()
            if not self._waits:
                asked = WaitStep(call.n, call.name, call.input_hash, lost=True)
                self._waits.append((step_question(self._name, call.n, call.name), asked))
            self._leaving = True  # it is asked alone
        if self._waits:  # nothing begins any more
            raise Leaving
        self._under_way += 1
        self._quiet.clear()
        try:
            event = StepStarted(_NO_KEY, self._attempt, call.n, call.kind, call.name, call.input_hash, call.effect)
            await self._journal.record(event)
        except BaseException:
            self._ended()
            raise
        return None

    async def _known_output(self, call: _Call) -> _Found | None:
        """Raises BlockError: it failed before, or another call was made there."""
        known = self._known.get(call.n)
        if known is None:
            return None
        if known.input_hash not in (call.input_hash, ANY_INPUT):
            raise BlockError(
                f"step {call.n} was {known.kind} {known.name!r} when the block first came to it, "
                f"and is {call.kind} {call.name!r} with another input now",
                code="steps_changed",
                retryable=False,
                hint="a block must make the same calls in the same order each time; run it again from the start",
            )
        return await self._stored(known) if known.finished_seq else None

    async def _stored(self, step: Step) -> _Found:
        data, output = await self._journal.finished(step.finished_seq)
        if (error := data.get("error")) is not None:
            raise BlockError(
                error["message"],
                code=error["code"],
                retryable=error.get("retryable", False),
                hint=error.get("hint", ""),
                traceback=error.get("traceback", ""),
            )
        return _Found(None if output is None else orjson.loads(output))

    # --- its end ---

    async def _finished(self, call: _Call, result: Any) -> Any:
        stepped = result if isinstance(result, Stepped) else Stepped(result)
        try:
            data = await self._encoded(stepped.output)
            event = StepFinished(
                _NO_KEY,
                self._attempt,
                call.n,
                _counts(stepped.usage),
                _cost(stepped.cost),
                stepped.prices[:NAME_MAX],
            )
        except BlockError as error:
            return await self._failed(call, error)
        try:
            await self._journal.record(event, data)
        finally:
            self._ended()
        return orjson.loads(data)

    async def _failed(self, call: _Call, error: BaseException, work: Any = None) -> Any:
        """Raises what every later entry raises as well. `work`: what raised `error`, if it is code of users."""
        traceback = "" if work is None else traceback_of(error, work)
        info = self._border.shown(replace(_info_of(error), traceback=traceback))
        try:
            await self._journal.record(StepFinished(_NO_KEY, self._attempt, call.n, error=info))
        finally:
            self._ended()
        asked = error if isinstance(error, BlockError) else None
        raise BlockError(
            info.message,
            code=info.code,
            retryable=info.retryable,
            hint=info.hint,
            traceback=info.traceback,
            retry_at_ms=None if asked is None else asked.retry_at_ms,
            deferred=None if asked is None else asked.deferred,
        ) from error

    async def _encoded(self, output: Any) -> bytes:
        """JSON without secrets. Raises BlockError."""
        data = dump(output)
        if len(data) > ASIDE_BYTES:
            data = await asyncio.to_thread(self._border.clean, output, data)
        else:
            data = self._border.clean(output, data)
        if (full := self._border.full(len(data))) is not None:
            raise BlockError(full.message, code=full.code, retryable=False, hint=full.hint)
        return data

    def _ended(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._quiet.set()

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return call_on(self._journal.loop, work, "use `await ctx.step(...)` or `await ctx.wait(...)` here")


def new_call(border: Border, n: int, kind: StepKind, name: str, input: Any, effect: StepEffect = "none") -> _Call:
    name = border.redactor.redact(name)[:NAME_MAX]
    encode_payload(input)  # raises BlockError, naming what is not JSON
    data = border.redactor.redact_json(orjson.dumps(input, option=orjson.OPT_SORT_KEYS))
    digest = hashlib.sha256(b"\0".join((kind.encode(), name.encode(errors="backslashreplace"), data)))
    return _Call(n, kind, name, digest.hexdigest()[:32], effect)


def refused_in(handler: Context) -> BlockError | None:
    """Return the refusal of a step of this context's handler, if it took numbers out of order."""
    return handler.steps.refused if isinstance(handler.steps, AttemptSteps) else None


def left_by(handler: Context) -> Left | None:
    """Return the waits of this context's handler, if it has left."""
    return handler.steps.left if isinstance(handler.steps, AttemptSteps) else None


_NO_KEY: Final[NodeKey] = ((), -1)  # the key of the moment is filled in when a note is recorded
_inside: ContextVar[AttemptSteps | None] = ContextVar("weft_inside_step", default=None)


def _info_of(error: BaseException) -> ErrorInfo:
    if isinstance(error, BlockError):
        return ErrorInfo(error.code, error.message, error.retryable, None, error.hint)
    if isinstance(error, TimeoutError):
        return ErrorInfo("timeout", str(error) or "the step took too long", True)
    return ErrorInfo("step_failed", f"{type(error).__name__}: {error}", True)


def _cost(usd: float | None) -> float | None:
    if usd is not None and not 0 <= usd <= USD_MAX:
        message = f"the cost of a step is a number of US dollars from 0 to {USD_MAX}, not {usd}"
        raise BlockError(message, code="payload_invalid", retryable=False)
    return usd


def _counts(usage: Mapping[str, int]) -> dict[str, int]:
    if len(usage) > USAGE_MAX or not all(isinstance(n, int) for n in usage.values()):
        message = f"the usage of a step is at most {USAGE_MAX} whole numbers by name"
        raise BlockError(message, code="payload_invalid", retryable=False)
    return {str(name)[:NAME_MAX]: int(n) for name, n in usage.items()}
