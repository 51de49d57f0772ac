"""Checkpoints of attempts."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from executor.errors import Fenced
from executor.kernel.store.statements import HEAD_OF_ID
from executor.kernel.store.tx import Readers, Tx


class CheckpointRow(Struct, frozen=True):
    """`node` is a text of compiler.keys: a block in its iteration and branch. `data` is JSON, `attempt` the one
    that stored it."""

    run_id: str
    node: str
    attempt: int
    at_ms: int
    data: bytes


CHECKPOINT = "run_id, node, attempt, at_ms, data"
GET = f"SELECT {CHECKPOINT} FROM checkpoints WHERE run_id = :run AND node = :node"
# The fence: it takes the run's row, so no other process has the run before the checkpoint is written.
HOLD_RUN = f"UPDATE heads SET seq = seq WHERE {HEAD_OF_ID} AND epoch = :epoch"
PUT = f"""
INSERT INTO checkpoints ({CHECKPOINT}) VALUES (:run_id, :node, :attempt, :at_ms, :data)
ON CONFLICT (run_id, node) DO UPDATE SET attempt = excluded.attempt, at_ms = excluded.at_ms, data = excluded.data"""


async def get_checkpoint(readers: Readers, run_id: str, node: str) -> CheckpointRow | None:
    row = await readers.one(GET, {"run": run_id, "node": node})
    return None if row is None else CheckpointRow(*row)


def put_checkpoint(tx: Tx, epoch: int, row: CheckpointRow) -> None:
    """Replace the one before. Raises Fenced."""
    if tx.run(HOLD_RUN, {"id": row.run_id, "epoch": epoch}) != 1:
        raise Fenced(f"run {row.run_id}: epoch {epoch} is no longer current", run=row.run_id)
    tx.run(PUT, msgspec.structs.asdict(row))
