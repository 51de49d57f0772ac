"""Tasks that begin at once, in the callback that makes them, and not a pass of the event loop later.

What a coroutine sees is the same: it runs in a task of its own from its first step, so timeouts, cancellation and
`current_task` work as everywhere. One that never waits has ended when `begin` returns.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


def begin(work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, name=name, eager_start=True)
    first: list[tuple[Callable[[], Any], Context]] = []

    def take(step: Callable[[], Any], *, context: Context) -> None:
        first.append((step, context))

    # A new task asks the loop to call its first step. It is taken instead, and called here.
    loop.call_soon = take  # type: ignore[method-assign, assignment]
    try:
        task = loop.create_task(work, name=name)
    finally:
        del loop.call_soon
    maker = asyncio.current_task()
    if maker is not None:
        asyncio.tasks._leave_task(loop, maker)
    try:
        for step, context in first:
            context.run(step)
    finally:
        if maker is not None:
            asyncio.tasks._enter_task(loop, maker)
    return task
