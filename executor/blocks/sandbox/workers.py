"""Threads that own one guest each, and the hop between them and the event loop.

Not a ThreadPoolExecutor: its two futures per call take 30 us more than this, which is much beside one expression.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from executor.blocks.sandbox.fair import FairQueue
from executor.kernel.process.threads import deliver

if TYPE_CHECKING:
    from executor.blocks.sandbox.guest import Guest

T = TypeVar("T")
Waiting = Callable[[], AbstractContextManager[Any]]


@dataclass(slots=True)
class _Job:
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
        while (taken := self._jobs.take()) is not None:
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
