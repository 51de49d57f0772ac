"""How long the writes of a caller wait for a lock of another process. Without a word all are as patient as the writer's
retries; a server that answers requests is not, because its clients are not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
