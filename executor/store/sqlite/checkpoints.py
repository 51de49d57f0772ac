"""Checkpoints in SQLite. The contract is in `executor.store.contract`."""

# ruff: noqa: S608  (the pieces put together here are constants of this file, never values)

from __future__ import annotations

import msgspec

from executor.errors import Fenced
from executor.store.rows import CheckpointRow
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.readers import Readers
from executor.store.sqlite.statements import OPEN
from executor.store.sqlite.writer import Writer

CHECKPOINT = "run_id, node, attempt, at_ms, data"
GET = f"SELECT {CHECKPOINT} FROM checkpoints WHERE run_id = ? AND node = ?"
# The fence is part of the statement: without the run's row there is nothing to insert.
PUT = f"""
INSERT OR REPLACE INTO checkpoints ({CHECKPOINT})
SELECT ?1, ?2, ?3, ?4, ?5 FROM runs WHERE id = ?1 AND epoch = ?6 AND {OPEN}"""


class SQLiteCheckpoints:
    """What SQLiteStore can do with checkpoints."""

    _writer: Writer
    _readers: Readers

    async def put_checkpoint(self, epoch: int, row: CheckpointRow) -> None:
        await self._writer.submit(_put_checkpoint, epoch, row)

    async def get_checkpoint(self, run_id: str, node: str) -> CheckpointRow | None:
        row = await self._readers.one(GET, (run_id, node))
        return None if row is None else CheckpointRow(*row)


def _put_checkpoint(tx: Tx, epoch: int, row: CheckpointRow) -> None:
    if tx.db.execute(PUT, (*msgspec.structs.astuple(row), epoch)).rowcount != 1:
        raise Fenced(f"run {row.run_id}: epoch {epoch} is no longer current", run=row.run_id)
