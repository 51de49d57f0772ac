"""Durable steps inside a handler, as `Context` offers them: `ctx.step`, `ctx.wait`, and both for code in a thread.

A handler that is entered again (its process ended, it is tried again, a wait of it is over) begins at its first line.
Its calls are numbered in the order in which they are made, and finished ones return their recorded results at once. So
a handler must make the same calls with the same inputs each time: times, random numbers and data from outside belong in
steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["model", "tool", "step"]


@dataclass(frozen=True, slots=True)
class Stepped:
    """A step's output with its usage and cost (see StepFinished); `work` may return it instead of a plain output."""

    output: Any = None
    usage: Mapping[str, int] = field(default_factory=dict)
    cost: float | None = None
    prices: str = ""


class Leaving(BaseException):
    """Ends the handler, which is entered again when its wait is over. Not an Exception, so `except Exception` lets it
    pass; anything the handler does after it is ignored."""
