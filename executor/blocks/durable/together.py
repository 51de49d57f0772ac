"""Calls of a durable function side by side: all of them, the first of them, or within a time.

They work on tasks of asyncio, as `asyncio.TaskGroup` and `asyncio.timeout` do, which durable functions may use as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, Generic, TypeVar, Unpack, overload

from msgspec import Struct

from compiler.tracing.duration import Duration, pause_of
from compiler.tracing.trace import active, refuse_drawn
from compiler.tracing.ways import drawn_together
from executor.blocks.durable.running import DROPPED, present

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
T = TypeVar("T")
V = TypeVar("V", covariant=True)


class FirstCompleted(Struct, Generic[V], frozen=True):
    """The first of several that ended: its place among them, and its result."""

    index: int
    value: V


@overload
async def gather(a: Awaitable[A], /) -> tuple[A]: ...
@overload
async def gather(a: Awaitable[A], b: Awaitable[B], /) -> tuple[A, B]: ...
@overload
async def gather(a: Awaitable[A], b: Awaitable[B], c: Awaitable[C], /) -> tuple[A, B, C]: ...
@overload
async def gather(a: Awaitable[A], b: Awaitable[B], c: Awaitable[C], d: Awaitable[D], /) -> tuple[A, B, C, D]: ...
@overload
async def gather(
    a: Awaitable[A], b: Awaitable[B], c: Awaitable[C], d: Awaitable[D], e: Awaitable[E], /
) -> tuple[A, B, C, D, E]: ...
@overload
async def gather(
    a: Awaitable[A], b: Awaitable[B], c: Awaitable[C], d: Awaitable[D], e: Awaitable[E], f: Awaitable[F], /
) -> tuple[A, B, C, D, E, F]: ...
@overload
async def gather(items: Iterable[A], function: Callable[[A], Awaitable[T]], /, *, at_most: int = 10) -> list[T]: ...
async def gather(*given: Any, at_most: int = 10) -> Any:
    """Wait for all of them and return their results in order: `await gather(a(), b())`. Or call an async function with
    each item: `await gather(items, function, at_most=10)`, so many at the same time.

    The first error cancels the others, and is raised when they have ended. In a workflow function the calls are drawn
    side by side."""
    if (trace := active()) is not None:
        return await drawn_together(trace, given, at_most)
    if len(given) == 2 and not isinstance(given[0], Awaitable):
        return await _each(given[0], given[1], at_most)
    return tuple(await _all(given))


@overload
async def first(a: Awaitable[A], b: Awaitable[B], /) -> FirstCompleted[A | B]: ...
@overload
async def first(a: Awaitable[A], b: Awaitable[B], c: Awaitable[C], /) -> FirstCompleted[A | B | C]: ...
@overload
async def first(
    a: Awaitable[A], b: Awaitable[B], c: Awaitable[C], d: Awaitable[D], /
) -> FirstCompleted[A | B | C | D]: ...
async def first(*given: Awaitable[Any]) -> FirstCompleted[Any]:
    """Wait for the first of them that ends, and cancel the others: their waits close. Raises its error, if it has
    failed. A step that changes something outside is left to finish.

    match await weft.first(weft.signal("confirmed"), weft.sleep(days=3)):
        case weft.FirstCompleted(0, payload): ...
        case weft.FirstCompleted(1): ..."""
    refuse_drawn("first")
    if not given:
        raise TypeError("first() needs at least one call to wait for")
    tasks = _tasks(given)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        index = next(n for n, task in enumerate(tasks) if task.done())
        return FirstCompleted(index, tasks[index].result())
    except asyncio.CancelledError as cancelled:  # of all of them
        await _cancel(tasks, cancelled.args)
        raise
    finally:
        await _cancel(tasks, DROPPED)


def timeout(time: float | timedelta | None = None, /, **more: Unpack[Duration]) -> asyncio.Timeout:
    """`async with weft.timeout(hours=2):` when the time is over, what is inside is cancelled, and raises TimeoutError.
    A step that changes something outside is left to finish."""
    refuse_drawn("timeout")
    return asyncio.timeout(pause_of(time, more))


@asynccontextmanager
async def shield() -> AsyncIterator[None]:
    """`async with weft.shield():` a cancel of the run is raised after what is inside has ended. Timeouts inside work as
    elsewhere; parts of the function beside it continue meanwhile."""
    calls = present("shield").calls
    if _shielded.get():
        yield
        return
    await calls.enter_shield()
    token = _shielded.set(True)
    try:
        yield
    finally:
        _shielded.reset(token)
        calls.leave_shield()


_shielded: ContextVar[bool] = ContextVar("weft_shielded", default=False)


async def _each(items: Iterable[A], function: Callable[[A], Awaitable[T]], at_most: int) -> list[T]:
    if at_most < 1:
        raise ValueError(f"at_most is 1 or more, not {at_most}")
    given = list(items)
    found: dict[int, T] = {}
    left = iter(enumerate(given))

    async def work() -> None:
        for at, item in left:
            found[at] = await function(item)

    await _all([work() for _ in range(min(at_most, len(given)))])
    return [found[at] for at in range(len(given))]


async def _all(given: Sequence[Awaitable[Any]]) -> list[Any]:
    tasks = _tasks(given)
    if not tasks:
        return []
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error
        return [task.result() for task in tasks]
    except asyncio.CancelledError as cancelled:
        await _cancel(tasks, cancelled.args)
        raise
    finally:
        await _cancel(tasks)


def _tasks(given: Iterable[Awaitable[Any]]) -> list[asyncio.Future[Any]]:
    return [asyncio.ensure_future(one) for one in given]


async def _cancel(tasks: Iterable[asyncio.Future[Any]], args: Sequence[Any] = ()) -> None:
    """Cancel those that have not ended, and wait until they have: they may have to clean up. `args`: of the cancel."""
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel(*args)
    if left:
        await asyncio.wait(left)
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()  # looked at: the error that counts is raised
