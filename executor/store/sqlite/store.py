"""The store on one SQLite file. The contract is in `executor.store.contract`.

Writes go to one thread and are committed in groups (`writer.py`); reads go to read-only connections (`readers.py`),
so a read sees exactly what is committed and never waits. One process per file, many coroutines of one event loop.

Each topic has a file with its SQL and its functions. A function that writes has a transaction as its first parameter, a
function that reads the readers; below, `write` and `read` make methods of them.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from executor.store.rows import NotificationRow, Orphans
from executor.store.sqlite import (
    cache,
    checkpoints,
    contents,
    drafts,
    families,
    inbox,
    journal,
    leases,
    outbox,
    runs,
    schedules,
    sessions,
    upkeep,
    waits,
    webhooks,
    workflows,
)
from executor.store.sqlite.connection import Connect, Database, FaultPoint, Tx, plain_connect
from executor.store.sqlite.readers import PING_READ, Readers, plain_read_only
from executor.store.sqlite.writer import Retry, Stats, Writer, ping

P = ParamSpec("P")
T = TypeVar("T")

READER_BUSY_MS = 5_000  # readers meet a lock only while a log is recovered or deleted


def write(change: Callable[Concatenate[Tx, P], T]) -> Callable[Concatenate[SQLiteStore, P], Coroutine[Any, Any, T]]:
    """The method that has `change` committed, with its parameters except the transaction."""
    signature = inspect.signature(change)
    assert all(each.kind is each.POSITIONAL_OR_KEYWORD for each in signature.parameters.values()), change

    async def method(store: SQLiteStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if kwargs:  # the writer is handed positional arguments only
            bound = signature.bind(None, *args, **kwargs)
            bound.apply_defaults()
            return await store._writer.submit(change, *bound.args[1:])  # type: ignore[call-arg]  # bound against its signature
        return await store._writer.submit(change, *args, **kwargs)

    method.__name__ = method.__qualname__ = change.__name__
    return method


def read(
    query: Callable[Concatenate[Readers, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SQLiteStore, P], Coroutine[Any, Any, T]]:
    """The method that runs `query`, with its parameters except the readers."""

    def method(store: SQLiteStore, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        return query(store._readers, *args, **kwargs)

    method.__name__ = method.__qualname__ = query.__name__
    return method


class SQLiteStore:
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

    def stop_retrying(self) -> None:
        self._writer.stop_retrying()

    def check_identity(self) -> None:
        self._database.check_file()

    async def ping_read(self) -> None:
        await self._readers.all(PING_READ)

    async def ping(self) -> None:
        await self.ping_read()
        await self._writer.submit(ping)

    # plans, documents, blobs
    get_plan = read(contents.get_plan)
    put_plan = write(contents.put_plan)
    get_document = read(contents.get_document)
    get_blob = read(contents.get_blob)

    # workflows
    put_workflow = write(workflows.put_workflow)
    activate_workflow = write(workflows.activate_workflow)
    get_workflow = read(workflows.get_workflow)
    list_workflows = read(workflows.list_workflows)
    get_head = read(workflows.get_head)
    list_heads = read(workflows.list_heads)
    list_versions = read(workflows.list_versions)
    delete_workflow = write(workflows.delete_workflow)

    # drafts
    put_draft = write(drafts.put_draft)
    get_draft = read(drafts.get_draft)
    list_drafts = read(drafts.list_drafts)
    last_runs = read(drafts.last_runs)
    rebase_draft = write(drafts.rebase_draft)
    delete_draft = write(drafts.delete_draft)

    # runs
    create_run = write(runs.create_run)
    begin_run = write(leases.begin_run)
    get_run = read(runs.get_run)
    last_seqs = read(runs.last_seqs)
    list_runs = read(runs.list_runs)
    count_runs = read(runs.count_runs)
    list_inputs = read(runs.list_inputs)
    output_bytes = read(runs.output_bytes)

    # leases
    claim = write(leases.claim)
    renew = write(leases.renew)
    release = write(leases.release)
    next_due = read(leases.next_due)
    repair_clock_skew = write(leases.repair_clock_skew)

    # the journal
    append = write(journal.append)
    read_events = read(journal.read_events)
    find_events = read(journal.find_events)

    # messages and signals
    read_inbox = read(inbox.read_inbox)
    post_message = write(inbox.post_message)
    cancel_run = write(inbox.cancel_run)
    post_signal = write(inbox.post_signal)
    unconsumed_signals = read(inbox.unconsumed_signals)
    list_signals = read(inbox.list_signals)

    # waits
    find_wait = read(waits.find_wait)
    get_wait = read(waits.get_wait)
    list_waits = read(waits.list_waits)
    count_waits = read(waits.count_waits)
    list_waits_below = read(waits.list_waits_below)
    answer_wait = write(waits.answer_wait)
    answer_and_claim = write(leases.answer_and_claim)
    cancel_wait = write(waits.cancel_wait)
    expire_wait = write(waits.expire_wait)

    # child runs and families
    get_family = read(families.get_family)
    list_children = read(families.list_children)
    list_ancestors = read(families.list_ancestors)
    count_active_below = read(families.count_active_below)

    # notifications about waits
    settle_notification = write(outbox.settle_notification)
    next_notification_ms = read(outbox.next_notification_ms)
    list_notifications = read(outbox.list_notifications)

    async def claim_notifications(self, now_ms: int, lease_ms: int, limit: int) -> list[NotificationRow]:
        """Most of the time nothing is due: a reader finds that out without the writer."""
        if not await outbox.is_any_due(self._readers, now_ms):
            return []
        return await self._writer.submit(outbox.claim_notifications, now_ms, lease_ms, limit)

    # cached results
    find_cached = read(cache.find_cached)
    clear_cache = write(cache.clear_cache)
    delete_expired_cache = write(cache.delete_expired_cache)

    # checkpoints
    put_checkpoint = write(checkpoints.put_checkpoint)
    get_checkpoint = read(checkpoints.get_checkpoint)

    # schedules
    put_schedule = write(schedules.put_schedule)
    get_schedule = read(schedules.get_schedule)
    list_schedules = read(schedules.list_schedules)
    switch_schedule = write(schedules.switch_schedule)
    delete_schedule = write(schedules.delete_schedule)
    due_schedules = read(schedules.due_schedules)
    next_schedule_ms = read(schedules.next_schedule_ms)
    fire = write(schedules.fire)
    list_fires = read(schedules.list_fires)

    # webhooks
    put_webhook = write(webhooks.put_webhook)
    get_webhook = read(webhooks.get_webhook)
    list_webhooks = read(webhooks.list_webhooks)
    switch_webhook = write(webhooks.switch_webhook)
    rotate_webhook = write(webhooks.rotate_webhook)
    delete_webhook = write(webhooks.delete_webhook)
    deliver = write(webhooks.deliver)
    list_deliveries = read(webhooks.list_deliveries)
    add_refusals = write(webhooks.add_refusals)
    list_refusals = read(webhooks.list_refusals)

    # upkeep
    find_removable = read(upkeep.find_removable)
    delete_runs = write(upkeep.delete_runs)
    count_orphans = read(upkeep.count_orphans)

    async def delete_orphans(self, unused_since_ms: int, limit: int = 1000) -> Orphans:
        """Found by a reader, so that the writer only looks at what may go."""
        found = await upkeep.find_orphans(self._readers, unused_since_ms, limit)
        return await self._writer.submit(upkeep.delete_orphans, found, unused_since_ms)

    # sessions
    put_session = write(sessions.put_session)
    get_session = read(sessions.get_session)
    see_session = write(sessions.see_session)
    delete_session = write(sessions.delete_session)
    delete_sessions = write(sessions.delete_sessions)
