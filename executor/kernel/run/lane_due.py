"""The timers of an entry of a durable function, and the pauses before its steps are tried again."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Final

from executor.kernel.process.clock import Clock
from executor.kernel.run.made import Made

SHORT_MS: Final = 2_000  # a shorter sleep, or pause before a step is tried again, passes in memory


class LaneDue:
    """`made`: the calls, by number."""

    def __init__(self, made: Mapping[int, Made], clock: Clock) -> None:
        self._made = made
        self._clock = clock
        self._heap: list[tuple[int, int]] = []  # of (due_ms, n)

    def add(self, due_ms: int, n: int) -> None:
        heapq.heappush(self._heap, (due_ms, n))

    def first(self) -> tuple[int | None, int]:
        """Return when the first timer or pause is over, and the number of its call."""
        while self._heap:
            due_ms, n = self._heap[0]
            made = self._made.get(n)
            if made is not None and not made.future.done() and (made.work is None or made.pause_ms == due_ms):
                return due_ms, n
            heapq.heappop(self._heap)
        return None, 0

    def is_short(self) -> bool:
        """Returns True if one is over soon."""
        due_ms, _ = self.first()
        return due_ms is not None and due_ms <= self._clock.now_ms() + SHORT_MS

    def timers(self) -> list[int]:
        return [n for _, n in self._heap if n in self._made and self._made[n].due_ms is not None]

    def pause_ms(self) -> int | None:
        """Return when the first pause is over."""
        return min((made.pause_ms for made in self._made.values() if made.pause_ms is not None), default=None)
