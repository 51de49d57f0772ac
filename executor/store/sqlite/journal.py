"""The journal: what the owner of a run appends, and how it is read."""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

import orjson

from executor.errors import Fenced, Unheard
from executor.store.rows import TERMINAL, Append, Appended, EventFilter, Record
from executor.store.sqlite.batches import EVENT, JOURNAL, LAST_SEQ, batches_of, records_of
from executor.store.sqlite.cache import put_cached
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.contents import add_blob, add_blob_ref
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
from executor.store.sqlite.runs import add_batches, create_children, move_run
from executor.store.sqlite.statements import HEAD_OF_ID, any_of, as_list
from executor.store.sqlite.waits import add_waits, cancel_waits, close_waits

# The fence. No row: fenced. An append that has only events has it in the statement that adds them (`ADD_FENCED`).
_CURRENT = f"{HEAD_OF_ID} AND epoch = :epoch AND {LAST_SEQ} = :expected_seq"
ADVANCE = f"""
UPDATE heads SET seq = :seq, stalls = 0, status = coalesce(:status, status) WHERE {_CURRENT} RETURNING n"""
FINISH = f"""
DELETE FROM heads
 WHERE {_CURRENT}
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
IS_CURRENT = f"SELECT 1 FROM heads WHERE {_CURRENT}"
# Numbers of matching events: of old rows, then of batches. A batch that does not have the text of a node or type at all
# is not taken apart. Between the halves and behind them come the conditions.
FIND_OLD = "SELECT seq FROM old_events WHERE run_id = :run"
OLD_OF_NODE = " AND node = :node"
OLD_OF_TYPES = f" AND type IN {any_of(':types')}"
OLD_SINCE = " AND at_ms >= :since"
FIND_IN_BATCHES = """
SELECT b.first_seq + j.key FROM batches AS b CROSS JOIN json_each(b.head) AS j
 WHERE b.n = (SELECT n FROM run_details WHERE id = :run)"""
IN_BATCHES_OF_NODE = " AND instr(b.head, :node_text) AND j.value ->> 2 = :node"
IN_BATCHES_OF_TYPES = f" AND j.value ->> 1 IN {any_of(':types')}"
IN_BATCHES_SINCE = " AND j.value ->> 0 >= :since"
# The count of all, and the numbers of a page.
COUNT_AND_PAGE = """
WITH found (seq) AS MATERIALIZED ({found})
SELECT (SELECT count(*) FROM found),
       (SELECT json_group_array(seq) FROM (SELECT seq FROM found WHERE seq > :after ORDER BY seq LIMIT :limit))"""
# The old rows and batches that these events are in.
JOURNAL_OF_SEQS = f"""
SELECT {EVENT}, checksum FROM old_events WHERE run_id = :run AND seq IN {any_of(":seqs")}
UNION ALL
SELECT seq, first_seq, NULL, output_bytes, NULL, NULL, head, payload, checksum FROM batches
 WHERE n = (SELECT n FROM run_details WHERE id = :run)
   AND seq IN (SELECT (SELECT min(b.seq) FROM batches AS b
                        WHERE b.n = (SELECT n FROM run_details WHERE id = :run) AND b.seq >= wanted.value)
                 FROM json_each(:seqs) AS wanted)
 ORDER BY 1"""


def append(tx: Tx, change: Append) -> Appended:
    """See Store.append. The fence comes first: without its row nothing has been written."""
    run = change.run_id
    seq = change.expected_seq + len(change.records)
    finished = change.finished or change.status in TERMINAL
    assert not finished or change.status in TERMINAL, f"run {run} cannot finish as {change.status}"
    batches = batches_of(run, change.expected_seq, change.records)
    if batches and _has_only_events(change):
        tx.append_later(run, change.epoch, change.expected_seq, batches)
        return Appended(seq, newest_message(tx, run), None)
    db = tx.db
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
    if finished:
        held = db.execute(FINISH, {**values, "consumed": as_list(change.consumed_inbox)}).fetchall()
        if not held and db.execute(IS_CURRENT, values).fetchall():
            raise Unheard(f"run {run} has not processed its cancel request", run=run)
    else:
        held = db.execute(ADVANCE, values).fetchall()
    if not held:
        raise Fenced(f"run {run}: epoch {change.epoch} at seq {change.expected_seq} is no longer current", run=run)
    number = held[0][0]
    if finished:
        _, started_at_ms, cancel_n = held[0]
        db.execute(END_DETAILS, {**values, "n": number, "started_at": started_at_ms, "cancel_n": cancel_n})
    elif change.output is not None or change.error is not None:
        db.execute(SET_RESULT, values)
    add_batches(tx, run, number, batches)
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


def _has_only_events(change: Append) -> bool:
    """So have most, and there are many of them."""
    return not (
        change.status
        or change.finished
        or change.waits
        or change.closed_waits
        or change.consumed_inbox
        or change.consumed_signals
        or change.blobs
        or change.notifications
        or change.children
        or change.posts
        or change.cancels
        or change.cached
        or change.root is not None
        or change.move is not None
        or change.output is not None
        or change.error is not None
    )


async def read_events(readers: Readers, run_id: str, after: int = 0, limit: int = 10_000) -> list[Record]:
    if limit <= 0:
        return []
    rows = await readers.all(JOURNAL, {"run": run_id, "after": after, "upto": after + limit})
    return records_of(run_id, rows, after)[:limit]


async def find_events(readers: Readers, run_id: str, where: EventFilter) -> tuple[list[Record], int]:
    old, batched = FIND_OLD, FIND_IN_BATCHES
    if where.node is not None:
        old, batched = old + OLD_OF_NODE, batched + IN_BATCHES_OF_NODE
    if where.types:
        texts = " OR ".join(f"instr(b.head, :type_text_{i})" for i in range(len(where.types)))
        old, batched = old + OLD_OF_TYPES, f"{batched} AND ({texts}){IN_BATCHES_OF_TYPES}"
    if where.since_ms is not None:
        old, batched = old + OLD_SINCE, batched + IN_BATCHES_SINCE
    values = {
        "run": run_id,
        "node": where.node,
        "node_text": orjson.dumps(where.node).decode(),
        "types": as_list(where.types),
        "since": where.since_ms,
        "after": where.after,
        "limit": where.limit,
        **{f"type_text_{i}": f'"{type}"' for i, type in enumerate(where.types)},
    }
    row = await readers.one(COUNT_AND_PAGE.format(found=f"{old} UNION ALL {batched}"), values)
    assert row is not None
    count, seqs = row
    wanted = set(orjson.loads(seqs))
    if not wanted:
        return [], int(count)
    rows = await readers.all(JOURNAL_OF_SEQS, {"run": run_id, "seqs": seqs})
    return [record for record in records_of(run_id, rows) if record.seq in wanted], int(count)
