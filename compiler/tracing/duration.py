"""Durations as people write them: `days=3`, `minutes=5, seconds=30`, a timedelta, or a number of seconds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypedDict


class Duration(TypedDict, total=False):
    days: float
    hours: float
    minutes: float
    seconds: float


def seconds_of(given: Duration) -> float | None:
    """Return the sum, or None if nothing is given. Raises TypeError, ValueError."""
    if not given:
        return None
    if unknown := set(given) - Duration.__optional_keys__:
        raise TypeError(f"{min(unknown)!r} is not one of {', '.join(Duration.__annotations__)}")
    seconds = timedelta(**given).total_seconds()
    if seconds < 0:
        raise ValueError(f"a time cannot be {seconds:g} seconds")
    return seconds


def pause_of(first: Any, more: Duration) -> Any:
    """Return the seconds of a pause: `first` is a number, a timedelta or a traced value, `more` are added. Raises
    TypeError, ValueError."""
    rest = seconds_of(more)
    if first is None:
        if rest is None:
            raise TypeError("write how long: sleep(days=3), sleep(minutes=5) or sleep(30)")
        return rest
    if isinstance(first, timedelta):
        first = first.total_seconds()
    return first if rest is None else first + rest
