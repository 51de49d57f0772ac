"""Checkpoints of attempts."""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

import msgspec

from executor.errors import Fenced
from executor.store.rows import CheckpointRow
from executor.store.sqlite.conditions import OPEN
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.readers import Readers

CHECKPOINT = "run_id, node, attempt, at_ms, data"
GET = f"SELECT {CHECKPOINT} FROM checkpoints WHERE run_id = ? AND node = ?"
# The fence is part of the statement: without the run's row there is nothing to insert.
PUT = f"""
INSERT OR REPLACE INTO checkpoints ({CHECKPOINT})
SELECT ?1, ?2, ?3, ?4, ?5 FROM runs WHERE id = ?1 AND epoch = ?6 AND {OPEN}"""


async def get_checkpoint(readers: Readers, run_id: str, node: str) -> CheckpointRow | None:
    row = await readers.one(GET, (run_id, node))
    return None if row is None else CheckpointRow(*row)


def put_checkpoint(tx: Tx, epoch: int, row: CheckpointRow) -> None:
    if tx.db.execute(PUT, (*msgspec.structs.astuple(row), epoch)).rowcount != 1:
        raise Fenced(f"run {row.run_id}: epoch {epoch} is no longer current", run=row.run_id)
