"""An event loop and a writer's queue that take turns: what a program counts is then the same each time.

The writer's thread works only while the loop would wait, and the loop only while the thread waits for items. Other
threads (readers) report to the loop when it has nothing else to do. Time stands still for the loop, but for the timers
that it waits for.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty
from typing import Any

OTHERS_S = 0.5  # real time that other threads have before a timer is due
STUCK_S = 60.0


class Turns:
    """The queues of writers. `arrive` is called in the thread of each when its turn begins."""

    def __init__(self, arrive: Callable[[], None]) -> None:
        self.arrive = arrive
        self.changed = threading.Condition()
        self.queues: list[Queue] = []

    def new_queue(self) -> Queue:
        queue = Queue(self)
        self.queues.append(queue)
        return queue

    def let_writers_work(self) -> None:
        """Return when each waits for items."""
        with self.changed:
            for queue in self.queues:
                queue.may_work = bool(queue.items)
            self.changed.notify_all()
            if not self.changed.wait_for(lambda: not any(queue.may_work for queue in self.queues), STUCK_S):
                raise TimeoutError("the writer does not come back")


class Queue:
    """In the place of the writer's SimpleQueue. A pause of the thread never ends by itself, so it never cleans up."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.items: deque[Any] = deque()
        self.may_work = False

    def put(self, item: Any) -> None:
        self.items.append(item)

    def get_nowait(self) -> Any:
        return self.get(timeout=0.0)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if not self.items:
            if timeout == 0.0:
                raise Empty
            self.end_turn()
            with self.turns.changed:
                self.turns.changed.wait_for(lambda: self.may_work)
            self.turns.arrive()
        item = self.items.popleft()
        if item is None:  # the thread ends
            self.end_turn()
        return item

    def end_turn(self) -> None:
        with self.turns.changed:
            self.may_work = False
            self.turns.changed.notify_all()


class Loop(asyncio.SelectorEventLoop):
    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._now_s = 0.0
        self._thread = threading.get_ident()
        self._posted: deque[asyncio.Handle] = deque()
        self._come = threading.Event()
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self._now_s

    def call_soon_threadsafe(  # type: ignore[override]  # TypeVarTuple is left out
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        if threading.get_ident() == self._thread:
            return self.call_soon(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        self._posted.append(handle)
        self._come.set()
        return handle

    def wait(self, timeout: float | None) -> None:
        """For a result of another thread, else for the next timer."""
        self._turns.let_writers_work()
        if not self._posted:
            self._come.wait(STUCK_S if timeout is None else OTHERS_S)
            if not self._posted:
                self._now_s += timeout or 0.0
        self._come.clear()
        while self._posted:
            self._ready.append(self._posted.popleft())  # type: ignore[attr-defined]  # of asyncio's loop


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: Loop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or timeout > 0:
            self._loop.wait(timeout)
        return []
