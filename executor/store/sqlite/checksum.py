"""A CRC-32 in each row of the journal: a bit that turned on the disk is an error here and not a wrong answer.

SQLite's own pages have no checksum. Rows from before there was one have NULL, and are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

from executor.errors import CorruptJournal
from executor.store.rows import Record

RESTORE = "restore a backup: `weft restore FILE`"


def checksum(row: tuple[Any, ...]) -> int:
    """`row`: run_id, and the columns of `statements.EVENT`."""
    run, seq, at_ms, type, node, path, attempt, data, output = row
    head = f"{run}\0{seq}\0{at_ms}\0{type}\0{node}\0{path}\0{attempt}"
    return crc32(output or b"", crc32(data or b"", crc32(head.encode())))


def records(run: str, rows: Iterable[tuple[Any, ...]]) -> list[Record]:
    """Of rows with the columns of `statements.EVENT` and the checksum. Raises CorruptJournal."""
    found = []
    for row in rows:
        *values, stored = row
        if stored is not None and stored != checksum((run, *values)):
            raise CorruptJournal(f"run {run}: event {row[0]} does not match its checksum", hint=RESTORE)
        found.append(Record(*values))
    return found
