"""The pieces of statements as SQLite has them (see `executor.kernel.store.dialect`), and the statements of its own.

Those that add batches are run thousands of times a second, with their parameters by position: by name, an append of
events costs a tenth more computing time (8.4 and 9.3 us in groups of 64; Python 3.11 asks SQLite for each name again).

Python gives up the interpreter's lock for each statement, also in `executemany`, and beside a busy event loop it gets
the lock back half a millisecond later, or five. So many rows that belong together are written by few statements.
"""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TypeVar

from executor.kernel.store.batches import BATCH
from executor.kernel.store.dialect import Texts

T = TypeVar("T")


def _list(parameter: str) -> str:
    return f"(SELECT value FROM json_each({parameter}))"


def _rows(parameter: str, types: str) -> str:
    row = ", ".join(f"value ->> {n}" for n in range(len(types)))
    return f"(SELECT {row} FROM json_each({parameter}))"


# An append writes only its batch, so `seq` of a head may be too low.
_LAST_SEQ = "coalesce((SELECT max(batches.seq) FROM batches WHERE batches.n = heads.n), heads.seq)"

TEXTS = Texts(
    {
        "texts": _list,
        "numbers": _list,
        "is_any": lambda parameter: f"IN {_list(parameter)}",
        "rows": _rows,
        "index": lambda name: f"INDEXED BY {name}",
        "has": lambda text, part: f"instr({text}, {part})",
        "events": lambda head: f"json_each({head})",
        "for_each": lambda: "CROSS JOIN heads AS h ON h.n IN (SELECT q.n",
        "try_lock": lambda text: "true",  # who writes has the file
        "end_each": lambda: ")",
        "skip_locked": lambda table: "",
        "keep_there": lambda: "",
        "take_alone": lambda: "",
        "kept_workflow": lambda name: name,
        "number_of": lambda run: f"(SELECT n FROM run_details WHERE id = {run})",
        "head_of": lambda run: f"n = (SELECT n FROM run_details WHERE id = {run})",
        "last_seq": lambda: _LAST_SEQ,
        "database_bytes": lambda: "page_count * page_size FROM pragma_page_count, pragma_page_size",
        "lease_now": lambda now: now,  # one machine: its processes have the same clock
    }
)

ADD_BATCH = f"INSERT INTO batches ({BATCH}, n) VALUES (?, ?, ?, ?, ?, ?, ?)"
# With the fence: run, epoch, and the seq before. No row: fenced.
ADD_FENCED = f"""
INSERT INTO batches ({BATCH}, n)
SELECT ?, ?, ?, ?, ?, ?, heads.n FROM run_details AS d CROSS JOIN heads ON heads.n = d.n
 WHERE d.id = ? AND heads.epoch = ? AND {_LAST_SEQ} = ?"""
# That alone is a transaction. It returns the number of the newest message in the inbox of the run.
APPEND_ALONE = f"""{ADD_FENCED}
RETURNING (SELECT coalesce(max(inbox.n), 0) FROM inbox WHERE inbox.run_id = ?)"""
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
