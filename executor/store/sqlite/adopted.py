"""A run that the process which creates or answers it executes: that, and the claim, are one transaction."""

from __future__ import annotations

from executor.store.rows import Answered, Append, NewRun, RunRow
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.journal import append
from executor.store.sqlite.leases import claim, claim_new
from executor.store.sqlite.runs import create_run
from executor.store.sqlite.waits import answer_wait


def begin_run(tx: Tx, run: NewRun, owner: str, lease_ms: int, first: Append) -> tuple[RunRow, bool]:
    row, created = create_run(tx, run)
    if created:
        claim_new(tx, owner, run.now_ms, lease_ms, run.id)
        append(tx, first)
    return row, created


def answer_and_claim(
    tx: Tx, token_hash: str, response: bytes, by: str | None, message: bytes, now_ms: int, owner: str, lease_ms: int
) -> tuple[Answered | None, RunRow | None]:
    answered = answer_wait(tx, token_hash, response, by, message, now_ms)
    if answered is None or not answered.won:
        return answered, None
    run = answered.wait.run_id
    # Once more: a run that another process has just changed is passed over.
    claimed = claim(tx, owner, now_ms, lease_ms, 1, run) or claim(tx, owner, now_ms, lease_ms, 1, run)
    return answered, claimed[0] if claimed else None
