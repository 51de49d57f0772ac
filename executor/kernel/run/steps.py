"""Durable steps inside a handler: implements `StepContext.step` and `StepContext.wait`.

The two events of a step, the comparison of calls and the reading of recorded ends are those of durable functions
(`step_work.py`, `mismatch.py`, `recorded.py`). What is here differs, because the code of a handler runs in the loop of
the process, where it may wait for anything, and in threads: its numbers are checked (`step_order.py`), and the end of a
step is on disk before the handler sees it. See `docs/decisions/0098-handlers-have-no-lane.md`.

A wait is a step whose work is a wait of the node: the handler leaves by `Leaving`, the core opens the wait, and its end
finishes the step. Waits that are awaited side by side are open at the same time; the handler is entered again when the
last of them is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from inspect import isawaitable
from typing import Any, Final, TypeVar

from executor.errors import BlockError, Fenced, Lost
from executor.kernel.core.events import StepEffect, StepKind
from executor.kernel.core.facts import WaitStep
from executor.kernel.core.state import Step
from executor.kernel.handler.base import Leaving, MakeSuspend, StepContext, Suspend
from executor.kernel.handler.base import StepKind as Kind
from executor.kernel.process.threads import call_on
from executor.kernel.run.attention import step_question
from executor.kernel.run.mismatch import OF_BLOCK, changed, fits
from executor.kernel.run.results import Left
from executor.kernel.run.step_order import StepOrder
from executor.kernel.run.step_work import Call, Ended, StepWork

T = TypeVar("T")

STEPS_MAX: Final = 1_000  # of one entry of a handler
WAITS_MAX: Final = 20  # of one entry, side by side; further ones open when these are over


class AttemptSteps:
    """The steps of one attempt. `name` is its block's; `known` are the steps that earlier attempts began, and `earlier`
    reads the end of one, by the number of its event; `main` is the task of its handler.

    Waits that are begun side by side open together: none of them makes the handler leave before all are made.
    """

    __slots__ = (
        "_earlier", "_known", "_leaving", "_made", "_making", "_name", "_order", "_quiet", "_under_way", "_waits",
        "_work",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        known: Mapping[int, Step],
        earlier: Callable[[int], Awaitable[Ended]],
        work: StepWork,
        main: asyncio.Task[Any] | None,
    ) -> None:
        self._name = name
        self._known = known
        self._earlier = earlier
        self._work = work
        self._order = StepOrder(main)
        self._under_way = self._making = 0
        self._quiet, self._made = asyncio.Event(), asyncio.Event()
        self._quiet.set()
        self._waits: list[tuple[Suspend, WaitStep]] = []
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
        if (ended := self._on_loop(self._enter(call))) is not None:
            return ended.result()
        try:
            with self._working():
                result = work()
        except (Fenced, Lost):
            raise
        except (Exception, SystemExit) as error:
            return self._on_loop(self._end(self._work.fail(call, error, work), error))
        return self._on_loop(self._end(self._work.finish(call, result)))

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
        n = self._order.claim(name)
        if n > STEPS_MAX:
            hint = "split the work into several blocks, or into runs that the block starts"
            message = f"the block has more than {STEPS_MAX:,} steps"
            raise BlockError(message, code="limit_steps", retryable=False, hint=hint)
        return self._work.call(n, kind, name, input, effect)

    async def _step(self, call: Call, work: Callable[[], Awaitable[Any]]) -> Any:
        if (ended := await self._enter(call)) is not None:
            return ended.result()
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
            self._is_over()
            raise
        except asyncio.CancelledError:
            # By the time limit, or because the result is not needed: the end of the attempt follows at once.
            self._is_over()
            self._work.cancel(call)
            raise
        except (Exception, SystemExit) as error:
            return await self._end(self._work.fail(call, error, work), error)
        return await self._end(self._work.finish(call, result))

    async def _wait(self, call: Call, suspend: Suspend | MakeSuspend) -> Any:
        if (ended := await self._end_of_before(call)) is not None:
            return ended.result()
        self._making += 1
        self._made.clear()
        try:
            await self._quiet.wait()
            if self._may_wait:
                made = suspend if isinstance(suspend, Suspend) else await suspend()
                if self._may_wait:
                    self._waits.append((made, call.wait_step(lost=False)))
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

    async def _enter(self, call: Call) -> Ended | None:
        """Return the earlier end of the step, or None if it has begun now."""
        if (ended := await self._end_of_before(call)) is not None:
            return ended
        known = self._known.get(call.n)
        if known is not None and known.lost:
            await self._quiet.wait()
            if not self._waits:
                self._waits.append((step_question(self._name, call.n, call.name), call.wait_step(lost=True)))
            self._leaving = True  # it is asked alone
        if self._waits:  # nothing begins any more
            raise Leaving
        self._under_way += 1
        self._quiet.clear()
        try:
            await self._work.begin(call)
        except BaseException:
            self._is_over()
            raise
        return None

    async def _end_of_before(self, call: Call) -> Ended | None:
        """Raises BlockError: another call was made there."""
        known = self._known.get(call.n)
        if known is None:
            return None
        if not fits(known, call):
            raise self._order.refuse(changed(known, call, OF_BLOCK))
        return await self._earlier(known.finished_seq) if known.finished_seq else None

    # --- its end ---

    async def _end(self, ends: Awaitable[Ended], raised: BaseException | None = None) -> Any:
        """Raises what every later entry raises as well."""
        try:
            ended = await ends
        finally:
            self._is_over()
        return ended.result(raised)

    def _is_over(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._quiet.set()

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return call_on(self._work.loop, work, "use `await ctx.step(...)` or `await ctx.wait(...)` here")


def refused_in(handler: StepContext) -> BlockError | None:
    """Return the refusal of a step of this context's handler: it cannot be made again as it was."""
    return handler.steps.refused if isinstance(handler.steps, AttemptSteps) else None


def left_by(handler: StepContext) -> Left | None:
    """Return the waits of this context's handler, if it has left."""
    left = getattr(handler.calls or handler.steps, "left", None)
    return left if isinstance(left, Left) else None


_inside: ContextVar[AttemptSteps | None] = ContextVar("weft_inside_step", default=None)
