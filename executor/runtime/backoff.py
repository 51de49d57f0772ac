"""Asking the database again: one that cannot be used for a moment is no reason for a block to fail."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from executor.errors import BlockError, StoreError

T = TypeVar("T")

PAUSES_S = (0.1, 1.0, 5.0)


async def with_retries(ask: Callable[[], Awaitable[T]], *, what: str, failed: str, log: logging.Logger) -> T:
    """What `ask` returns; it is called again after a StoreError, so twice must be as good as once. `what` is logged
    with each failure. Raises BlockError, retryable, with `failed` and the last error; what else `ask` raises."""
    for pause_s in PAUSES_S:
        try:
            return await ask()
        except StoreError as error:
            log.warning("%s: %s; trying again", what, error)
            await asyncio.sleep(pause_s)
    try:
        return await ask()
    except StoreError as error:
        raise BlockError(f"{failed}: {error}", code=error.code, retryable=True) from error
