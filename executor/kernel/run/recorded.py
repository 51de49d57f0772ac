"""The recorded ends of the steps of a node, in one pass over the journal: each is read once, in pages."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from executor.errors import BlockError
from executor.kernel.core.events import ErrorInfo
from executor.kernel.journal.codec import data_of
from executor.kernel.journal.reader import Journals, Records, output_of
from executor.kernel.run.step_work import Ended
from executor.kernel.store.patience import with_retries
from executor.kernel.store.run_rows import Record

T = TypeVar("T")
log = logging.getLogger("weft.durable")


class First(NamedTuple):
    """The first event of a journal. `run`: the run that wrote it, also in a copy. `by`: who started it."""

    run: str
    at_ms: int
    by: str | None


async def first_of(store: Journals, run: str) -> First:
    async for record in Records(store, run, upto=1):
        data = data_of(record)
        return First(data["run"], record.at_ms, data.get("by"))
    raise BlockError(f"the journal of run {run} is empty", code="step_missing", retryable=False)


async def event_of(store: Journals, run: str, seq: int) -> Record:
    """Raises BlockError: there is no such event."""
    async for record in Records(store, run, after=seq - 1, upto=seq):
        return record
    raise BlockError(f"event {seq} of run {run} is missing", code="step_missing", retryable=False)


class Recorded:
    """The ends of steps of `key`, a text of compiler.keys, up to event `upto`. Large outputs are read when they are
    asked for."""

    def __init__(self, store: Journals, run: str, key: str, upto: int) -> None:
        self._store = store
        self._run = run
        node, _, path = key.partition("@")
        self._node = node
        types = ("step.finished",)
        self._path = path
        self._records = Records(store, run, node=node, path=path or None, types=types, upto=upto)
        self._passed: dict[int, Record] = {}  # read, and not asked for yet

    def ready(self, seq: int) -> Ended | None:
        """Return the end that is event `seq` if it was read, as `at` does."""
        record = self._passed.get(seq)
        if record is None or (record.output is None and b'"blob"' in (record.data or b"")):
            return None
        return _ended(self._passed.pop(seq), record.output)

    async def since(self, seq: int) -> Ended:
        """Return the end that is event `seq`, after those of earlier entries. Raises BlockError."""
        return await self._retried(lambda: self._since(seq), "a step")

    async def _since(self, seq: int) -> Ended:
        record = await event_of(self._store, self._run, seq)
        return _ended(record, await output_of(self._store, record))

    async def opened(self, n: int, after: int) -> dict[str, Any] | None:
        """Return the id of the wait that is step `n`, which opened after event `after`, and its child run;
        None if it did not open. Raises BlockError."""
        return await self._retried(lambda: self._opened(n, after), "a wait")

    async def _opened(self, n: int, after: int) -> dict[str, Any] | None:
        types = ("wait.opened",)
        async for record in Records(
            self._store, self._run, node=self._node, path=self._path or None, types=types, after=after
        ):
            data = data_of(record)
            if (record.path or "") == self._path and data.get("step") == n:
                return {"wait": data["wait"], **({"child": data["child"]} if "child" in data else {})}
        return None

    async def at(self, seq: int) -> Ended:
        """Return the end that is event `seq`. Each can be asked for once. Raises BlockError: the database cannot be
        read."""
        return await self._retried(lambda: self._at(seq), "a step")

    async def _retried(self, read: Callable[[], Awaitable[T]], what: str) -> T:
        what = f"{what} of run {self._run}"
        return await with_retries(read, what=what, failed="the database could not be read", log=log)

    async def _at(self, seq: int) -> Ended:
        while seq not in self._passed:
            record = await anext(self._records, None)
            if record is None:
                raise BlockError(f"event {seq} of run {self._run} is missing", code="step_missing", retryable=False)
            for one in (record, *self._records.rest()):
                if (one.path or "") == self._path:
                    self._passed[one.seq] = one
        output = await output_of(self._store, self._passed[seq])
        return _ended(self._passed.pop(seq), output)


class RecordedSince(Recorded):
    """Each end is read by itself: only few came after a function left, and a handler asks for several at a time."""

    async def at(self, seq: int) -> Ended:
        return await self.since(seq)


class BothEnds(Recorded):
    """The ends of the steps of the node that undoes another, and those that the other had until event `seq`."""

    def __init__(self, store: Journals, run: str, key: str, upto: int, seq: int, before: Recorded) -> None:
        super().__init__(store, run, key, upto)
        self._seq = seq
        self._before = before

    def ready(self, seq: int) -> Ended | None:
        return None

    async def at(self, seq: int) -> Ended:
        return await (self._before.at(seq) if seq < self._seq else super().at(seq))


def _ended(record: Record, output: bytes | None) -> Ended:
    data = data_of(record)
    error = data.get("error")
    info = None if error is None else msgspec.convert(error, ErrorInfo)
    return Ended(data.get("ended_ms", record.at_ms), output, info)
