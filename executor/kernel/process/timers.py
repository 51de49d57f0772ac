"""One heap of due times per process. The event loop's own timer only wakes the look at that heap."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from executor.kernel.process.clock import Clock

# Look again at least this often: the wall clock may have been stepped while the loop's clock was not.
LOOK_AGAIN_MS = 60_000


class Timers:
    """Timers of a clock. `set` calls `callback` once, not before `due_ms`, and returns a handle for `cancel`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int]] = []
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._numbers = count(1)
        self._look_at_s = 0.0  # by the loop's clock; kept here because not every loop's handle has `when()`
        self._handle: asyncio.Handle | None = None
        self.resting = 0  # handlers that do nothing but wait for a timer
        clock.on_jump(self._fire)

    def set(self, due_ms: int, callback: Callable[[], None]) -> int:
        number = next(self._numbers)
        self._callbacks[number] = callback
        heapq.heappush(self._heap, (due_ms, number))
        self._arm()
        return number

    def cancel(self, number: int) -> None:
        self._callbacks.pop(number, None)
        if len(self._heap) > 64 and len(self._heap) > 2 * len(self._callbacks):
            self._heap = [entry for entry in self._heap if entry[1] in self._callbacks]
            heapq.heapify(self._heap)

    @property
    def next_due_ms(self) -> int | None:
        return min((due_ms for due_ms, number in self._heap if number in self._callbacks), default=None)

    def close(self) -> None:
        self._callbacks.clear()
        self._heap.clear()
        if self._handle:
            self._handle.cancel()

    def _arm(self) -> None:
        while self._heap and self._heap[0][1] not in self._callbacks:
            heapq.heappop(self._heap)
        if not self._heap:
            return
        delay_ms = min(max(0, self._heap[0][0] - self._clock.now_ms()), LOOK_AGAIN_MS)
        loop = asyncio.get_running_loop()
        # 1 ms more: the loop's clock may run ahead of the wall clock by a fraction, and early is wrong
        look_at_s = loop.time() + (delay_ms + 1) / 1000
        # By the loop's clock: what was reckoned before the wall clock was set may be far too late now.
        if self._handle and not self._handle.cancelled() and self._look_at_s <= look_at_s:
            return
        if self._handle:
            self._handle.cancel()
        self._look_at_s, self._handle = look_at_s, loop.call_at(look_at_s, self._fire)

    def _fire(self) -> None:
        if self._handle:
            self._handle.cancel()
            self._handle = None
        now_ms = self._clock.now_ms()
        while self._heap and self._heap[0][0] <= now_ms:
            _, number = heapq.heappop(self._heap)
            callback = self._callbacks.pop(number, None)
            if callback:
                callback()
        self._arm()
