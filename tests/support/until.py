"""Waiting for a state."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")
Check = Callable[[], object] | None
LOOK_EVERY_S = 0.01


@overload
async def until(
    condition: Callable[[], Awaitable[T | None]], *, within_s: float = ..., meanwhile: Check = ...
) -> T: ...
@overload
async def until(condition: Callable[[], T | None], *, within_s: float = ..., meanwhile: Check = ...) -> T: ...
async def until(condition: Callable[[], Any], *, within_s: float = 60, meanwhile: Check = None) -> Any:
    """The first value of `condition` that is true; it may be an async function. Raises TimeoutError, and whatever
    `condition` or `meanwhile`, which is called before each look, raises."""
    async with asyncio.timeout(within_s):
        while True:
            if meanwhile is not None:
                meanwhile()
            found = condition()
            if inspect.isawaitable(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(LOOK_EVERY_S)
