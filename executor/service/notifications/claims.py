"""Claims of messages: the messages that this process is sending, and for how long no other process does.

A claim lasts as long as the lease of a worker and is renewed as often, so after a crash messages wait no longer than
runs. A process that stops frees its claims: messages being sent then have STOP_S to finish, and are sent again
otherwise, with the same key. A claim that is freed before anything was sent is not counted as a try.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Generic, TypeVar

from executor.errors import StoreError
from executor.kernel.process.clock import Clock
from executor.kernel.process.task import BackgroundTask
from executor.kernel.worker.worker import RENEWALS_PER_LEASE

STOP_S: Final = 2.0
AGAIN_MS: Final = 1_000  # after a database that could not be read
Row = TypeVar("Row")


class Claim(Generic[Row]):
    """`sends` is set before something is sent, and `record`, which writes the outcome, once there is one."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.sends = False
        self.record: Callable[[], Awaitable[object]] | None = None
        self.task: asyncio.Task[None] | None = None


class Claims(Generic[Row]):
    """The claims of one kind. `keep` writes until when a claim lasts, and whether it counts as a try; it returns False
    if another process has the message. `wake` is set when there is room for another one."""

    def __init__(
        self,
        name: str,
        keep: Callable[[Row, int, bool], Awaitable[bool]],
        *,
        clock: Clock,
        lease_ms: int,
        wake: asyncio.Event,
        log: logging.Logger,
    ) -> None:
        self.lease_ms = lease_ms
        self._keep = keep
        self._clock = clock
        self._wake = wake
        self._log = log
        self._held: set[Claim[Row]] = set()
        self._renewing = BackgroundTask(
            f"{name}:renew", self._renew, failed="claims of messages cannot be renewed", log=log
        )

    def __len__(self) -> int:
        return len(self._held)

    def start(self) -> None:
        self._renewing.start(after_s=self._renew_every_s)

    def begin(self, row: Row, send: Callable[[Claim[Row]], Coroutine[Any, Any, None]], name: str) -> None:
        """Send a message that was just claimed. `send` calls `settle` at its end."""
        claim = Claim(row)
        self._held.add(claim)
        claim.task = asyncio.create_task(send(claim), name=name)
        claim.task.add_done_callback(lambda task: self._ended(claim, task))

    async def settle(self, claim: Claim[Row], record: Callable[[], Awaitable[object]]) -> None:
        """Write the outcome; a write that fails is repeated later. Raises StoreError."""
        claim.record = record
        await record()
        self._held.discard(claim)

    async def stop(self, within_s: float) -> bool:
        """Let messages being sent finish, then free the claims. Returns True if there were any to free."""
        tasks = [claim.task for claim in self._held if claim.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=min(within_s, STOP_S))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._renewing.stop(), return_exceptions=True)
        held = list(self._held)
        self._held.clear()
        try:
            await asyncio.gather(*(self._leave(claim, 0) for claim in held))
        except StoreError:
            self._log.warning("claims of messages could not be released; they will expire")
        return bool(held)

    # --- the heartbeat ---

    @property
    def _renew_every_s(self) -> float:
        return self.lease_ms / 1000 / RENEWALS_PER_LEASE

    async def _renew(self) -> float:
        """Raises StoreError."""
        await asyncio.gather(*(self._renew_one(claim) for claim in list(self._held)))
        return self._renew_every_s

    async def _renew_one(self, claim: Claim[Row]) -> None:
        assert claim.task is not None
        if claim.task.done():
            await self._leave(claim, self.lease_ms if claim.sends else AGAIN_MS)
            self._held.discard(claim)
            self._wake.set()
        elif claim.record is None and not await self._keep(claim.row, self._clock.now_ms() + self.lease_ms, True):
            self._held.discard(claim)  # this process stood still, and another one sends it
            if claim.record is None:
                claim.task.cancel()

    async def _leave(self, claim: Claim[Row], pause_ms: int) -> None:
        """Write the outcome, or, without one, that the message is free after a pause. Raises StoreError."""
        if claim.record is not None:
            await claim.record()
        else:
            await self._keep(claim.row, self._clock.now_ms() + pause_ms, claim.sends)

    def _ended(self, claim: Claim[Row], task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("a message cannot be sent", exc_info=error)
        if claim in self._held:  # the database failed: the heartbeat deals with it
            self._renewing.wake.set()
        self._wake.set()
