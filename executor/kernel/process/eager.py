"""Tasks that begin at once."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


def begin(work: Coroutine[Any, Any, T], name: str, context: Context | None = None) -> asyncio.Task[T]:
    """A task that begins at once, in the callback that makes it, and not a pass of the event loop later.

    What the coroutine sees is the same: it runs in a task of its own from its first step, so timeouts, cancellation and
    `current_task` work as everywhere. One that never waits has ended when `begin` returns.
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
