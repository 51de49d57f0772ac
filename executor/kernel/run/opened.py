"""A step of a durable function that begins when one of its waits is open."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Struct

from executor.kernel.core.state import Step
from executor.kernel.handler.base import Leaving
from executor.kernel.handler.durable import EndChild
from executor.kernel.run.recorded import Recorded


class Opened(Struct):
    """Implements `Work`: returns the id of the wait that is step `number`, and its child run, or does `end` to that."""

    known: Mapping[int, Step]
    recorded: Recorded
    number: int
    answer: asyncio.Future[Any]
    end: EndChild | None = None
    output_schema: ClassVar[None] = None

    async def run(self, n: int) -> Any:
        known, steps = self.known.get(self.number), self.known.values()
        last = max((max(step.started_seq, step.finished_seq) for step in steps), default=0)
        after = last if known is None else known.started_seq
        found = await self.recorded.opened(self.number, after)
        if found is None and self.end is None:  # it could not open
            raise self.answer.exception() or Leaving
        return found if found is None or self.end is None else await self.end(found["child"])

    def again_ms(self, n: int, times: int, error: BaseException) -> int | None:
        return None
