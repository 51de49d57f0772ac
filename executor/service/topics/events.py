"""The journal of a run as readers get it: in batches or one by one, stored or live; `engine.events`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Literal, overload

import orjson

from executor.kernel.journal.codec import data_of, key_of
from executor.kernel.journal.reader import output_of
from executor.kernel.read.cursor import CommitPoll, Cursor, Pages
from executor.kernel.read.find import existing_run, find_run
from executor.kernel.read.live_texts import Deltas
from executor.kernel.read.watchers import Bell
from executor.kernel.store.run_rows import EventFilter, Record
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.store import Store
from executor.live import Live, Reading, TextDelta
from executor.service.parts import Parts
from executor.service.views import RunEvent


class Events:
    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._hub = parts.hub
        self._pages = Pages(parts.store, parts.hub)
        self._poll = CommitPoll(parts.store, parts.hub)

    @overload
    def follow(
        self, run: str, after: int = 0, *, text: Literal[False] = False
    ) -> AsyncGenerator[list[Record], None]: ...

    @overload
    def follow(self, run: str, after: int = 0, *, text: Literal[True]) -> AsyncGenerator[Live, None]: ...

    def follow(self, run: str, after: int = 0, *, text: bool = False) -> AsyncGenerator[Any, None]:
        """Yield the journal after seq `after`, in batches, then live; ends after run.finished. With `text` what a
        program shows of it: text of models while it is written, calls of tools, and waits (`executor.live`)."""
        return self._live(run, after) if text else self._batches(run, after)

    async def _live(self, run: str, after: int) -> AsyncGenerator[Live, None]:
        """Raises NotFound."""
        row, bell, reading, sent = await find_run(self._store, run), Bell(), Reading(), after
        cursor = self.cursor(run, after, bell)
        deltas = None if row.status in TERMINAL else self.deltas(run, bell)
        try:
            while (records := await cursor.next_records()) is not None:
                for record in [None, *records]:
                    if record is not None:
                        for live in reading.take(await _decoded(self._store, run, record)):
                            yield live
                        sent = record.seq
                    for key, text in deltas.read(sent).items() if deltas is not None else ():
                        yield TextDelta(run, key, text)
                if not records:
                    await cursor.wait()
        finally:
            cursor.close()
            if deltas is not None:
                deltas.close()

    async def _batches(self, run: str, after: int) -> AsyncGenerator[list[Record], None]:
        cursor = self.cursor(run, after)
        try:
            while (records := await cursor.next_records()) is not None:
                if records:
                    yield records
                else:
                    await cursor.wait()
        finally:
            cursor.close()

    async def stream(self, run: str, after: int = 0) -> AsyncIterator[RunEvent]:
        """Yield the events one after the other, decoded and with outputs. Raises NotFound."""
        await find_run(self._store, run)
        async for records in self.follow(run, after):
            for record in records:
                yield await _decoded(self._store, run, record)

    def cursor(self, run: str, after: int = 0, bell: Bell | None = None) -> Cursor:
        """Return a cursor for the same, for a reader that waits for other things as well: they ring the same bell.
        Close it."""
        return Cursor(self._store, self._hub, self._pages, self._poll, run, after, bell)

    def deltas(self, run: str, bell: Bell | None = None, *, so_far: bool = False) -> Deltas:
        """Return live-only (node key, text) pieces, as handlers emit them; with `so_far` after the earlier text. Close
        it."""
        return self._hub.deltas(run, bell, so_far=so_far)

    async def find(self, run: str, where: EventFilter) -> tuple[list[Record], int]:
        """Return one page of the events that match, and the number of all that match. Raises NotFound."""
        async with existing_run(self._store, run):
            return await self._store.find_events(run, where)

    def changed(self, run: str | None) -> None:
        """Note that another process has committed something to this run, or to any if it is None."""
        self._poll.changed(run)

    async def stop(self) -> None:
        await self._poll.stop()


async def _decoded(store: Store, run: str, record: Record) -> RunEvent:
    data = data_of(record)
    output = await output_of(store, record)
    if output is not None:
        data.pop("blob", None)
        data["output"] = orjson.loads(output)
    return RunEvent(run, record.seq, record.at_ms, record.type, key_of(record), record.attempt, data)
