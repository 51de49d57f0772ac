"""Durable steps inside a handler: implements `StepContext.step` and `StepContext.wait`.

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
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from inspect import isawaitable
from typing import Any, Final, TypeVar

import orjson
from msgspec import Struct

from executor.errors import BlockError, Fenced, Lost
from executor.kernel.core.events import StepEffect, StepKind
from executor.kernel.core.facts import WaitStep
from executor.kernel.core.state import Step
from executor.kernel.handler.base import Leaving, MakeSuspend, StepContext, Suspend
from executor.kernel.handler.base import StepKind as Kind
from executor.kernel.process.threads import call_on
from executor.kernel.run.attention import step_question
from executor.kernel.run.border import Border
from executor.kernel.run.mismatch import OF_BLOCK, changed
from executor.kernel.run.results import AtEach
from executor.kernel.run.step_order import StepOrder
from executor.kernel.run.step_work import Call, Ended, StepJournal, StepWork

T = TypeVar("T")
log = logging.getLogger("weft.steps")

STEPS_MAX: Final = 1_000  # of one entry of a handler
WAITS_MAX: Final = 20  # of one entry, side by side; further ones open when these are over
ANY_INPUT: Final = ""  # as the hash of the input of a step whose result counts for any: the block has other params now


class Left(Struct, frozen=True):
    """The waits of a handler that has left, in the order of its calls. `again` is when it is entered again, or is
    None if that is at the end of the last of them."""

    waits: tuple[tuple[Suspend, WaitStep], ...]
    again: AtEach | None = None


class _Found(Struct, frozen=True):
    output: Any


class AttemptSteps:
    """The steps of one attempt. `name` is its block's; `known` are the steps that earlier attempts began; `main` is the
    task of its handler.

    Waits that are begun side by side open together: none of them makes the handler leave before all are made.
    """

    __slots__ = (
        "_journal", "_known", "_leaving", "_lock", "_made", "_making", "_n", "_name", "_order", "_quiet", "_under_way",
        "_waits", "_work",
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
        self._known = known
        self._journal = journal
        self._work = StepWork(attempt, journal, border)
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

    # --- see StepContext ---

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

    def _step_in_thread(self, call: Call, work: Callable[[], Any]) -> Any:
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

    def _call(self, kind: StepKind, name: str, input: Any, effect: StepEffect) -> Call:
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
        return self._work.call(n, kind, name, input, effect)

    async def _step(self, call: Call, work: Callable[[], Awaitable[Any]]) -> Any:
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
            self._work.cancel(call)
            raise
        except (Exception, SystemExit) as error:
            return await self._failed(call, error, work)
        return await self._finished(call, result)

    async def _wait(self, call: Call, suspend: Suspend | MakeSuspend) -> Any:
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

    async def _enter(self, call: Call) -> _Found | None:
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
            await self._work.begin(call)
        except BaseException:
            self._ended()
            raise
        return None

    async def _known_output(self, call: Call) -> _Found | None:
        """Raises BlockError: it failed before, or another call was made there."""
        known = self._known.get(call.n)
        if known is None:
            return None
        if known.input_hash not in (call.input_hash, ANY_INPUT):
            raise changed(known, call, OF_BLOCK)
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

    async def _finished(self, call: Call, result: Any) -> Any:
        try:
            ended = await self._work.finish(call, result)
        finally:
            self._ended()
        return _value_of(ended, None)

    async def _failed(self, call: Call, error: BaseException, work: Any = None) -> Any:
        """Raises what every later entry raises as well. `work`: what raised `error`, if it is code of users."""
        try:
            ended = await self._work.fail(call, error, work)
        finally:
            self._ended()
        return _value_of(ended, error)

    def _ended(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._quiet.set()

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return call_on(self._journal.loop, work, "use `await ctx.step(...)` or `await ctx.wait(...)` here")


def _value_of(ended: Ended, raised: BaseException | None) -> Any:
    if (info := ended.error) is None:
        return ended.value()
    asked = raised if isinstance(raised, BlockError) else None
    raise BlockError(
        info.message,
        code=info.code,
        retryable=info.retryable,
        hint=info.hint,
        traceback=info.traceback,
        retry_at_ms=None if asked is None else asked.retry_at_ms,
        deferred=None if asked is None else asked.deferred,
    ) from raised


def refused_in(handler: StepContext) -> BlockError | None:
    """Return the refusal of a step of this context's handler, if it took numbers out of order."""
    return handler.steps.refused if isinstance(handler.steps, AttemptSteps) else None


def left_by(handler: StepContext) -> Left | None:
    """Return the waits of this context's handler, if it has left."""
    left = getattr(handler.calls or handler.steps, "left", None)
    return left if isinstance(left, Left) else None


_inside: ContextVar[AttemptSteps | None] = ContextVar("weft_inside_step", default=None)
