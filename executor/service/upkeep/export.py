"""The outputs of a workflow's blocks, for other tools: the rows of one block, or a SQLite file with a table for each.

The rows are those of the generated views (`sql/asking.py`), so they have a column for each known property. A block
without known properties has its outputs as JSON.
"""

# ruff: noqa: S608  (names are quoted, texts too)

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec import Struct

from executor.errors import NotFound
from executor.kernel.journal.projection import BLOCK_OUTPUT
from executor.kernel.store.reading import READING_MAX_S
from executor.service.upkeep.backup import draft_of
from executor.service.upkeep.sql.asking import Asking, Query, quoted, view_name

ROWS_MAX = 2**53  # all

_WORKFLOW = "SELECT 1 FROM workflows WHERE name = :name UNION SELECT 1 FROM runs WHERE workflow = :name LIMIT 1"


class Table(Struct, frozen=True):
    name: str
    sql: str


def tables(db: Asking, workflow: str, block: str | None = None) -> list[Table]:
    """List the tables of all blocks with known outputs, or of one, in the order of its events. Raises NotFound."""
    known = [view for view in db.views if view.workflow == workflow]
    found = [Table(view.name, view.sql) for view in known if block in (None, view.block)]
    if not found and not db.reading.rows(_WORKFLOW, {"name": workflow}):
        raise NotFound(f"there is no workflow '{workflow}'", code="workflow_not_found")
    if not found and block is not None:
        sql = db.dialect.outputs(workflow, block, BLOCK_OUTPUT)
        if list(db.query(f"{sql} LIMIT 1", timeout_s=READING_MAX_S)):
            found = [Table(view_name(workflow, block), sql)]
    if not found:
        which = f"block '{block}' of workflow '{workflow}'" if block else f"workflow '{workflow}'"
        others = ", ".join(view.block for view in known)
        raise NotFound(
            f"{which} has no output, and its output schema is unknown",
            code="output_not_known",
            hint=f"blocks with a known output: {others}"
            if others
            else "choose a block that has run, or set its output_schema",
        )
    return found


def rows_of(db: Asking, table: Table, timeout_s: float) -> Query:
    return db.query(f"{table.sql} ORDER BY at_ms, run_id, seq", timeout_s=timeout_s, rows_max=ROWS_MAX)


def write_sqlite(db: Asking, wanted: Sequence[Table], target: Path, timeout_s: float) -> dict[str, int]:
    """Make a SQLite file of them; returns the number of rows by table. Raises OSError, sqlite3.Error, QueryRefused."""
    with replacing(target) as part, closing(sqlite3.connect(part, isolation_level=None)) as out:
        out.execute("BEGIN")
        counts = {table.name: _copy(rows_of(db, table, timeout_s), table.name, out) for table in wanted}
        out.execute("COMMIT")
    return counts


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield an empty file, readable for its owner only, that replaces `target` at the end unless there was an error.
    Raises OSError."""
    with draft_of(target) as draft:
        yield draft
        os.replace(draft, target)


def _copy(rows: Query, name: str, out: sqlite3.Connection) -> int:
    columns = ", ".join(quoted(column) for column in rows.columns)
    out.execute(f"CREATE TABLE {quoted(name)} ({columns})")
    count = out.executemany(f"INSERT INTO {quoted(name)} VALUES ({', '.join('?' * len(rows.columns))})", rows).rowcount
    return max(count, 0)
