"""Durable steps inside a handler, as `Context` offers them: `ctx.step`, `ctx.wait`, and both for code in a thread.

A handler that is entered again (its process ended, it is tried again, a wait of it is over) begins at its first line.
Its calls have numbers, in the order in which they are made, and those that have finished return at once what they
returned before. So a handler must make the same calls with the same inputs each time: times, random numbers and what it
reads from outside belong into steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["model", "tool", "step"]


@dataclass(frozen=True, slots=True)
class Stepped:
    """What `work` of a step may return instead of a plain output: with what it used and cost (see StepFinished)."""

    output: Any = None
    usage: Mapping[str, int] = field(default_factory=dict)
    cost: float | None = None
    prices: str = ""


class Leaving(BaseException):
    """The handler is to end: it is entered again when its wait is over. No error, so `except Exception` lets it pass;
    what a handler does after it counts for nothing."""
