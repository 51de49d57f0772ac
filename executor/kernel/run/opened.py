"""The step that ends when a wait of a durable function is open. It begins after that."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from executor.kernel.core.state import Step
from executor.kernel.handler.base import Leaving
from executor.kernel.run.recorded import RecordedEnds


class Opened:
    """Implements `Work`: returns the id of the wait that is step `n`, and its child run. `answer` is the end of the
    wait."""

    def __init__(self, known: Mapping[int, Step], recorded: RecordedEnds, n: int, answer: asyncio.Future[Any]) -> None:
        self._known = known
        self._recorded = recorded
        self._n = n
        self._answer = answer

    async def run(self, n: int) -> Any:
        if (known := self._known.get(self._n)) is not None:
            after = known.started_seq
        else:
            after = max((max(step.started_seq, step.finished_seq) for step in self._known.values()), default=0)
        found = await self._recorded.opened(self._n, after)
        if found is None:  # it could not open
            raise self._answer.exception() or Leaving
        return found

    def again_ms(self, n: int, times: int, error: BaseException) -> int | None:
        return None
