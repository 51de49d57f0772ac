"""A row of the journal on the disk: the columns of a Record, and a checksum over them.

SQLite's own pages have no checksum, so each row has a CRC-32: a bit that flipped on the disk is an error here and not a
wrong answer. Rows that were written before there was one have NULL, and are not checked.
"""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

from executor.errors import RESTORE, CorruptJournal
from executor.store.rows import Record

EVENT = "seq, at_ms, type, node, path, attempt, data, output"  # in the order of the fields of Record
ADD_EVENT = f"INSERT INTO events (run_id, {EVENT}, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
EVENT_BY_SEQ = f"SELECT run_id, {EVENT}, checksum FROM events WHERE run_id = ? AND seq = ?"


def rows_of(run: str, after: int, records: Sequence[Record]) -> list[tuple[Any, ...]]:
    """Rows for ADD_EVENT. The store numbers them; what `Record.seq` says does not matter here."""
    rows = []
    for seq, r in enumerate(records, after + 1):
        row = (run, seq, r.at_ms, r.type, r.node, r.path, r.attempt, r.data, r.output)
        rows.append((*row, checksum(row)))
    return rows


def records_of(run: str, rows: Iterable[tuple[Any, ...]]) -> list[Record]:
    """Of rows with the columns of EVENT and the checksum. Raises CorruptJournal."""
    found = []
    for row in rows:
        *values, stored = row
        if stored is not None and stored != checksum((run, *values)):
            raise CorruptJournal(f"run {run}: event {row[0]} does not match its checksum", hint=RESTORE)
        found.append(Record(*values))
    return found


def checksum(row: tuple[Any, ...]) -> int:
    """`row`: run_id, and the columns of EVENT."""
    run, seq, at_ms, type, node, path, attempt, data, output = row
    head = f"{run}\0{seq}\0{at_ms}\0{type}\0{node}\0{path}\0{attempt}"
    return crc32(output or b"", crc32(data or b"", crc32(head.encode())))
