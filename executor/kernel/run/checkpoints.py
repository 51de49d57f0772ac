"""Progress that an attempt keeps for the next one: implements `Context.checkpoint` and `Context.last_checkpoint`.

A checkpoint is a row beside the journal: it decides nothing, so it is no event. Only the owner of the run can write it,
and only for an attempt that is under way: an abandoned thread must not overwrite what a later attempt keeps.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import orjson

from executor.errors import BlockError
from executor.kernel.process.clock import Clock
from executor.kernel.store.patience import with_retries
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.snapshots import CheckpointRow
from executor.kernel.store.topics.store import Store
from executor.kernel.values.payload import encode as encode_payload
from executor.kernel.values.redact import Redactor

T = TypeVar("T")
log = logging.getLogger("weft.checkpoints")

Begun = Callable[[], Awaitable[None]]

SIZE_MAX_BYTES: Final = 1024 * 1024


class Checkpoints:
    """The checkpoints of one run under one lease. `row` is the run as it was claimed."""

    def __init__(self, store: Store, row: RunRow, clock: Clock, redactor: Redactor) -> None:
        self._store = store
        self._run_id = row.id
        self._epoch = row.epoch
        self._clock = clock
        self._redactor = redactor

    async def last(self, key: str) -> Any:
        """Return the last checkpoint of this node key, or None. Raises BlockError if the database cannot be read."""
        row = await self.with_retries(lambda: self._store.get_checkpoint(self._run_id, key))
        return None if row is None else orjson.loads(row.data)

    def writer(self, key: str, attempt: int, begun: Begun | None = None) -> CheckpointWriter:
        """Return the writer of an attempt. `begun` waits until the start of the attempt is on disk, or is None if it is
        already."""
        return CheckpointWriter(self, key, attempt, begun)

    def encode(self, value: Any) -> bytes:
        """JSON without secrets. Raises BlockError: it is none, or too large."""
        data = self._redactor.redact_json(encode_payload(value))
        if len(data) > SIZE_MAX_BYTES:
            raise BlockError(
                f"the checkpoint has {len(data)} bytes; the limit is {SIZE_MAX_BYTES}",
                code="checkpoint_too_large",
                retryable=False,
                hint="store the position (a number, the name of a file), not all results so far",
            )
        return data

    async def put(self, key: str, attempt: int, data: bytes) -> None:
        """Store the checkpoint in one try. Raises Fenced, StoreError."""
        row = CheckpointRow(self._run_id, key, attempt, self._clock.now_ms(), data)
        await self._store.put_checkpoint(self._epoch, row)

    async def with_retries(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Both can be asked for again: writing a checkpoint twice is writing it once."""
        what, failed = f"a checkpoint of run {self._run_id}", "the database could not be used for a checkpoint"
        return await with_retries(ask, what=what, failed=failed, log=log)


class CheckpointWriter:
    """Writes the checkpoints of one attempt. Made in the event loop that the attempt runs in."""

    __slots__ = ("_attempt", "_begun", "_checkpoints", "_key", "_loop", "_over")

    def __init__(self, checkpoints: Checkpoints, key: str, attempt: int, begun: Begun | None) -> None:
        self._checkpoints = checkpoints
        self._key = key
        self._attempt = attempt
        self._begun = begun
        self._loop = asyncio.get_running_loop()
        self._over = False

    async def keep(self, value: Any) -> None:
        """See Context.checkpoint."""
        data = self._checkpoints.encode(value)
        if self._begun is not None:
            await self._begun()
        await self._checkpoints.with_retries(lambda: self._put(data))

    def keep_from_thread(self, value: Any) -> None:
        """See Context.checkpoint_from_thread."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:  # it would wait for itself
            raise RuntimeError("this is the event loop: use `await ctx.checkpoint(value)` here")
        asyncio.run_coroutine_threadsafe(self.keep(value), self._loop).result()

    def end(self) -> None:
        """Note that the attempt is over."""
        self._over = True

    async def _put(self, data: bytes) -> None:
        if self._over:
            message = f"attempt {self._attempt} of {self._key} has ended: its checkpoint was not stored"
            raise BlockError(message, code="attempt_over", retryable=False)
        await self._checkpoints.put(self._key, self._attempt, data)
