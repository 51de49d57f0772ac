"""Reading a journal: the records of one run in order, their outputs, and the plan they belong to.

Every reader of history goes through `Records`: recovery, views, forks, moves. Followers of a live run have a cursor
instead (`executor.kernel.read.cursor`), which shares pages between them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

from compiler import plan as plans
from compiler.plan import Plan
from executor.errors import RESTORE, CorruptJournal
from executor.kernel.journal.codec import data_of, keep_plan, plans_at_hand
from executor.kernel.store.run_rows import EventFilter, Record

# A page is folded without letting other tasks run. The first one is small: outputs of up to 256 KiB lie in the rows,
# and how large they are is known only then.
PAGE = 1_000
FIRST_PAGE = 100
PAGE_BYTES = 8 * 1024 * 1024  # what a page should have at most


class Journals(Protocol):
    async def read_events(self, run_id: str, after: int = 0, limit: int = 10_000) -> list[Record]: ...

    async def find_events(self, run_id: str, where: EventFilter) -> tuple[list[Record], int]: ...

    async def get_blob(self, hash: str) -> bytes | None: ...

    async def get_plan(self, hash: str) -> bytes | None: ...


class Records:
    """The records of a run in order, after `after`, up to and with `upto`: of all nodes or of one, in any scope or in
    that of `path`. An iterator and not a generator: a reader may stop anywhere and has nothing to close. Raises
    CorruptJournal at a damaged record."""

    def __init__(
        self,
        store: Journals,
        run: str,
        *,
        after: int = 0,
        upto: int | None = None,
        node: str | None = None,
        path: str | None = None,
        types: tuple[str, ...] = (),
    ) -> None:
        self._store = store
        self._run = run
        self._after = after
        self._upto = upto
        self._node = node
        self._path = path
        self._types = types
        self._limit = min(FIRST_PAGE, PAGE)
        self._page: Sequence[Record] = ()
        self._next = 0
        self._last = False  # the page in hand is the last one

    def __aiter__(self) -> Records:
        return self

    async def __anext__(self) -> Record:
        if self._next == len(self._page):
            if not self._last:
                await self._read_page()
            if self._last and self._next == len(self._page):
                raise StopAsyncIteration
        record = self._page[self._next]
        self._next += 1
        return record

    def rest(self) -> Sequence[Record]:
        """Return, and pass, what is left of the page that was read."""
        rest, self._next = self._page[self._next :], len(self._page)
        return rest

    async def _read_page(self) -> None:
        limit = self._limit
        if self._node is None and not self._types:
            if self._upto is not None:  # without a filter a record has the number of its place
                limit = min(limit, self._upto - self._after)
            page = await self._store.read_events(self._run, self._after, limit) if limit > 0 else []
        else:
            where = EventFilter(self._after, limit, node=self._node, path=self._path, types=self._types)
            page, _ = await self._store.find_events(self._run, where)
        self._last = len(page) < limit or limit <= 0
        if page:
            self._after = page[-1].seq
            size = sum(len(record.data or b"") + len(record.output or b"") for record in page)
            self._limit = max(1, min(PAGE, PAGE_BYTES * len(page) // max(size, 1)))
        if self._upto is not None and self._after >= self._upto:
            self._last = True
            page = [record for record in page if record.seq <= self._upto]
        self._page, self._next = page, 0


async def newest(store: Journals, run: str, type: str) -> Record | None:
    """Return the last event of this type."""
    page, _ = await store.find_events(run, EventFilter(types=(type,), newest=True))
    return page[0] if page else None


async def output_of(store: Journals, record: Record) -> bytes | None:
    """Return the record's output, fetched from the blobs if it was too large for the row. Raises CorruptJournal."""
    if record.output is None and record.data and b'"blob"' in record.data:
        blob = data_of(record).get("blob")
        if blob is not None:
            output = await store.get_blob(blob)
            if output is not None and hashlib.sha256(output).hexdigest() != blob:
                raise CorruptJournal(f"blob {blob} does not match its checksum", hint=RESTORE)
            return output
    return record.output


async def load_plan(store: Journals, hash: str) -> Plan:
    cached = plans_at_hand.get(hash)
    if cached is None:
        data = await store.get_plan(hash)
        if data is None:
            raise CorruptJournal(f"plan {hash} is missing")
        if hashlib.sha256(data).hexdigest() != hash:
            raise CorruptJournal(f"plan {hash} does not match its checksum", hint=RESTORE)
        cached = plans.decode(data)
        keep_plan(cached)
    return cached
