"""Query parameters as numbers, with the error a person can mend."""

from __future__ import annotations

from typing import TypeVar

from executor.errors import BadRequest
from server.http.table import Call

Choice = TypeVar("Choice", bound=str)
INTEGER_MAX = 2**53  # what every language that reads JSON can count to
FLAGS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def integer(
    call: Call, name: str, *, minimum: int = 0, maximum: int = INTEGER_MAX, default: int | None = None
) -> int | None:
    """A whole number within bounds; `default` when absent. Raises BadRequest (400)."""
    text = call.query(name)
    if text is None:
        return default
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 16 or not minimum <= int(text) <= maximum:
        raise BadRequest(
            f"The query parameter {name} must be a whole number from {minimum} to {maximum}.", pointer=None
        )
    return int(text)


def seconds(call: Call, name: str, maximum: float) -> float | None:
    """A span in seconds, cut to `maximum`. Raises BadRequest (400)."""
    text = call.query(name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:  # also NaN
        raise BadRequest(f"The query parameter {name} must be a number of seconds from 0 to {maximum:g}.")
    return min(value, maximum)


def flag(call: Call, name: str) -> bool:
    """False when absent. Raises BadRequest (400)."""
    given = FLAGS.get((call.query(name) or "0").lower())
    if given is None:
        raise BadRequest(f"The query parameter {name} must be 1 or 0.")
    return given


def choice(call: Call, name: str, allowed: tuple[Choice, ...], default: Choice) -> Choice:
    """One of `allowed`. Raises BadRequest (400)."""
    value = call.query(name) or default
    for one in allowed:
        if one == value:
            return one
    raise BadRequest(f"The query parameter {name} must be one of {', '.join(allowed)}.")
