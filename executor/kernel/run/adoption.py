"""A run that the process which creates it executes: it is created, owned and begun in one commit.

Its first turn is decided before it exists. Nothing has happened until the commit; if that finds that the run is there
already (a repeated idempotency key), or fails, the turn is dropped.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from executor.errors import StoreError
from executor.kernel.run.awaited import AwaitedRun
from executor.kernel.store.patience import patience, patience_s
from executor.kernel.store.run_rows import Append, Appended, NewRun, RunRow, new_row
from executor.kernel.store.topics.store import Store

# Passes of the event loop after which the answer to a client is on its way: a first block that holds the loop does not
# delay it.
REPLY_PASSES = 3


class NotAdopted(Exception):
    """The run is not this process's: it was there already, could not be created, or is created in the usual way."""


class Adoption:
    """`row` as it is when it is owned. Its first write waits for a lock as long as the code that makes this object
    would. `watched`: of a caller who waits for the end of the run."""

    def __init__(self, store: Store, new: NewRun, owner: str, lease_ms: int, watched: AwaitedRun | None = None) -> None:
        self.new = new
        self.watched = watched
        self.row = replace(
            new_row(new, None),
            status="running",
            epoch=1,
            stalls=1,
            lease_owner=owner,
            lease_until_ms=new.now_ms + lease_ms,
            started_at_ms=new.now_ms,
        )
        if watched is not None:
            watched.begin(self.row, new)
        self._store = store
        self._owner = owner
        self._lease_ms = lease_ms
        self._patience_s = patience_s()
        self._made: asyncio.Future[tuple[RunRow, bool]] = asyncio.get_running_loop().create_future()
        self.is_over = False  # it is known what became of it

    @staticmethod
    def suits(new: NewRun) -> bool:
        """Returns True for a run that starts from its beginning."""
        return len(new.records) == 1 and not (new.sources or new.waits or new.signals or new.blobs or new.parent_run_id)

    async def made(self) -> tuple[RunRow, bool]:
        """Return or raise what `Store.create_run` does. For one caller, which may be cancelled; the run is created all
        the same."""
        return await self._made

    def _settle(self, made: tuple[RunRow, bool] | BaseException) -> None:
        self.is_over = True
        if self._made.done():  # the caller has left
            return
        if isinstance(made, BaseException):
            self._made.set_exception(made)
            self._made.exception()  # the caller may leave before it looks: asyncio must not report the error as lost
        else:
            self._made.set_result(made)

    async def append(self, first: Append) -> Appended:
        """Make the first append of its loop. Raises NotAdopted."""
        if first.children:
            raise NotAdopted
        try:
            if self._patience_s is None:
                stored, created = await self._store.begin_run(self.new, self._owner, self._lease_ms, first)
            else:
                with patience(self._patience_s):
                    stored, created = await self._store.begin_run(self.new, self._owner, self._lease_ms, first)
        except Exception as error:
            self._settle(error)
            raise NotAdopted from error
        self._settle((stored, created))
        if not created:
            raise NotAdopted
        self.new = replace(self.new, plan=b"", document=None)  # both are on disk; this lives as long as the run
        if self.watched is None and not first.finished:  # else there is no answer before the end, or nothing to hold
            for _ in range(REPLY_PASSES):
                await asyncio.sleep(0)
        return Appended(first.expected_seq + len(first.records), 0)

    async def end(self) -> bool:
        """Nothing was written, and nothing will be here: create it for others to claim. True: they may."""
        if self.is_over:
            return False
        try:
            stored, created = await self._store.create_run(self.new)
        except Exception as error:
            self._settle(error)
            return False
        self._settle((stored, created))
        return created

    def refuse(self) -> None:
        """Fail the caller, since the process ends. The run may have been created."""
        if not self.is_over:
            self._settle(StoreError("the process ends; the run may have been created", code="store_closed"))
