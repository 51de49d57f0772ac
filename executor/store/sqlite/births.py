"""A run that its creator executes: created, claimed and begun in one transaction."""

from __future__ import annotations

from executor.store.rows import Append, NewRun, RunRow
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.journal import append
from executor.store.sqlite.leases import claim_new
from executor.store.sqlite.runs import create_run


def begin_run(tx: Tx, run: NewRun, owner: str, lease_ms: int, first: Append) -> tuple[RunRow, bool]:
    row, created = create_run(tx, run)
    if created:
        claim_new(tx, owner, run.now_ms, lease_ms, run.id)
        append(tx, first)
    return row, created
