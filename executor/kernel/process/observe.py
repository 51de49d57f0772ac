"""The present work of this process, for lines of the log, traces and metrics: the run and attempt of the current
task, the parent of new traces, histograms. And tasks for work that begins at once."""

from __future__ import annotations

import asyncio
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Doing(NamedTuple):
    """`node`: the node key as text, None between attempts."""

    run: str
    workflow: str
    node: str | None = None
    attempt: int | None = None


_context: ContextVar[Any] = ContextVar("context", default=None)
_doing: ContextVar[Doing | Callable[[], Doing | None] | None] = ContextVar("doing", default=None)


def begin(doing: Doing | Callable[[], Doing | None]) -> None:
    """Set the context for the rest of this task, and for tasks that it makes. A function is called only when a line is
    logged."""
    _doing.set(doing)


def begin_task(work: Coroutine[Any, Any, T], name: str, context: Context | None = None) -> asyncio.Task[T]:
    """A task that begins at once, in the callback that makes it, and not a pass of the event loop later.

    What the coroutine sees is the same: it runs in a task of its own from its first step, so timeouts, cancellation and
    `current_task` work as everywhere. One that never waits has ended when this returns.
    """
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, name=name, context=context, eager_start=True)
    first: list[tuple[Callable[[], Any], Context]] = []

    def take(step: Callable[[], Any], *, context: Context) -> None:
        first.append((step, context))

    # Before 3.12 a task cannot begin at once: it asks the loop to call its first step. That is caught here, for this
    # task alone: nothing in between could ask as well.
    loop.call_soon = take  # type: ignore[method-assign, assignment]  # put back at once
    try:
        task = asyncio.Task(work, loop=loop, name=name, context=context)
    finally:
        del loop.call_soon
    [(step, context)] = first
    maker = asyncio.current_task(loop)
    if maker is not None:
        asyncio.tasks._leave_task(loop, maker)
    try:
        context.run(step)
    finally:
        if maker is not None:
            asyncio.tasks._enter_task(loop, maker)
    return task


def doing() -> Doing | None:
    now = _doing.get()
    return now() if callable(now) else now


@contextmanager
def inside(context: Any) -> Generator[None]:
    """Set the context that `current` returns while a function of the user is called."""
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)


def current() -> Any:
    """Return the context of the attempt whose function calls this; None outside."""
    return _context.get()


_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?")
_parent: ContextVar[str | None] = ContextVar("traceparent", default=None)


class Parent(NamedTuple):
    """Hexadecimal: 32 and 16 digits."""

    trace: str
    span: str


def parent_of(text: str | None) -> Parent | None:
    """Parse the header `traceparent` of W3C Trace Context. Returns None if it is not valid."""
    found = _TRACEPARENT.fullmatch(text) if text else None
    if found is None or not (found[1].strip("0") and found[2].strip("0")):
        return None
    return Parent(found[1], found[2])


@contextmanager
def with_parent(traceparent: str | None) -> Iterator[None]:
    """Give the runs made inside this parent, if it is valid."""
    token = _parent.set(traceparent if parent_of(traceparent) is not None else None)
    try:
        yield
    finally:
        _parent.reset(token)


def present_parent() -> str | None:
    return _parent.get()


class Histogram:
    """`bounds` in rising order. `counts[n]`: values above the bound before and up to bound n; the last: above all. Each
    has one thread that observes; others may read, and may miss the last value."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self.counts)
