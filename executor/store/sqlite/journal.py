"""The journal: what the owner of a run appends, and how it is read."""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

import msgspec

from executor.errors import Fenced, Unheard
from executor.store.rows import TERMINAL, Append, Appended, EventFilter, Record
from executor.store.sqlite.cache import put_cached
from executor.store.sqlite.conditions import HEAD_OF_ID, any_of, as_list
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.contents import add_blob, add_blob_ref
from executor.store.sqlite.event_rows import EVENT, records_of, rows_of
from executor.store.sqlite.families import append_to_family, check_family
from executor.store.sqlite.inbox import (
    cancel_run,
    consume_signals,
    delete_all_messages,
    delete_messages,
    newest_message,
    post_message,
)
from executor.store.sqlite.outbox import add_notifications
from executor.store.sqlite.readers import Readers
from executor.store.sqlite.runs import create_children, move_run
from executor.store.sqlite.waits import add_waits, cancel_waits, close_waits

# The fence, in two forms. No row: fenced.
ADVANCE = f"""
UPDATE heads SET seq = :seq, stalls = 0, status = coalesce(:status, status)
 WHERE {HEAD_OF_ID} AND epoch = :epoch AND seq = :expected_seq"""
FINISH = f"""
DELETE FROM heads
 WHERE {HEAD_OF_ID} AND epoch = :epoch AND seq = :expected_seq
   AND NOT EXISTS (SELECT 1 FROM inbox AS i WHERE i.run_id = heads.id AND i.n = heads.cancel_n
                      AND i.n NOT IN {any_of(":consumed")})
RETURNING n, started_at_ms, cancel_n"""
END_DETAILS = """
UPDATE run_details SET status = :status, seq = :seq, epoch = :epoch, cancel_n = :cancel_n,
       started_at_ms = :started_at, finished_at_ms = :now,
       output = coalesce(:output, output), error = coalesce(:error, error)
 WHERE n = :n"""
SET_RESULT = """
UPDATE run_details SET output = coalesce(:output, output), error = coalesce(:error, error) WHERE id = :id"""
IS_CURRENT = f"SELECT 1 FROM heads WHERE {HEAD_OF_ID} AND epoch = :epoch AND seq = :expected_seq"
EVENTS_AFTER = f"SELECT {EVENT}, checksum FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"
# A page of matching events and, as first row, the count of all matches; one statement, so both see the same state.
# Between the two halves and at the end of the second come the conditions, then `EVENTS_PAGE`.
COUNT_EVENTS = "SELECT count(*), 0, '', NULL, '', 0, NULL, NULL, NULL FROM events WHERE run_id = ?"
AND_EVENTS = f" UNION ALL SELECT * FROM (SELECT {EVENT}, checksum FROM events WHERE run_id = ?"
EVENTS_OF_NODE = " AND node = ?"
EVENTS_OF_TYPES = " AND type IN (SELECT value FROM json_each(?))"
EVENTS_SINCE = " AND at_ms >= ?"
EVENTS_PAGE = " AND seq > ? ORDER BY seq LIMIT ?)"


def append(tx: Tx, change: Append) -> Appended:
    """See Store.append. The fence comes first: without its row nothing has been written."""
    db = tx.db
    run = change.run_id
    seq = change.expected_seq + len(change.records)
    finished = change.finished or change.status in TERMINAL
    assert not finished or change.status in TERMINAL, f"run {run} cannot finish as {change.status}"
    if change.children:
        check_family(tx, change)
    values = {
        "seq": seq,
        "id": run,
        "epoch": change.epoch,
        "expected_seq": change.expected_seq,
        "status": change.status,
        "output": change.output,
        "error": change.error,
        "now": change.now_ms,
    }
    if not finished:
        fenced = db.execute(ADVANCE, values).rowcount != 1
    else:
        ended = db.execute(FINISH, {**values, "consumed": as_list(change.consumed_inbox)}).fetchall()
        fenced = not ended
        if fenced and db.execute(IS_CURRENT, values).fetchall():
            raise Unheard(f"run {run} has not processed its cancel request", run=run)
    if fenced:
        raise Fenced(f"run {run}: epoch {change.epoch} at seq {change.expected_seq} is no longer current", run=run)
    if finished:
        ((number, started_at_ms, cancel_n),) = ended
        db.execute(END_DETAILS, {**values, "n": number, "started_at": started_at_ms, "cancel_n": cancel_n})
    elif change.output is not None or change.error is not None:
        db.execute(SET_RESULT, values)
    # Most appends have events only, and there are many of them.
    tx.events += rows_of(run, change.expected_seq, change.records)
    if change.waits:
        add_waits(tx, change.waits)
    if change.closed_waits:
        close_waits(tx, run, change.closed_waits)
    if change.consumed_inbox:
        delete_messages(tx, run, change.consumed_inbox)
    if change.consumed_signals:
        consume_signals(tx, run, change.consumed_signals)
    for blob in change.blobs:
        add_blob(tx, *blob, change.now_ms)
        add_blob_ref(tx, run, blob[0])
    if change.notifications:
        add_notifications(tx, change.notifications)
    if change.children:
        create_children(tx, run, change.children)
    for target, message in change.posts:
        post_message(tx, target, message, change.now_ms)
    for target, message in change.cancels:
        cancel_run(tx, target, message, change.now_ms)
    if change.cached:
        put_cached(tx, change.cached)
    move_run(tx, run, change.move, change.now_ms)
    if finished:
        cancel_waits(tx, run, change.now_ms)
        delete_all_messages(tx, run)
    return Appended(seq, 0 if finished else newest_message(tx, run), append_to_family(tx, change, finished))


async def read_events(readers: Readers, run_id: str, after: int = 0, limit: int = 10_000) -> list[Record]:
    return records_of(run_id, await readers.all(EVENTS_AFTER, (run_id, after, limit)))


async def find_events(readers: Readers, run_id: str, where: EventFilter) -> tuple[list[Record], int]:
    matching = ""
    values: list[str | int] = [run_id]
    if where.node is not None:
        matching += EVENTS_OF_NODE
        values.append(where.node)
    if where.types:
        matching += EVENTS_OF_TYPES
        values.append(msgspec.json.encode(where.types).decode())
    if where.since_ms is not None:
        matching += EVENTS_SINCE
        values.append(where.since_ms)
    query = COUNT_EVENTS + matching + AND_EVENTS + matching + EVENTS_PAGE
    counted, *page = await readers.all(query, (*values, *values, where.after, where.limit))
    return records_of(run_id, page), int(counted[0])
