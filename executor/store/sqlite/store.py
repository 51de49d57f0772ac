"""The store on one SQLite file. The contract is in `executor.store.contract`; statements, writes, readers have their
own files.

Writes go to one thread and are committed in groups (`writer.py`); reads go to read-only connections (`readers.py`),
so a read sees exactly what is committed and never waits. One process per file, many coroutines of one event loop.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from executor.store.rows import (
    Answered,
    Append,
    Appended,
    DraftHead,
    DraftRow,
    EventFilter,
    InboxRow,
    LastRun,
    Mended,
    NewRun,
    Record,
    RunRow,
    RunStatus,
    SignalRow,
    WaitRow,
    WaitStatus,
)
from executor.store.sqlite import statements as sql
from executor.store.sqlite import writes
from executor.store.sqlite.cache import SQLiteCache
from executor.store.sqlite.checkpoints import SQLiteCheckpoints
from executor.store.sqlite.checksum import records
from executor.store.sqlite.children import SQLiteChildren
from executor.store.sqlite.connection import Connect, Database, FaultPoint, plain_connect
from executor.store.sqlite.lifecycle import SQLiteLifecycle
from executor.store.sqlite.notifications import SQLiteNotifications
from executor.store.sqlite.readers import Readers, plain_read_only
from executor.store.sqlite.sessions import SQLiteSessions
from executor.store.sqlite.triggers import SQLiteTriggers
from executor.store.sqlite.upkeep import SQLiteUpkeep
from executor.store.sqlite.workflows import SQLiteWorkflows
from executor.store.sqlite.writer import Retry, Stats, Writer

READER_BUSY_MS = 5_000  # readers meet a lock only while a log is recovered or deleted


class SQLiteStore(
    SQLiteWorkflows,
    SQLiteNotifications,
    SQLiteChildren,
    SQLiteCache,
    SQLiteCheckpoints,
    SQLiteTriggers,
    SQLiteUpkeep,
    SQLiteLifecycle,
    SQLiteSessions,
):
    """`busy_timeout_ms`: how long one try waits for another process's lock, before `retry` starts the transaction
    again. `connect`, `connect_reader` and `fault` are for tests: other ways to the raw connections, and a call at each
    named point of a commit."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        readers: int = 2,
        busy_timeout_ms: int = 500,
        retry: Retry | None = None,
        connect: Connect = plain_connect,
        connect_reader: Connect = plain_read_only,
        fault: FaultPoint = lambda name: None,
    ) -> None:
        self.path = os.fspath(path)
        self.stats = Stats()
        self._database = Database(self.path, busy_timeout_ms, connect, fault)
        self._writer = Writer(self._database, retry or Retry(), self.stats)
        self._readers = Readers(self.path, readers, READER_BUSY_MS, connect_reader)

    async def open(self) -> None:
        await self._writer.open()
        try:
            await self._readers.open()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """The writer first: the connection that closes last deletes the WAL if it may write, and growing a new one
        costs each commit half as much again."""
        try:
            await self._writer.close()
        finally:
            await self._readers.close()

    # --- plans and documents

    async def get_plan(self, hash: str) -> bytes | None:
        row = await self._readers.one(sql.PLAN, (hash,))
        return None if row is None else bytes(row[0])

    async def get_blob(self, hash: str) -> bytes | None:
        row = await self._readers.one(sql.BLOB, (hash,))
        return None if row is None else bytes(row[0])

    async def get_document(self, hash: str) -> bytes | None:
        row = await self._readers.one(sql.DOCUMENT, (hash,))
        return None if row is None else bytes(row[0])

    # --- drafts

    async def put_draft(
        self, id: str, expected_rev: int, name: str, document: bytes, now_ms: int, base_version: int | None = None
    ) -> tuple[DraftRow | None, bool]:
        return await self._writer.submit(writes.put_draft, id, expected_rev, name, document, now_ms, base_version)

    async def get_draft(self, id: str) -> DraftRow | None:
        row = await self._readers.one(sql.DRAFT_BY_ID, (id,))
        return None if row is None else DraftRow(*row)

    async def list_drafts(self, before: str | None = None, limit: int = 200) -> list[DraftHead]:
        if before is None:
            rows = await self._readers.all(sql.DRAFTS + sql.DRAFTS_PAGE, (limit,))
        else:
            rows = await self._readers.all(sql.DRAFTS + sql.DRAFTS_BEFORE + sql.DRAFTS_PAGE, (before, limit))
        return [DraftHead(*row) for row in rows]

    async def last_runs(self, drafts: Sequence[str]) -> dict[str, LastRun]:
        wanted = msgspec.json.encode(list(drafts)).decode()
        return {draft: LastRun(*run) for draft, *run in await self._readers.all(sql.LAST_RUNS_OF_DRAFTS, (wanted,))}

    async def rebase_draft(self, id: str, rev: int, workflow: str, version: int) -> DraftRow | None:
        return await self._writer.submit(writes.rebase_draft, id, rev, workflow, version)

    async def delete_draft(self, id: str, expected_rev: int | None = None) -> bool:
        return await self._writer.submit(writes.delete_draft, id, expected_rev)

    # --- runs

    async def create_run(self, run: NewRun) -> tuple[RunRow, bool]:
        return await self._writer.submit(writes.create_run, run)

    async def get_run(self, run_id: str) -> RunRow | None:
        row = await self._readers.one(sql.RUN_BY_ID, (run_id,))
        return None if row is None else RunRow(*row)

    async def last_seqs(self, run_ids: Sequence[str]) -> dict[str, int]:
        return dict(await self._readers.all(sql.LAST_SEQS, (msgspec.json.encode(run_ids).decode(),)))

    async def list_runs(
        self,
        workflow: str | None = None,
        status: str | None = None,
        before: str | None = None,
        limit: int = 50,
        draft: str | None = None,
        *,
        parent: str | None = None,
    ) -> list[RunRow]:
        where, values = _given(
            (sql.RUNS_OF_PARENT, parent),
            (sql.RUNS_OF_WORKFLOW, workflow),
            (sql.RUNS_OF_DRAFT, draft),
            (sql.RUNS_OF_STATUS, status),
            (sql.RUNS_BEFORE, before),
        )
        return [RunRow(*row) for row in await self._readers.all(sql.RUNS + where + sql.RUNS_PAGE, (*values, limit))]

    async def count_runs(self, workflow: str | None = None, draft: str | None = None) -> dict[str, int]:
        where, values = _given((sql.RUNS_OF_WORKFLOW, workflow))
        if draft is not None:
            return dict(await self._readers.all(sql.COUNT_OF_DRAFT + where + sql.BY_STATUS, (draft, *values)))
        query = sql.COUNT_ENDED + where + sql.AND_OPEN + where + sql.BY_STATUS
        return dict(await self._readers.all(query, (*values, *values)))

    async def list_inputs(
        self, workflow: str | None = None, draft: str | None = None, bytes_max: int = 65_536, limit: int = 100
    ) -> list[bytes]:
        where, values = _given((sql.RUNS_OF_WORKFLOW, workflow), (sql.RUNS_OF_DRAFT, draft))
        rows = await self._readers.all(sql.INPUTS + where + sql.RUNS_PAGE, (bytes_max, *values, limit))
        return [bytes(input) for (input,) in rows]

    async def claim(
        self, owner: str, now_ms: int, lease_ms: int, limit: int = 1, run_id: str | None = None
    ) -> list[RunRow]:
        return await self._writer.submit(writes.claim, owner, now_ms, lease_ms, limit, run_id)

    async def renew(self, owner: str, run_ids: Sequence[str], now_ms: int, lease_ms: int) -> set[str]:
        return await self._writer.submit(writes.renew, owner, run_ids, now_ms, lease_ms)

    async def output_bytes(self, run_id: str) -> int:
        row = await self._readers.one(sql.OUTPUT_BYTES, (run_id, run_id))
        return 0 if row is None else int(row[0])

    async def release(self, run_id: str, epoch: int, seq: int, next_run_at_ms: int | None, status: RunStatus) -> bool:
        return await self._writer.submit(writes.release, run_id, epoch, seq, next_run_at_ms, status)

    async def mend_clock(self, now_ms: int, lease_max_ms: int) -> Mended:
        return await self._writer.submit(writes.mend_clock, now_ms, lease_max_ms)

    async def next_due(self, now_ms: int) -> int | None:
        row = await self._readers.one(sql.NEXT_CLAIMABLE_AT)
        return None if row is None else int(row[0])

    # --- the journal

    async def append(self, append: Append) -> Appended:
        return await self._writer.submit(writes.append, append)

    async def read_events(self, run_id: str, after: int = 0, limit: int = 10_000) -> list[Record]:
        return records(run_id, await self._readers.all(sql.EVENTS_AFTER, (run_id, after, limit)))

    async def find_events(self, run_id: str, where: EventFilter) -> tuple[list[Record], int]:
        matching = ""
        values: list[str | int] = [run_id]
        if where.node is not None:
            matching += sql.EVENTS_OF_NODE
            values.append(where.node)
        if where.types:
            matching += sql.EVENTS_OF_TYPES
            values.append(msgspec.json.encode(where.types).decode())
        if where.since_ms is not None:
            matching += sql.EVENTS_SINCE
            values.append(where.since_ms)
        query = sql.COUNT_EVENTS + matching + sql.AND_EVENTS + matching + sql.EVENTS_PAGE
        counted, *page = await self._readers.all(query, (*values, *values, where.after, where.limit))
        return records(run_id, page), int(counted[0])

    # --- facts from outside

    async def read_inbox(self, run_id: str) -> list[InboxRow]:
        return [InboxRow(*row) for row in await self._readers.all(sql.INBOX, (run_id,))]

    async def post_fact(self, run_id: str, fact: bytes, now_ms: int) -> bool:
        return await self._writer.submit(writes.post_fact, run_id, fact, now_ms)

    async def cancel_run(self, run_id: str, fact: bytes, now_ms: int) -> bool:
        return await self._writer.submit(writes.cancel_run, run_id, fact, now_ms)

    async def find_wait(self, token_hash: str) -> WaitRow | None:
        row = await self._readers.one(sql.WAIT_BY_TOKEN, (token_hash,))
        return None if row is None else WaitRow(*row)

    async def get_wait(self, run_id: str, wait_id: str) -> WaitRow | None:
        row = await self._readers.one(sql.WAIT_BY_ID, (run_id, wait_id))
        return None if row is None else WaitRow(*row)

    async def list_waits(
        self,
        status: WaitStatus | None = "pending",
        run_id: str | None = None,
        limit: int = 200,
        *,
        kind: str | None = None,
        workflow: str | None = None,
        key: str | None = None,
        before: tuple[str, str] | None = None,
    ) -> list[WaitRow]:
        where, values = _given(
            (sql.WAITS_OF_STATUS, status),
            (sql.WAITS_OF_RUN, run_id),
            (sql.WAITS_OF_KEY, key),
            (sql.WAITS_OF_KIND, kind),
            (sql.WAITS_OF_WORKFLOW, workflow),
        )
        if before is not None:
            where, values = where + sql.WAITS_BEHIND, [*values, *before]
        return [WaitRow(*row) for row in await self._readers.all(sql.WAITS + where + sql.WAITS_PAGE, (*values, limit))]

    async def count_waits(
        self, run_id: str | None = None, kind: str | None = None, workflow: str | None = None
    ) -> dict[str, int]:
        where, values = _given((sql.WAITS_OF_RUN, run_id), (sql.WAITS_OF_KIND, kind), (sql.WAITS_OF_WORKFLOW, workflow))
        return dict(await self._readers.all(sql.COUNT_WAITS + where + sql.BY_STATUS, tuple(values)))

    async def answer_wait(
        self, token_hash: str, response: bytes, by: str | None, fact: bytes, now_ms: int
    ) -> Answered | None:
        return await self._writer.submit(writes.answer_wait, token_hash, response, by, fact, now_ms)

    async def cancel_wait(self, run_id: str, wait_id: str, by: str | None, fact: bytes, now_ms: int) -> Answered | None:
        return await self._writer.submit(writes.cancel_wait, run_id, wait_id, by, fact, now_ms)

    async def expire_wait(self, run_id: str, wait_id: str, fact: bytes, now_ms: int) -> bool:
        return await self._writer.submit(writes.expire_wait, run_id, wait_id, fact, now_ms)

    async def post_signal(
        self,
        run_id: str,
        name: str,
        correlation: str | None,
        payload: bytes,
        dedupe_key: str | None,
        by: str | None,
        fact: bytes,
        now_ms: int,
    ) -> tuple[SignalRow, bool] | None:
        return await self._writer.submit(
            writes.post_signal, run_id, name, correlation, payload, dedupe_key, by, fact, now_ms
        )

    async def unconsumed_signals(self, run_id: str) -> list[SignalRow]:
        return [SignalRow(*row) for row in await self._readers.all(sql.SIGNALS_UNCONSUMED, (run_id,))]

    async def list_signals(
        self,
        run_id: str,
        name: str | None = None,
        correlation: str | None = None,
        received_after_ms: int | None = None,
        limit: int = 200,
    ) -> list[SignalRow]:
        where, given = _given((sql.SIGNALS_OF_NAME, name), (sql.SIGNALS_OF_CORRELATION, correlation))
        values: list[str | int] = [run_id, *given]
        if received_after_ms is not None:
            where += sql.SIGNALS_SINCE
            values.append(received_after_ms)
        rows = await self._readers.all(sql.SIGNALS + where + sql.SIGNALS_PAGE, (*values, limit))
        return [SignalRow(*row) for row in rows]

    def hurry(self) -> None:
        self._writer.hurry()

    def check_file(self) -> None:
        self._database.check_file()

    async def ping_read(self) -> None:
        await self._readers.all(sql.PING_READ)

    async def ping(self) -> None:
        await self.ping_read()
        await self._writer.submit(writes.ping)


def _given(*conditions: tuple[str, str | None]) -> tuple[str, list[str]]:
    """The conditions that have a value, joined, and the values."""
    used = [(condition, value) for condition, value in conditions if value is not None]
    return "".join(condition for condition, _ in used), [value for _, value in used]
