"""Threads that own one guest each, and the hop between them and the event loop.

Not a ThreadPoolExecutor: its two futures per call take 30 us more than this, which is much beside one expression.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from executor.sandbox.guest import Guest

T = TypeVar("T")
_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[Guest], Any]]


class Workers:
    """`threads` start at the first use. Jobs are taken in order; those whose caller has gone are dropped."""

    def __init__(self, name: str, threads: int, memory_bytes: int, output_bytes: int) -> None:
        self._name = name
        self._count = threads
        self._memory_bytes = memory_bytes
        self._output_bytes = output_bytes
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()
        self._closed = False

    async def run(self, work: Callable[[Guest], T]) -> T:
        """Call `work` in a worker thread, with its guest. Raises what it raises, and RuntimeError after `close`."""
        if not self._threads:
            self._start()
        if self._closed:
            raise RuntimeError("the sandbox is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((loop, future, work))
        return await future

    def close(self) -> None:
        """Wait for the jobs that are queued or running, then end the threads and free their guests."""
        with self._starting:
            if not self._closed:
                self._closed = True
                for _ in self._threads:
                    self._jobs.put(None)
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
        while (job := self._jobs.get()) is not None:
            loop, future, work = job
            if future.cancelled():
                continue
            result, failure = None, None
            try:
                if guest is None:
                    guest = Guest(memory_bytes=self._memory_bytes, output_bytes=self._output_bytes)
                result = work(guest)
            except Exception as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits
                loop.call_soon_threadsafe(_deliver, future, result, failure)
            del job, loop, future, work, result, failure  # an idle worker keeps no values alive
        if guest is not None:
            guest.close()


def _deliver(future: asyncio.Future[Any], result: Any, failure: Exception | None) -> None:
    if future.done():
        return
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(result)
