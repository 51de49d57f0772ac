"""Runs that this process takes into memory with the commit of their first turn: one that it creates, and one that it
answers a question of.

The turn is decided before the run exists, or is owned. Nothing has happened until the commit; if that finds that the
run is there already (a repeated idempotency key), or is not as it was when the turn was decided, or fails, the turn is
dropped.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from executor.errors import StoreError
from executor.kernel.process.acting import carry_act, present_act
from executor.kernel.run.awaited import AwaitedRun
from executor.kernel.store.patience import patience, patience_s
from executor.kernel.store.run_rows import Append, Appended, NewRun, RunRow, new_row
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.waits import Answered

T = TypeVar("T")

# Passes of the event loop after which the answer to a client is on its way: a first block that holds the loop does not
# delay it.
REPLY_PASSES = 3


class NotAdopted(Exception):
    """The run is not this process's: it was there already, could not be created, or is created in the usual way."""


class Taken(ABC, Generic[T]):
    """A run that is taken with its first turn. `T` is what its caller gets. `watched`: of a caller who waits for the
    end of the run."""

    watched: AwaitedRun | None = None
    refusal = "the process ends, and it is unknown whether the change is on disk"

    def __init__(self, store: Store) -> None:
        self._store = store
        self._made: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.is_over = False  # it is known what became of it

    async def made(self) -> T:
        """Return or raise what the store did. For one caller, which may be cancelled; the change is made all the
        same."""
        return await self._made

    def _settle(self, made: T | BaseException) -> None:
        self.is_over = True
        if self._made.done():  # the caller has left
            return
        if isinstance(made, BaseException):
            self._made.set_exception(made)
            self._made.exception()  # the caller may leave before it looks: asyncio must not report the error as lost
        else:
            self._made.set_result(made)

    @abstractmethod
    async def append(self, first: Append) -> Appended:
        """Make the first append of its loop. Raises NotAdopted."""

    def refuse(self) -> None:
        """Fail the caller, since the process ends. The change may have been made."""
        if not self.is_over:
            self._settle(StoreError(self.refusal, code="store_closed"))


class Adoption(Taken[tuple[RunRow, bool]]):
    """A new run. `row` as it is when it is owned. Its first write waits for a lock as long as the code that makes this
    object would."""

    refusal = "the process ends; the run may have been created"

    def __init__(self, store: Store, new: NewRun, owner: str, lease_ms: int, watched: AwaitedRun | None = None) -> None:
        super().__init__(store)
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
        self._owner = owner
        self._lease_ms = lease_ms
        self._patience_s = patience_s()

    @staticmethod
    def suits(new: NewRun) -> bool:
        """Returns True for a run that starts from its beginning."""
        return len(new.records) == 1 and not (new.sources or new.waits or new.signals or new.blobs or new.parent_run_id)

    async def append(self, first: Append) -> Appended:
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


Answer = tuple[str, bytes, str | None, bytes, int]  # the first parameters of `Store.answer_wait`


class Continuation(Taken[tuple[Answered | None, RunRow | None]]):
    """A run that waits and is in no memory, which an answer continues. What came of the answer is what
    `Store.answer_wait` returns; with it goes the row of the run, if it was taken. The answer is attributed to the code
    that makes this object, and waits for a lock as long as that would."""

    refusal = "the process ends; the answer may have been recorded"

    def __init__(self, store: Store, answer: Answer, owner: str, lease_ms: int, pools: Mapping[str, str]) -> None:
        super().__init__(store)
        self.row: RunRow | None = None  # as it is when it is taken
        self._answer = answer
        self.message = answer[3]
        self._claim = owner, lease_ms, pools
        self._context, self._act = copy_context(), present_act()
        self._carried = None if self._act is None else self._context.run(carry_act, self._act)
        self.is_left = False  # answered, and left to the workers

    def row_of(self, found: RunRow, seq: int) -> RunRow:
        """Return the row that the run will have. `found` is one of before, `seq` the number of its last event."""
        owner, lease_ms, _ = self._claim
        taken = {"status": "running", "seq": seq, "epoch": found.epoch + 1, "lease_owner": owner}
        until_ms = self._answer[-1] + lease_ms
        of_claims = {"former_owner": None, "lost_together": False, "orphaned": False, "limited": False}
        self.row = replace(found, **taken, lease_until_ms=until_ms, stalls=0, **of_claims)
        return self.row

    async def append(self, first: Append) -> Appended:
        if first.children or self.row is None:
            raise NotAdopted
        answered = await self._write(self._store.answer_and_continue(*self._answer, *self._claim, first))
        appended = answered.appended if answered is not None else None
        if appended is None:
            self._leave(answered)
            raise NotAdopted
        self._settle((answered, replace(self.row, seq=appended.seq, status=first.status or "running")))
        return appended

    async def end(self) -> None:
        """Nothing was written, and nothing will be here: answer it for others to claim."""
        if not self.is_over:
            with suppress(NotAdopted):
                self._leave(await self._write(self._store.answer_wait(*self._answer)))

    def _leave(self, answered: Answered | None) -> None:
        self.is_left = answered is not None and answered.won
        self._settle((answered, None))

    async def _write(self, write: Coroutine[Any, Any, T]) -> T:
        try:
            return await asyncio.create_task(write, context=self._context)
        except Exception as error:
            self._settle(error)
            raise NotAdopted from error
        finally:
            if self._act is not None and self._carried is not None:
                self._act.is_recorded = self._carried.is_recorded
