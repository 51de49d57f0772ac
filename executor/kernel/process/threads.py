"""Threads for plain Python functions: one for each call, with a limit on their number.

A thread cannot be stopped. One whose attempt is over (its time, a cancel) is left behind: it frees its place for the
next call and continues by itself, and neither other work nor the end of the process waits for it. Hence no pool, and
daemons.

`aside` is for short work of weft itself: it has threads of its own."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from executor.errors import BlockError, not_begun

T = TypeVar("T")

RUNNING_MAX: Final = 32
LEFT_BEHIND_MAX: Final = 100
# More of them would take turns with the event loop, and leave it little time.
ASIDE_MAX: Final = 2
_ASIDE: Final = [ThreadPoolExecutor(ASIDE_MAX, thread_name_prefix="weft-aside")]


def _after_fork() -> None:
    _ASIDE[0] = ThreadPoolExecutor(ASIDE_MAX, thread_name_prefix="weft-aside")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


async def aside(work: Callable[[], T]) -> T:
    """Run `work` in a thread, so that the event loop continues, and return its result. For work that takes long with
    some documents, schemas and patterns."""
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_ASIDE[0], context.run, work)


class Held(Struct, eq=False):
    """A call that has not returned. `about`: the run and the node it belongs to."""

    function: str
    about: str
    since_s: float = field(default_factory=time.monotonic)
    left_behind: bool = False

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since_s


class FunctionThreads:
    """Shared by the blocks of a process; belongs to the event loop of its first call."""

    def __init__(self, *, running_max: int = RUNNING_MAX, left_behind_max: int = LEFT_BEHIND_MAX) -> None:
        self._room = asyncio.Semaphore(running_max)
        self._left_behind_max = left_behind_max
        self._held: set[Held] = set()

    def held(self) -> list[Held]:
        """The calls that have not returned, those left behind included; the oldest first."""
        return sorted(self._held.copy(), key=lambda call: call.since_s)

    async def call(
        self,
        work: Callable[[], T],
        *,
        function: str,
        about: str,
        waiting: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> T:
        """Run `work` in a thread and return its result; `waiting` is entered while there is no place for it. Raises the
        errors of `work`, and BlockError, retryable: functions_left_behind; out_of_resources, which costs no attempt."""
        with waiting() if self._room.locked() else nullcontext():
            await self._room.acquire()
        try:
            left = [call for call in self.held() if call.left_behind]
            if len(left) >= self._left_behind_max:
                names = ", ".join(sorted({call.function for call in left}))
                message = f"{len(left)} abandoned calls are still running ({names}): no more threads are started"
                hint = "make these functions end, then restart the server"
                raise BlockError(message, code="functions_left_behind", hint=hint)
            return await self._in_thread(work, Held(function, about))
        finally:
            self._room.release()

    async def _in_thread(self, work: Callable[[], T], call: Held) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def body() -> None:
            result: Any = None
            failure: BaseException | None = None
            try:
                result = context.run(work)
            except BaseException as error:
                failure = error
            self._held.discard(call)
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: the call was left behind
                loop.call_soon_threadsafe(deliver, future, result, failure)

        self._held.add(call)
        try:
            threading.Thread(target=body, name=f"weft-function-{call.function}", daemon=True).start()
        except RuntimeError as error:  # no more threads
            self._held.discard(call)
            raise not_begun(call.function, error) from error
        try:
            return await future
        except asyncio.CancelledError:
            call.left_behind = True
            raise


def call_on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T], instead: str) -> T:
    """Run `work` on the event loop and wait for its result, in a thread. On the loop it would wait for itself, so it
    raises RuntimeError there, with what to do `instead`."""
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    if here is loop:
        work.close()
        raise RuntimeError(f"this is the event loop: {instead}")
    return asyncio.run_coroutine_threadsafe(work, loop).result()


def deliver(future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
    """Settle the future with the result of a thread, on the loop of its caller, unless the caller has gone."""
    if future.done():
        return
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(result)
