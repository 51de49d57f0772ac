"""The journal: what the owner of a run appends, and how it is read."""

from __future__ import annotations

import orjson

from executor.errors import Fenced, Unheard
from executor.kernel.store.batches import BATCH, JOURNAL, batches_of, has_only_events, records_of
from executor.kernel.store.formats import needed
from executor.kernel.store.run_rows import Append, Appended, EventFilter, Record
from executor.kernel.store.statements import HEAD_OF_ID, LAST_SEQ, TERMINAL, Readers, Tx, as_list, those_of
from executor.kernel.store.topics.alerts import add_alerts
from executor.kernel.store.topics.cache import put_cached
from executor.kernel.store.topics.contents import add_blob, add_blob_ref
from executor.kernel.store.topics.families import append_to_family, check_family
from executor.kernel.store.topics.inbox import (
    cancel_run,
    consume_signals,
    delete_all_messages,
    delete_messages,
    newest_message,
    post_message,
)
from executor.kernel.store.topics.limits import free_places
from executor.kernel.store.topics.outbox import add_notifications
from executor.kernel.store.topics.places import leave_places
from executor.kernel.store.topics.runs import create_children, create_next, move_run
from executor.kernel.store.topics.snapshots import delete_snapshot, put_snapshot
from executor.kernel.store.topics.usage import add_usage
from executor.kernel.store.topics.waits import add_waits, cancel_waits, close_waits

# The fence. No row: fenced. An append that has only events has it in the statement that adds them (`ADD_FENCED`).
_CURRENT = f"{HEAD_OF_ID} AND epoch = :epoch AND {LAST_SEQ} = :expected_seq"
NEED = "UPDATE heads SET needs = :needs WHERE n = :n AND needs < :needs"
ADVANCE = f"""
UPDATE heads SET seq = :seq, stalls = 0, status = coalesce(:status, status) WHERE {_CURRENT} RETURNING n"""
FINISH = f"""
DELETE FROM heads
 WHERE {_CURRENT}
   AND NOT EXISTS (SELECT 1 FROM inbox AS i WHERE i.run_id = heads.id AND i.n = heads.cancel_n
                      AND i.n NOT IN $numbers(:consumed))
RETURNING n, started_at_ms, cancel_n, limits, priority"""
END_DETAILS = """
UPDATE run_details SET status = :status, seq = :seq, epoch = :epoch, cancel_n = :cancel_n,
       started_at_ms = :started_at, finished_at_ms = :now,
       output = coalesce(:output, output), error = coalesce(:error, error)
 WHERE n = :n"""
SET_RESULT = """
UPDATE run_details SET output = coalesce(:output, output), error = coalesce(:error, error) WHERE id = :id"""
# Numbers of matching events. A batch that does not have the text of a node or type at all is not taken apart. After it
# come the conditions.
FIND = """
SELECT b.first_seq + j.key FROM batches AS b CROSS JOIN $events(b.head) AS j
 WHERE b.n = $number_of(:run)"""
OF_NODE = " AND $has(b.head, :node_text) AND j.value ->> 2 = :node"
OF_PATH = " AND $has(b.head, :path_text) AND j.value ->> 3 = :path"
OF_TYPES = " AND j.value ->> 1 IN $texts(:types)"
SINCE = " AND CAST(j.value ->> 0 AS BIGINT) >= :since"
# The count of all, with each number of a page; without any, once.
COUNT_AND_PAGE = """
WITH found (seq) AS MATERIALIZED ({found})
SELECT counted.n, page.seq FROM (SELECT count(*) AS n FROM found) AS counted
  LEFT JOIN (SELECT seq FROM found WHERE seq > :after ORDER BY seq LIMIT :limit) AS page ON true"""
# A filter by types alone, which is the most frequent: nothing is taken apart to count. In a head a type follows a
# number, and its text after a text is the id of a node.
_OF_TYPE = """(length(b.head) - length(replace(b.head, :type_{0}, ''))) / length(:type_{0})
 - (length(b.head) - length(replace(b.head, :node_{0}, ''))) / length(:node_{0})"""
COUNT_OF_TYPES = """
SELECT coalesce(sum({found}), 0) FROM batches AS b WHERE b.n = $number_of(:run) AND ({has})"""
# Each of the batches has a match, all but the first after :after.
PAGE_OF_TYPES = """
SELECT page.seq FROM (
  SELECT b.first_seq + j.key AS seq
    FROM (SELECT b.seq, b.first_seq, b.head FROM batches AS b
           WHERE b.n = $number_of(:run) AND b.seq > :after AND ({has}) AND {found} > 0
           ORDER BY b.seq LIMIT :limit + 1) AS b
    CROSS JOIN $events(b.head) AS j
   WHERE j.value ->> 1 IN $texts(:types)) AS page
 WHERE page.seq > :after ORDER BY page.seq LIMIT :limit"""
NEWEST_OF_TYPES = """
SELECT b.first_seq + j.key AS seq
  FROM (SELECT b.first_seq, b.head FROM batches AS b
         WHERE b.n = $number_of(:run) AND ({has}) AND {found} > 0
         ORDER BY b.seq DESC LIMIT 1) AS b
  CROSS JOIN $events(b.head) AS j
 WHERE j.value ->> 1 IN $texts(:types) ORDER BY 1 DESC LIMIT 1"""
LAST = "SELECT coalesce(max(seq), 0) FROM batches WHERE n = $number_of(:run)"
# The batches that these events are in.
JOURNAL_OF_SEQS = f"""
SELECT {BATCH} FROM batches
 WHERE n = $number_of(:run)
   AND seq IN (SELECT (SELECT min(b.seq) FROM batches AS b
                        WHERE b.n = $number_of(:run) AND b.seq >= wanted.value)
                 FROM $numbers(:seqs) AS wanted)
 ORDER BY seq"""


def append(tx: Tx, change: Append) -> Appended:
    """Set stalls to 0. Raises Fenced (lost lease or moved seq), Unheard (it would end the run, whose cancel request was
    not consumed) and LimitExceeded (`family_max`): nothing was written. The fence comes first: without its row nothing
    has been written."""
    run = change.run_id
    seq = change.expected_seq + len(change.records)
    finished = change.finished or change.status in TERMINAL
    assert not finished or change.status in TERMINAL, f"run {run} cannot finish as {change.status}"
    assert finished or change.next is None, f"run {run} does not end: no run can continue it"
    batches = batches_of(run, change.expected_seq, change.records)
    if batches and has_only_events(change):
        tx.append_later(run, change.epoch, change.expected_seq, batches)
        return Appended(seq, newest_message(tx, run), None)
    tx.lock(run)  # what is in its inbox must not change between the fence and what the fence looks at
    if change.children:
        check_family(tx, change.run_id, len(change.children), change.family_max)
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
        held = tx.rows(FINISH, {**values, "consumed": as_list(change.consumed_inbox)})
        if not held and tx.rows(f"SELECT 1 FROM heads WHERE {_CURRENT}", values):
            raise Unheard(f"run {run} has not processed its cancel request", run=run)
    else:
        held = tx.rows(ADVANCE, values)
    if not held:
        raise Fenced(f"run {run}: epoch {change.epoch} at seq {change.expected_seq} is no longer current", run=run)
    number = held[0][0]
    if finished:
        _, started_at_ms, cancel_n, limits, priority = held[0]
        if limits is not None:
            free_places(tx, number)
        tx.do(END_DETAILS, {**values, "n": number, "started_at": started_at_ms, "cancel_n": cancel_n})
    elif change.output is not None or change.error is not None:
        tx.do(SET_RESULT, values)
    tx.add_batches(run, number, batches)
    _add_rows(tx, number, change)
    move_run(tx, run, change.move, change.now_ms)
    if change.move is not None or finished:
        delete_snapshot(tx, number, change.expected_seq)
    elif change.snapshot is not None:
        put_snapshot(tx, run, change.snapshot)
    if finished:
        cancel_waits(tx, run, change.now_ms)
        delete_all_messages(tx, run)
        if change.next is not None:
            create_next(tx, change.next, run, priority)
    return Appended(
        seq,
        0 if finished else newest_message(tx, run),
        append_to_family(tx, change.root, change.run_id, change.output_bytes, finished),
    )


def _add_rows(tx: Tx, number: int, change: Append) -> None:
    run = change.run_id
    if change.places is not None:
        leave_places(tx, number, change.epoch + (change.status in TERMINAL), change.places)
    if (needs := needed(change.records)) > change.needed:
        tx.run(NEED, {"n": number, "needs": needs})
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
        create_children(tx, run, change.children, change.reopens_family)
    for target, message in change.posts:
        post_message(tx, target, message, change.now_ms)
    for target, message in change.cancels:
        cancel_run(tx, target, message, change.now_ms)
    if change.cached:
        put_cached(tx, change.cached)
    if change.usage:
        add_usage(tx, change.usage)
    if change.alerts:
        add_alerts(tx, change.alerts)


async def read_events(readers: Readers, run_id: str, after: int = 0, limit: int = 10_000) -> list[Record]:
    if limit <= 0:
        return []
    rows = await readers.all(JOURNAL, {"run": run_id, "after": after, "upto": after + limit})
    return records_of(run_id, rows, after)[:limit]


async def find_events(readers: Readers, run_id: str, where: EventFilter) -> tuple[list[Record], int]:
    """Return a page, and the count of all that match, ignoring `after` and `limit`; of `newest` that of the page."""
    if where.node is None and where.path is None and where.since_ms is None:
        if not where.types:  # each record has the number of its place
            records = await read_events(readers, run_id, where.after, where.limit)
            return records, int((await readers.all(LAST, {"run": run_id}))[0][0])
        seqs, count = await _find_types(readers, run_id, where)
    else:
        seqs, count = await _find(readers, run_id, where)
    if not seqs:
        return [], count
    rows = await readers.all(JOURNAL_OF_SEQS, {"run": run_id, "seqs": as_list(seqs)})
    wanted = set(seqs)
    return [record for record in records_of(run_id, rows) if record.seq in wanted], count


async def _find_types(readers: Readers, run_id: str, where: EventFilter) -> tuple[list[int], int]:
    types = list(dict.fromkeys(where.types))
    found = f"({' + '.join(_OF_TYPE.format(i) for i in range(len(types)))})"
    has = " OR ".join(f"$has(b.head, :type_{i})" for i in range(len(types)))
    of_types = {
        **{f"type_{i}": f',"{type}"' for i, type in enumerate(types)},
        **{f"node_{i}": f'","{type}"' for i, type in enumerate(types)},
        "run": run_id,
        "types": as_list(types),
    }
    if where.newest:
        seqs = [seq for (seq,) in await readers.all(NEWEST_OF_TYPES.format(found=found, has=has), of_types)]
        return seqs, len(seqs)
    page = {**of_types, "after": where.after, "limit": where.limit}
    seqs = [seq for (seq,) in await readers.all(PAGE_OF_TYPES.format(found=found, has=has), page)]
    if where.after <= 0 and len(seqs) < where.limit:
        return seqs, len(seqs)
    [(count,)] = await readers.all(COUNT_OF_TYPES.format(found=found, has=has), of_types)
    return seqs, int(count)


async def _find(readers: Readers, run_id: str, where: EventFilter) -> tuple[list[int], int]:
    has_types = where.types or None
    of_types = " OR ".join(f"$has(b.head, :type_text_{i})" for i in range(len(where.types)))
    found = FIND + those_of(
        (OF_NODE, where.node),
        (OF_PATH, where.path),
        (f" AND ({of_types}){OF_TYPES}", has_types),
        (SINCE, where.since_ms),
    )
    values = {
        "run": run_id,
        "node": where.node,
        "path": where.path,
        "path_text": orjson.dumps(where.path).decode(),
        "node_text": orjson.dumps(where.node).decode(),
        "types": as_list(where.types),
        "since": where.since_ms,
        "after": where.after,
        "limit": where.limit,
        **{f"type_text_{i}": f'"{type}"' for i, type in enumerate(where.types)},
    }
    rows = await readers.all(COUNT_AND_PAGE.format(found=found), values)
    return sorted(seq for _, seq in rows if seq is not None), int(rows[0][0])
