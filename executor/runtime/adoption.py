"""A run that the process which creates it executes: it is created, owned and begun in one commit.

Its first turn is decided before it exists. Nothing has happened until the commit; if that finds that the run is there
already (a repeated idempotency key), or fails, the turn is dropped.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from executor.errors import StoreError
from executor.store.contract import Store
from executor.store.patience import patience, patience_s
from executor.store.rows import Append, Appended, NewRun, RunRow
from executor.store.rules import new_row

# Of the event loop, until the answer to a client is on its way: a first block that holds the loop does not hold that.
REPLY_PASSES = 3


class NotAdopted(Exception):
    """The run is not this process's: it was there already, could not be created, or is created in the usual way."""


class Adoption:
    """`row` as it is when it is owned. Its first write waits for a lock as long as the code that makes this object
    would."""

    def __init__(self, store: Store, new: NewRun, owner: str, lease_ms: int) -> None:
        self.new = new
        self.row = replace(
            new_row(new, None),
            status="running",
            epoch=1,
            stalls=1,
            lease_owner=owner,
            lease_until_ms=new.now_ms + lease_ms,
            started_at_ms=new.now_ms,
        )
        self._store = store
        self._owner = owner
        self._lease_ms = lease_ms
        self._patience_s = patience_s()
        self._made: asyncio.Future[tuple[RunRow, bool]] = asyncio.get_running_loop().create_future()
        self._made.add_done_callback(_retrieve)

    @staticmethod
    def suits(new: NewRun) -> bool:
        """Whether it is a run from its beginning."""
        return len(new.records) == 1 and not (new.sources or new.waits or new.signals or new.blobs or new.parent_run_id)

    async def made(self) -> tuple[RunRow, bool]:
        """What `Store.create_run` returns, or raises. Who waits may leave; the run is created all the same."""
        return await asyncio.shield(self._made)

    @property
    def is_over(self) -> bool:
        """It is known what became of it."""
        return self._made.done()

    async def append(self, first: Append) -> Appended:
        """The first append of its loop. Raises NotAdopted."""
        if first.children:
            raise NotAdopted
        try:
            if self._patience_s is None:
                stored, created = await self._store.begin_run(self.new, self._owner, self._lease_ms, first)
            else:
                with patience(self._patience_s):
                    stored, created = await self._store.begin_run(self.new, self._owner, self._lease_ms, first)
        except Exception as error:
            self._made.set_exception(error)
            raise NotAdopted from error
        self._made.set_result((stored, created))
        if not created:
            raise NotAdopted
        for _ in range(REPLY_PASSES):
            await asyncio.sleep(0)
        return Appended(first.expected_seq + len(first.records), 0)

    async def end(self) -> bool:
        """Nothing was written, and nothing will be here: create it for others to claim. True: they may."""
        if self._made.done():
            return False
        try:
            stored, created = await self._store.create_run(self.new)
        except Exception as error:
            self._made.set_exception(error)
            return False
        self._made.set_result((stored, created))
        return created

    def refuse(self) -> None:
        """The process ends."""
        if not self._made.done():
            self._made.set_exception(StoreError("the process ends; the run may have been created", code="store_closed"))


def _retrieve(made: asyncio.Future[tuple[RunRow, bool]]) -> None:
    """Who waited may have left: asyncio must not report the error as lost."""
    if not made.cancelled():
        made.exception()
