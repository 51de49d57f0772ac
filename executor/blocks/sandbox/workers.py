"""Threads that own one guest each, the queue in which their jobs wait, and the hop between them and the event loop.

Not a ThreadPoolExecutor: its two futures per call take 30 us more than this, which is much beside one expression. The
queue serves its owners in turn, so that one with many jobs does not keep the others waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

from executor.kernel.process.threads import deliver

if TYPE_CHECKING:
    from executor.blocks.sandbox.guest import Guest


T = TypeVar("T")


class FairQueue(Generic[T]):
    """A queue between threads. Owners that have jobs take turns; of one owner at most `most` jobs are out at the same
    time, and its own jobs keep their order. Costs the same however many jobs and owners there are."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._jobs: dict[str, deque[T]] = {}  # by owner: those with a job that may be taken; the next one first
        self._held_back: dict[str, deque[T]] = {}  # by owner: those with as many jobs out as allowed
        self._out: Counter[str] = Counter()
        self._closed = False

    def put(self, owner: str, job: T) -> None:
        with self._changed:
            queues = self._jobs if self._out[owner] < self._most else self._held_back
            queues.setdefault(owner, deque()).append(job)
            self._changed.notify()

    def next(self) -> tuple[str, T] | None:
        """Wait for the next job, and return it with its owner, or None if the queue is closed and empty."""
        with self._changed:
            while not self._jobs:
                if self._closed and not self._held_back:
                    return None
                self._changed.wait()
            owner = next(iter(self._jobs))
            queue = self._jobs.pop(owner)
            job = queue.popleft()
            self._out[owner] += 1
            if queue:  # after all others
                (self._jobs if self._out[owner] < self._most else self._held_back)[owner] = queue
            return owner, job

    def done(self, owner: str) -> None:
        with self._changed:
            self._out[owner] -= 1
            if not self._out[owner]:
                del self._out[owner]
            queue = self._held_back.pop(owner, None)
            if queue is not None:
                self._jobs[owner] = queue
                self._changed.notify()
            elif self._closed:
                self._changed.notify_all()

    def close(self) -> None:
        """Close the queue. Queued jobs are still handed out; then `next` returns None to all."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


Waiting = Callable[[], AbstractContextManager[Any]]


class _Job(Struct):
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    work: Callable[[Guest], Any]
    begun: asyncio.Future[None] | None  # for a caller that waits for the start


class Workers:
    """`threads` start at the first use; at most `threads_each` of them work for one owner. Owners take turns, the jobs
    of one are taken in order, and those whose caller has gone are dropped."""

    def __init__(self, name: str, threads: int, threads_each: int, memory_bytes: int, output_bytes: int) -> None:
        self._name = name
        self._count = threads
        self._memory_bytes = memory_bytes
        self._output_bytes = output_bytes
        self._jobs: FairQueue[_Job] = FairQueue(threads_each)
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    async def run(self, work: Callable[[Guest], T], owner: str = "", waiting: Waiting | None = None) -> T:
        """Call `work` in a worker thread, with its guest; `waiting` is entered until a thread takes it. Raises its
        errors, and RuntimeError after `close`."""
        if not self._threads:
            self._start()
        if self._closed:
            raise RuntimeError("the sandbox is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        begun: asyncio.Future[None] | None = None if waiting is None else loop.create_future()
        self._jobs.put(owner, _Job(loop, future, work, begun))
        if waiting is not None and begun is not None:
            try:
                with waiting():
                    await begun
            except asyncio.CancelledError:
                future.cancel()
                raise
        return await future

    def close(self) -> None:
        """Wait for the jobs that are queued or running, then end the threads and free their guests."""
        with self._starting:
            if not self._closed:
                self._closed = True
                self._jobs.close()
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        with self._starting:
            if self._threads or self._closed:
                return
            for number in range(self._count):
                thread = threading.Thread(target=self._work, name=f"{self._name}-{number}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _work(self) -> None:
        guest: Guest | None = None
        while (taken := self._jobs.next()) is not None:
            owner, job = taken
            result, failure = None, None
            if not job.future.cancelled():
                try:
                    if job.begun is not None:
                        job.loop.call_soon_threadsafe(deliver, job.begun, None, None)
                    if guest is None:
                        from executor.blocks.sandbox.guest import (
                            Guest,  # and with it wasmtime, for the first that needs it
                        )

                        guest = Guest(memory_bytes=self._memory_bytes, output_bytes=self._output_bytes)
                    result = job.work(guest)
                except Exception as error:
                    failure = error
                with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: the caller is gone
                    job.loop.call_soon_threadsafe(deliver, job.future, result, failure)
            self._jobs.done(owner)
            del taken, owner, job, result, failure  # an idle worker keeps no values alive
        if guest is not None:
            guest.close()
