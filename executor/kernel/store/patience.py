"""Bounds how long callers wait for a database that cannot be used for a moment.

Writes wait for a lock of another process, and all wait for a database that is gone or silent. By default all are as
patient as the writer's retries; a server that answers requests is not, because its clients are not. What a block needs
is asked for again: that is no reason for it to fail.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TypeVar

from executor.errors import BlockError, StoreError
from executor.kernel.process.repeated import OUTAGE

T = TypeVar("T")

PAUSES_S = (0.1, 1.0, 5.0)

# Seconds, and the end of them on the monotonic clock.
_patience: ContextVar[tuple[float, float] | None] = ContextVar("patience", default=None)


class patience:
    """For a request that arrives now: what it asks of the database in here fails after that time. Writes fail with
    DatabaseWriteFailed, and are then not on disk, or with DatabaseUnavailable if that is not known. What is asked
    later, as by a request that waits for the end of a run, has as long once more."""

    __slots__ = ("_seconds", "_token")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._token = _patience.set((self._seconds, time.monotonic() + self._seconds))

    def __exit__(self, *_: object) -> None:
        _patience.reset(self._token)


def patience_s() -> float | None:
    found = _patience.get()
    if found is None:
        return None
    seconds, until_s = found
    left_s = until_s - time.monotonic()
    return left_s if left_s > 0 else seconds


async def with_retries(ask: Callable[[], Awaitable[T]], *, what: str, failed: str, log: logging.Logger) -> T:
    """Return what `ask` returns. It is called again after a StoreError, so calling it twice must do no harm. `what` is
    logged with each failure. Raises BlockError, retryable, with `failed` and the last error; and whatever else `ask`
    raises."""
    for pause_s in PAUSES_S:
        try:
            return await ask()
        except StoreError as error:
            OUTAGE.log(log, error, f"{what} was tried again")
            await asyncio.sleep(pause_s)
    try:
        return await ask()
    except StoreError as error:
        raise BlockError(f"{failed}: {error}", code=error.code, retryable=True) from error
