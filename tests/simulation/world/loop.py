"""An event loop without IO, in virtual time: of all that is ready it runs any one next, as the seed says.

A callback belongs to the process in whose context it was made. Those of a frozen process wait until it continues, those
of a dead one never run: nothing of it is cancelled, no `finally` runs, as after SIGKILL.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import warnings
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from itertools import count
from random import Random
from typing import Any, TypeVar

from tests.support.core.watch import Broken

T = TypeVar("T")

_TICK_S = 0.0005  # what a callback takes, now and then


class Process:
    """What is frozen together and dies together. A new one after each crash."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.frozen = False
        self.dead = False
        self.parked: list[_Ready] = []
        self._context = copy_context()
        self._context.run(PROCESS.set, self)

    @property
    def context(self) -> Context:
        return self._context.copy()


PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)
_Ready = tuple[asyncio.Handle, Process | None]


class _Future(asyncio.Future):
    """Its place in a set is the same whenever the seed is run."""

    _numbers = count()
    _number: int

    def __new__(cls, *args: Any, **kwargs: Any) -> _Future:
        new = super().__new__(cls, *args, **kwargs)
        new._number = next(cls._numbers)
        return new

    def __hash__(self) -> int:
        return self._number


class _Task(asyncio.Task):
    _number: int

    def __new__(cls, *args: Any, **kwargs: Any) -> _Task:
        new = super().__new__(cls, *args, **kwargs)
        new._number = next(_Future._numbers)
        return new

    def __hash__(self) -> int:
        return self._number


class WorldLoop(asyncio.BaseEventLoop):
    """`run` drives it until the coroutine is done. Raises Broken when nothing can ever happen again, or when far too
    much happens, or what `broken` says."""

    def __init__(self, rng: Random, steps_max: int) -> None:
        self._rng = rng
        self._steps_max = steps_max
        self._now_s = 0.0
        self._over = False
        self._ready: list[_Ready] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle, Process | None]] = []
        self._numbers = count()
        self._tasks: list[_Task] = []
        self._graves: list[_Ready] = []  # kept, as the garbage collector would close the coroutines that they continue
        self.steps = 0
        self.broken: Broken | None = None  # checks that find something wrong set it: callbacks cannot raise it
        _Future._numbers = count()

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        asyncio._set_running_loop(self)
        try:
            task: asyncio.Task[T] = self.create_task(main)
            while not task.done():
                self._step()
                if self.broken is not None:
                    raise self.broken
            return task.result()
        finally:
            self._bury()
            asyncio._set_running_loop(None)

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self._steps_max:
            raise Broken(f"no end after {self.steps - 1} callbacks")
        ready, timers = self._ready, self._timers
        while timers and (timers[0][0] <= self._now_s or timers[0][2].cancelled()):
            _, _, timer, process = heapq.heappop(timers)
            ready.append((timer, process))
        if not ready:
            if not timers:
                raise Broken("nothing can ever happen again")
            self._now_s = timers[0][0]
            return
        number = int(self._rng.random() * len(ready))
        handle, process = chosen = ready[number]
        ready[number] = ready[-1]
        ready.pop()
        if handle.cancelled():
            return
        if process is not None and (process.frozen or process.dead):
            (self._graves if process.dead else process.parked).append(chosen)
            return
        if self._rng.random() < 0.1:
            self._now_s += _TICK_S
        handle._run()

    def thaw(self, process: Process) -> None:
        process.frozen = False
        self._ready += process.parked
        process.parked = []

    def _bury(self) -> None:
        """Close what never came to its end, so that the garbage collector finds nothing to complain about."""
        logging.disable()  # they are not closed in their contexts, which is an error for some
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some never began
            for task in [*self._tasks, *asyncio.all_tasks(self)]:
                if not task.done():
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    with contextlib.suppress(Exception):
                        task.get_coro().close()
            self._graves.clear()
            self._ready.clear()
            self._timers.clear()
            self._tasks.clear()
        logging.disable(logging.NOTSET)
        self._over = True

    # --- what asyncio asks of a loop ---

    def time(self) -> float:
        return self._now_s

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return self._over

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append((handle, PROCESS.get() if context is None else context.get(PROCESS)))
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        process = PROCESS.get() if context is None else context.get(PROCESS)
        heapq.heappush(self._timers, (when, next(self._numbers), timer, process))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass  # it is passed over when its time comes

    def create_future(self) -> _Future:
        return _Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> _Task:  # type: ignore[override]
        task = _Task(coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> _Future:  # type: ignore[override]
        """Threads are callbacks like any other: they take no time, and nothing comes in between."""
        future = self.create_future()
        self.call_soon(_work, future, func, args)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Of callbacks without an owner. A task whose exception is never read does no harm."""
        if "handle" in context and self.broken is None:
            self.broken = Broken(f"a callback raised {context['exception']!r}")


def _work(future: _Future, func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        result = func(*args)
    except Exception as error:
        if not future.done():
            future.set_exception(error)
    else:
        if not future.done():
            future.set_result(result)


def begin(process: Process | None, what: Awaitable[T]) -> asyncio.Task[T]:
    """A task of `process`; None: of the world outside."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, WorldLoop)
    if process is None:
        context = copy_context()
        context.run(PROCESS.set, None)
    else:
        context = process.context
    return loop.create_task(what, context=context)
