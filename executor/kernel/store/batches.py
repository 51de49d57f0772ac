"""A batch: what one append writes into a journal, as one row with one checksum. See `sql/sqlite/0001_start.sql`.

SQLite's own pages have no checksum, so each batch has a CRC-32: a bit that flipped on the disk is an error here and not
a wrong answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from zlib import crc32

import orjson

from executor.errors import RESTORE, CorruptJournal
from executor.kernel.store.formats import needed
from executor.kernel.store.run_rows import Append, Record
from executor.kernel.store.statements import Batch

# Most appends are one batch. One with more is cut, so that a page of a journal never has to read far more than it has.
EVENTS_MAX = 500
PAYLOAD_MAX_BYTES = 1024 * 1024

# The last event of the batch that has event :upto, so that nothing after it is read.
_UPTO = """coalesce((SELECT min(b.seq) FROM batches AS b
                       WHERE b.n = $number_of(:run) AND b.seq >= :upto), :upto)"""
BATCH = "seq, first_seq, output_bytes, checksum, head, payload"  # the columns of a row of JOURNAL
# The batches of a run that have events in a range.
JOURNAL = f"""
SELECT {BATCH} FROM batches WHERE n = $number_of(:run) AND seq > :after AND seq <= {_UPTO} ORDER BY seq"""


def batches_of(run: str, after: int, records: Sequence[Record]) -> list[Batch]:
    """Return the batches of an append or a new run, in order. The store numbers them; `Record.seq` is not used."""
    done: list[Batch] = []
    events: list[tuple[Any, ...]] = []
    parts: list[bytes] = []
    size = outputs = 0
    first = after + 1
    for r in records:
        data, output = r.data, r.output
        if data is None and output is None:
            events.append((r.at_ms, r.type, r.node, r.path, r.attempt))
        else:
            of_data = of_output = None
            begins = size
            if data is not None:
                of_data = len(data)
                size += of_data
                parts.append(data)
            if output is not None:
                of_output = len(output)
                size += of_output
                outputs += of_output
                parts.append(output)
            events.append((r.at_ms, r.type, r.node, r.path, r.attempt, begins, of_data, of_output))
        if len(events) == EVENTS_MAX or size > PAYLOAD_MAX_BYTES:
            done.append(_batch(run, first, events, outputs, b"".join(parts)))
            first += len(events)
            events, parts, size, outputs = [], [], 0, 0
    if events:
        done.append(_batch(run, first, events, outputs, b"".join(parts)))
    return done


def is_one_batch(records: Sequence[Record]) -> bool:
    size = sum(len(each.data or b"") + len(each.output or b"") for each in records)
    return len(records) <= EVENTS_MAX and size <= PAYLOAD_MAX_BYTES


def _batch(run: str, first: int, events: list[tuple[Any, ...]], outputs: int, payload: bytes) -> Batch:
    head = orjson.dumps(events).decode()
    check = checksum_of_batch(run, first, outputs, head, payload)
    return Batch(first + len(events) - 1, first, outputs, check, head, payload)


def records_of(run: str, rows: Iterable[tuple[Any, ...]], after: int = 0) -> list[Record]:
    """Return the records of rows of JOURNAL, after `after`. Raises CorruptJournal."""
    found: list[Record] = []
    for row in rows:
        found += events_of_batch(run, row)
    behind = 0
    while behind < len(found) and found[behind].seq <= after:  # the first batch may begin before
        behind += 1
    return found[behind:] if behind else found


def events_of_batch(run: str, row: tuple[Any, ...]) -> list[Record]:
    """Return the records of a row of JOURNAL. Raises CorruptJournal."""
    last, first, outputs, stored, head, payload = row
    if stored != checksum_of_batch(run, first, outputs, head, payload):
        raise CorruptJournal(f"run {run}: events {first} to {last} do not match their checksum", hint=RESTORE)
    found: list[Record] = []
    seq = first
    for event in orjson.loads(head):
        if len(event) == 5:
            at_ms, type, node, path, attempt = event
            found.append(Record(seq, at_ms, type, node, path, attempt))
        else:
            at_ms, type, node, path, attempt, begins, of_data, of_output = event
            ends = begins + (of_data or 0)
            data = None if of_data is None else payload[begins:ends]
            output = None if of_output is None else payload[ends : ends + of_output]
            found.append(Record(seq, at_ms, type, node, path, attempt, data, output))
        seq += 1
    if seq != last + 1:
        raise CorruptJournal(f"run {run}: events {first} to {last} do not match their checksum", hint=RESTORE)
    return found


def damaged(run: str, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[list[Record], str | None]]:
    """For each row of JOURNAL its events, and what is wrong with the row."""
    for row in rows:
        try:
            yield records_of(run, [row]), None
        except CorruptJournal as error:
            yield _whatever_is_there(run, row), error.message.removeprefix(f"run {run}: ")


def _whatever_is_there(run: str, row: tuple[Any, ...]) -> list[Record]:
    last, first, outputs, _, head, payload = row
    try:
        stored = checksum_of_batch(run, first, outputs, head, payload)
        return events_of_batch(run, (last, first, outputs, stored, head, payload))
    except (ValueError, TypeError, CorruptJournal):
        return []


def checksum_of_batch(run: str, first: int, outputs: int, head: str, payload: bytes) -> int:
    return crc32(payload, crc32(f"{run}\0{first}\0{outputs}\0{head}".encode()))


def has_only_events(change: Append) -> bool:
    """So have most, and there are many of them."""
    ends = change.status or change.finished or change.output is not None or change.error is not None
    return not ends and writes_only_itself(change) and needed(change.records) <= change.needed


def writes_only_itself(change: Append) -> bool:
    """Events, and the end of the run."""
    return not (
        change.waits
        or change.closed_waits
        or change.consumed_inbox
        or change.consumed_signals
        or change.blobs
        or change.notifications
        or change.children
        or change.posts
        or change.cancels
        or change.cached
        or change.usage
        or change.alerts
        or change.root is not None
        or change.move is not None
        or change.snapshot is not None
        or change.places is not None
        or change.next is not None
    )
