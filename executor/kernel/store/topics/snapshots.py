"""Snapshots of journals, and checkpoints of attempts."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from executor.errors import Fenced
from executor.kernel.store.statements import HEAD_OF_ID, Readers, Tx, columns, insert, replacing

SNAPSHOT_SEQ_MIN = 1_000  # events of a run that may have one: a shorter journal is folded as quickly


class SnapshotRow(Struct, frozen=True):
    """The folded state of a run's journal after `seq` events. The store does not look into it: `format`, `code` and
    `plan_hash` decide who can read it, `checksum` is of all other fields and the run's id (`run/snapshots`)."""

    seq: int
    format: int
    code: str
    plan_hash: str
    checksum: int
    data: bytes


SNAPSHOT = columns(SnapshotRow)
GET = f"SELECT {SNAPSHOT} FROM snapshots WHERE n = (SELECT n FROM run_details WHERE id = :id)"
REPLACING = replacing(SnapshotRow, "n")
# By a transaction that has taken the run's row and found it to be its own.
PUT = f"""
INSERT INTO snapshots (n, {SNAPSHOT})
VALUES ((SELECT n FROM run_details WHERE id = :id), :seq, :format, :code, :plan_hash, :checksum, :data)
{REPLACING}"""
DELETE_SNAPSHOT = "DELETE FROM snapshots WHERE n = :n"


async def get_snapshot(readers: Readers, run_id: str) -> SnapshotRow | None:
    return await readers.fetch_one(SnapshotRow, GET, {"id": run_id})


def put_snapshot(tx: Tx, run: str, row: SnapshotRow) -> None:
    check_length(run, row)
    tx.do(PUT, {"id": run, **msgspec.structs.asdict(row)})


def seq_min() -> int:
    """Runs with fewer events have no snapshot."""
    return SNAPSHOT_SEQ_MIN


def check_length(run: str, row: SnapshotRow) -> None:
    assert row.seq >= seq_min(), f"run {run} is too short for a snapshot"


def delete_snapshot(tx: Tx, number: int, seq: int) -> None:
    """Part of an append of a run that has `seq` events before it. Costs a short run nothing."""
    if seq >= seq_min():
        tx.do(DELETE_SNAPSHOT, {"n": number})


def delete_snapshots(tx: Tx) -> int:
    return tx.run("DELETE FROM snapshots")


class CheckpointRow(Struct, frozen=True):
    """`node` is a text of compiler.keys: a block in its iteration and branch. `data` is JSON, `attempt` the one
    that stored it."""

    run_id: str
    node: str
    attempt: int
    at_ms: int
    data: bytes


GET_CHECKPOINT = f"SELECT {columns(CheckpointRow)} FROM checkpoints WHERE run_id = :run AND node = :node"
# The fence: it takes the run's row, so no other process has the run before the checkpoint is written.
HOLD_RUN = f"UPDATE heads SET seq = seq WHERE {HEAD_OF_ID} AND epoch = :epoch"
PUT_CHECKPOINT = insert("checkpoints", CheckpointRow) + replacing(CheckpointRow, "run_id", "node")


async def get_checkpoint(readers: Readers, run_id: str, node: str) -> CheckpointRow | None:
    return await readers.fetch_one(CheckpointRow, GET_CHECKPOINT, {"run": run_id, "node": node})


def put_checkpoint(tx: Tx, epoch: int, row: CheckpointRow) -> None:
    if tx.run(HOLD_RUN, {"id": row.run_id, "epoch": epoch}) != 1:
        raise Fenced(f"run {row.run_id}: epoch {epoch} is no longer current", run=row.run_id)
    tx.run(PUT_CHECKPOINT, msgspec.structs.asdict(row))
