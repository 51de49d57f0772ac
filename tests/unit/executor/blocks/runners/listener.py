"""A listener of runners, for tests."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from executor.errors import BlockError


class Listener:
    """A listener that keeps what a function logs, emits and stores as checkpoints."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.live: list[str] = []
        self.kept: list[Any] = []
        self.waiting: Callable[[], AbstractContextManager[Any]] = nullcontext

    def log(self, *values: object) -> None:
        self.lines.append(" ".join(map(str, values)))

    def emit(self, text: str) -> None:
        self.live.append(text)

    async def checkpoint(self, value: Any) -> None:
        if len(value) > 1000:
            raise BlockError("too large", code="checkpoint_too_large", retryable=False)
        self.kept.append(value)
