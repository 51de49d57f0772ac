"""Background tasks of a process: one step again and again, until it is stopped.

A step that fails is logged and called again: a server whose background task has ended would look well and do nothing.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final

from executor.errors import StoreError
from executor.kernel.process.repeated import OUTAGE

RETRY_S: Final = 1.0


class BackgroundTask:
    """A task that calls `step` again and again. `step` returns the seconds until the next call; it is called at once
    when `wake` is set. `failed` is logged when a step fails: "schedules could not be checked"."""

    def __init__(
        self,
        name: str,
        step: Callable[[], Awaitable[float]],
        *,
        failed: str,
        log: logging.Logger,
        wake: asyncio.Event | None = None,
    ) -> None:
        self.wake = wake or asyncio.Event()
        self._name = name
        self._step = step
        self._failed = failed
        self._log = log
        self._ending = False
        self._pausing = False
        self._task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Returns True between two steps, until something wakes it."""
        return self._pausing and not self.wake.is_set()

    def start(self, after_s: float = 0.0) -> None:
        assert self._task is None, "started twice"
        self._ending = False
        self._task = asyncio.create_task(self._run(after_s), name=self._name)

    async def end(self, within_s: float) -> None:
        """Let the step under way end, and call no other; waits no longer than this."""
        self._ending = True
        self.wake.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=within_s)

    async def stop(self) -> None:
        """The step under way is cancelled. One that ends at that moment may not notice: the wait_for of Python 3.11
        returns the result then, and the cancel is lost. So no other is called either."""
        task, self._task = self._task, None
        if task is not None:
            self._ending = True
            self.wake.set()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self, after_s: float) -> None:
        if after_s:
            await self._pause(after_s)
        while not self._ending:
            self.wake.clear()
            try:
                pause_s = await self._step()
            except StoreError as error:
                OUTAGE.log(self._log, error, self._failed)
                await asyncio.sleep(RETRY_S)  # whatever wakes it: the database has a second to recover
            except Exception:  # a bug of ours
                self._log.exception("%s; trying again", self._failed)
                await asyncio.sleep(RETRY_S)
            else:
                if pause_s > 0:
                    # jitter keeps the idle tasks of several processes from looking at the database together
                    await self._pause(pause_s * random.uniform(1.0, 1.05))

    async def _pause(self, seconds: float) -> None:
        self._pausing = True
        try:
            async with asyncio.timeout(seconds):
                await self.wake.wait()
        except TimeoutError:
            pass
        finally:
            self._pausing = False
