"""Log context: the run and the attempt of the current task."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import NamedTuple


class Doing(NamedTuple):
    """`node`: the node key as text, None between attempts."""

    run: str
    workflow: str
    node: str | None = None
    attempt: int | None = None


_doing: ContextVar[Doing | Callable[[], Doing] | None] = ContextVar("doing", default=None)


def begin(doing: Doing | Callable[[], Doing]) -> None:
    """Set the context for the rest of this task, and for tasks that it makes. A function is called only when a line is
    logged."""
    _doing.set(doing)


def doing() -> Doing | None:
    now = _doing.get()
    return now() if callable(now) else now
