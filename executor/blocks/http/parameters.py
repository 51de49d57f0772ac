"""Parameters of a header, `text/plain; charset=utf-8`. The library reads them in the square of their number, and 30 KB
of semicolons stop the event loop for a second. Nothing useful has more than a few."""

from __future__ import annotations

from email.message import Message
from typing import Final

PARAMETERS_MAX: Final = 64


def are_too_many(text: str) -> bool:
    """Return True if a header, or several joined ones, have more than PARAMETERS_MAX parameters."""
    return text.count(";") > PARAMETERS_MAX


def header_of(name: str, value: str) -> Message:
    """Return this header alone, without its parameters if they are too many."""
    message = Message()
    message[name] = value.partition(";")[0] if are_too_many(value) else value
    return message
