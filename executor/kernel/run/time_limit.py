"""The time limit of one attempt. It does not run while the attempt waits for what this server has too little of: such a
wait has nothing to do with the other side, and an attempt that ends for it would make the queue longer."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")

LOOKS_PER_HEARTBEAT: Final = 4  # so that silence is noticed late by a quarter of its limit at most


class OutOfTime(TimeoutError):
    """The time is over, and `queued_s` of it went by in a queue."""

    def __init__(self, queued_s: float) -> None:
        super().__init__()
        self.queued_s = queued_s


class NoHeartbeat(TimeoutError):
    """The handler sent no heartbeat in time."""

    def __init__(self, every_s: float) -> None:
        super().__init__(f"the block sent no heartbeat for {every_s:g} s")


class TimeLimit:
    """`around` is called once. `heartbeat_s`: the longest time without a heartbeat, 0 for any. It is `asyncio.timeout`
    for one handler, at a third of its price."""

    def __init__(self, seconds: float, heartbeat_s: float, loop: asyncio.AbstractEventLoop) -> None:
        self._left_s = seconds
        self._heartbeat_s = heartbeat_s
        self._heard_at_s = 0.0
        self._beaten = False
        self._heart: asyncio.TimerHandle | None = None
        self._silent = False
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Any] | None = None
        self._waits = 0
        self._queued_s = 0.0
        self._late = False

    def around(self, steps: Generator[Any, Any, T], waits_for: Any, began_s: float) -> Generator[Any, Any, T]:
        """Limit a handler that began at `began_s` and now waits for this. Raises TimeoutError: NoHeartbeat, and
        OutOfTime if a second of it or more went by in a queue."""
        task = self._task = asyncio.current_task()
        assert task is not None
        cancelling = task.cancelling()
        self._left_s -= self._loop.time() - began_s
        self._heard_at_s = self._loop.time() if self._beaten else began_s
        if not self._waits:
            self._start()
        try:
            return (yield from _rest(steps, waits_for))
        except asyncio.CancelledError as cancelled:
            if self._late and task.cancelling() <= cancelling + 1:  # it was not cancelled from outside as well
                raise self._why() from cancelled
            raise
        finally:
            self._stop()
            self._task = None
            if self._late:
                task.uncancel()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """No time passes inside. Parts of a handler that run side by side may each be waiting."""
        self._waits += 1
        if self._waits == 1 and self._timer is not None:
            self._stop()
            self._left_s = self._timer.when() - self._loop.time()
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits and self._task is not None and not self._late:
                self._heard_at_s = self._loop.time()
                self._start()

    @contextmanager
    def queueing(self) -> Iterator[None]:
        """Count the time inside as queueing. The error of an attempt that reaches its limit names that time."""
        began = self._loop.time()
        try:
            yield
        finally:
            self._queued_s += self._loop.time() - began

    def heartbeat(self) -> None:
        """The handler is alive; from any thread. It only leaves a mark: some loops do not know the time in threads."""
        self._beaten = True

    def _start(self) -> None:
        self._timer = self._loop.call_later(max(0.0, self._left_s), self._expire)
        if self._heartbeat_s:
            self._heart = self._loop.call_later(self._heartbeat_s / LOOKS_PER_HEARTBEAT, self._listen)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._heart is not None:
            self._heart.cancel()

    def _listen(self) -> None:
        now_s = self._loop.time()
        if self._beaten:
            self._beaten, self._heard_at_s = False, now_s
        if now_s - self._heard_at_s < self._heartbeat_s:
            self._heart = self._loop.call_later(self._heartbeat_s / LOOKS_PER_HEARTBEAT, self._listen)
        elif not self._late:
            self._silent = True
            self._expire()

    def _why(self) -> TimeoutError:
        if self._silent:
            return NoHeartbeat(self._heartbeat_s)
        return OutOfTime(self._queued_s) if self._queued_s >= 1 else TimeoutError()

    def _expire(self) -> None:
        if self._late:
            return
        self._late = True
        assert self._task is not None
        self._task.cancel()


def _rest(steps: Generator[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    try:
        while True:
            try:
                sent = yield waits_for
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:
                waits_for = steps.throw(error)
            else:
                waits_for = steps.send(sent)
    except StopIteration as ended:
        return cast(T, ended.value)
