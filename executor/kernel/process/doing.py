"""Context of the current task: the run and the attempt for lines of the log, and what `weft.context()` returns."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple


class Doing(NamedTuple):
    """`node`: the node key as text, None between attempts."""

    run: str
    workflow: str
    node: str | None = None
    attempt: int | None = None


_context: ContextVar[Any] = ContextVar("context", default=None)
_doing: ContextVar[Doing | Callable[[], Doing] | None] = ContextVar("doing", default=None)


def begin(doing: Doing | Callable[[], Doing]) -> None:
    """Set the context for the rest of this task, and for tasks that it makes. A function is called only when a line is
    logged."""
    _doing.set(doing)


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
