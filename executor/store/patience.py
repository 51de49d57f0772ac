"""How long callers wait for a database that cannot be used for a moment.

Writes wait for a lock of another process. Without a word all are as patient as the writer's retries; a server that
answers requests is not, because its clients are not. What a block needs is asked for again: that is no reason for it to
fail.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from executor.errors import BlockError, StoreError

T = TypeVar("T")

PAUSES_S = (0.1, 1.0, 5.0)

_patience_s: ContextVar[float | None] = ContextVar("patience_s", default=None)


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Writes that are submitted in here fail with DatabaseWriteFailed, and are then not on disk, once they have waited
    so long, counted from when they were submitted."""
    token = _patience_s.set(seconds)
    try:
        yield
    finally:
        _patience_s.reset(token)


def patience_s() -> float | None:
    """Of the writes that this code submits; None: no bound of its own."""
    return _patience_s.get()


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
