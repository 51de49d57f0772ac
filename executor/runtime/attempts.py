"""The attempts of one run that are under way: a task each, which is cancelled when its end is no longer needed.

They outlive the loop that started them: when a run moves to another plan, or is folded anew after an append that was
refused, the next loop owns them. An attempt ends under the plan with which it began; its result is about the node that
it is in the plan of then.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

from msgspec.structs import replace

from compiler.keys import NodeKey
from executor.core import facts as f
from executor.core.decide import CANCELLED
from executor.core.events import ErrorInfo
from executor.runtime.launch import Launcher
from executor.runtime.parts import Parts
from executor.runtime.results import Arrivals

T = TypeVar("T")

# A cancelled handler gets this long to clean up; then it is left behind and its outcome ignored.
CANCEL_GRACE_S = 5.0


class _Attempt:
    __slots__ = ("cancelled", "key", "number", "task")

    task: asyncio.Task[None]

    def __init__(self, key: NodeKey, number: int) -> None:
        self.key = key
        self.number = number
        self.cancelled = False


class Attempts:
    """`arrivals`: where they log, and where their results are found."""

    def __init__(self, run: str, parts: Parts, arrivals: Arrivals) -> None:
        self.arrivals = arrivals
        self._run_id = run
        self._turns = parts.turns
        self._now_ms = parts.clock.now_ms
        self._by_key: dict[NodeKey, _Attempt] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def keys(self) -> set[NodeKey]:
        """Of the nodes with an attempt that has not ended, or whose end is not decided yet."""
        ended = {key for result in self.arrivals.results if (key := getattr(result.fact, "key", None)) is not None}
        return ended | self._by_key.keys()

    def start(self, launcher: Launcher, key: NodeKey, number: int, seq: int) -> None:
        """It begins at once, and may have ended when this returns. `seq`: of the commit that its start is in."""
        attempt = self._by_key[key] = _Attempt(key, number)
        attempt.task = begin(self._run(attempt, launcher, seq), f"{self._run_id}:{key[1]}")

    def refuse(self, key: NodeKey, number: int) -> None:
        """Its start is recorded, and it is cancelled before it begins."""
        self.arrivals.add(f.NodeErred(self._now_ms(), key, number, CANCELLED))

    def cancel(self, key: NodeKey) -> None:
        """Its result comes all the same, at the latest after the grace."""
        attempt = self._by_key.get(key)
        if attempt is None or attempt.cancelled:  # a second time would interrupt its clean-up
            return
        attempt.cancelled = True
        attempt.task.cancel()
        asyncio.get_running_loop().call_later(CANCEL_GRACE_S, self._abandon, attempt)

    def cancel_all(self) -> None:
        """Their results are not needed any more."""
        for attempt in self._by_key.values():
            attempt.task.cancel()
        self._by_key.clear()

    def rekey(self, translate: Callable[[NodeKey], NodeKey]) -> None:
        """The run follows another plan, where the same nodes have other keys."""
        for attempt in self._by_key.values():
            attempt.key = translate(attempt.key)
        self._by_key = {attempt.key: attempt for attempt in self._by_key.values()}
        self.arrivals.rekey(translate)

    async def _run(self, attempt: _Attempt, launcher: Launcher, seq: int) -> None:
        key, number = attempt.key, attempt.number  # of the launcher's plan
        try:
            if not self._turns.take():
                await self._turns.wait()
        except asyncio.CancelledError:
            self._remove(attempt)
            self.refuse(attempt.key, number)
            return
        result = await launcher.run(
            key, number, seq, lambda text, stream: self.arrivals.add_log((attempt.key, number, text, stream))
        )
        fact: Any = result.fact  # of an attempt: it has a key
        if attempt.key != key:
            fact = replace(fact, key=attempt.key)
        self._remove(attempt)
        self.arrivals.add(fact, result.payload)

    def _abandon(self, attempt: _Attempt) -> None:
        if self._by_key.get(attempt.key) is not attempt:
            return
        self._remove(attempt)
        error = ErrorInfo("cancelled", f"the handler did not stop within {CANCEL_GRACE_S:g} s and was abandoned")
        self.arrivals.add(f.NodeErred(self._now_ms(), attempt.key, attempt.number, error))

    def _remove(self, attempt: _Attempt) -> None:
        if self._by_key.get(attempt.key) is attempt:  # else it was abandoned, and this is the one that followed it
            del self._by_key[attempt.key]


def begin(work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
    """A task that begins at once, in the callback that makes it, and not a pass of the event loop later.

    What the coroutine sees is the same: it runs in a task of its own from its first step, so timeouts, cancellation and
    `current_task` work as everywhere. One that never waits has ended when `begin` returns.
    """
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, name=name, eager_start=True)
    first: list[tuple[Callable[[], Any], Context]] = []

    def take(step: Callable[[], Any], *, context: Context) -> None:
        first.append((step, context))

    # Before 3.12 a task cannot begin at once: it asks the loop to call its first step. That is caught here, for this
    # task alone: nothing in between could ask as well.
    loop.call_soon = take  # type: ignore[method-assign, assignment]
    try:
        task = loop.create_task(work, name=name)
    finally:
        del loop.call_soon
    maker = asyncio.current_task()
    if maker is not None:
        asyncio.tasks._leave_task(loop, maker)
    try:
        for step, context in first:
            context.run(step)
    finally:
        if maker is not None:
            asyncio.tasks._enter_task(loop, maker)
    return task
