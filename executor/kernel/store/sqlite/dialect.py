"""The statements that only SQLite has.

Those that add batches are run thousands of times a second, with their parameters by position: by name, an append of
events costs a tenth more computing time (8.4 and 9.3 us in groups of 64; Python 3.11 asks SQLite for each name again).

Python gives up the interpreter's lock for each statement, also in `executemany`, and beside a busy event loop it gets
the lock back half a millisecond later, or five. So many rows that belong together are written by few statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TypeVar

from executor.kernel.store.batches import BATCH
from executor.kernel.store.statements import PIECES, Texts

T = TypeVar("T")


TEXTS = Texts("sqlite")

ADD_BATCH = f"INSERT INTO batches ({BATCH}, n) VALUES (?, ?, ?, ?, ?, ?, ?)"
# With the fence: run, epoch, and the seq before. No row: fenced, as `n` may not be null. INSERT ... SELECT would go
# through a temporary table, because the fence reads the table that it adds to: 5.4 instead of 3.2 us.
ADD_FENCED = f"""
INSERT OR IGNORE INTO batches ({BATCH}, n) VALUES (?, ?, ?, ?, ?, ?, (
 SELECT heads.n FROM run_details AS d CROSS JOIN heads ON heads.n = d.n
  WHERE d.id = ? AND heads.epoch = ? AND {PIECES["last_seq"][0]} = ?))"""
BATCH_IS_THERE = """
SELECT 1 FROM batches WHERE n = (SELECT n FROM run_details WHERE id = ?) AND seq = ? AND checksum = ?"""

_NAME = re.compile(r":(\w+)")
_ROWS = (64, 16, 4, 1)  # of one statement: few texts, as each is kept prepared


def in_pieces(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Each has one of the numbers of rows that there are statements for."""
    done = 0
    for rows in _ROWS:
        while len(values) - done >= rows:
            yield values[done : done + rows]
            done += rows


@cache
def several_rows(sql: str, rows: int) -> str:
    """Return an INSERT of one row as one of several rows; `:id` becomes `:id_0`, `:id_1`, ..."""
    head, values, row = sql.rpartition("VALUES")
    return head + values + ",".join(_NAME.sub(rf":\1_{i}", row) for i in range(rows))


@cache
def first_batches(rows: int) -> str:
    """Return an INSERT of the first batch of several runs; the id of its run follows each batch."""
    row = "(?, ?, ?, ?, ?, ?, (SELECT n FROM run_details WHERE id = ?))"
    return f"INSERT INTO batches ({BATCH}, n) VALUES {', '.join([row] * rows)}"
