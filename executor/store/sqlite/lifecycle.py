"""Runs made from other runs in SQLite. The contract is in `executor.store.contract`."""

from __future__ import annotations

from executor.errors import NotFound
from executor.store.rows import Move
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.writer import Writer

ADD_PLAN = "INSERT INTO plans (hash, ir) VALUES (?, ?) ON CONFLICT DO NOTHING"  # by hash: the same bytes
MOVE_RUN = "UPDATE runs SET plan_hash = ?, version = ? WHERE id = ?"
RUN_IS_THERE = "SELECT 1 FROM runs WHERE id = ?"


class SQLiteLifecycle:
    """What SQLiteStore does for this topic."""

    _writer: Writer

    async def put_plan(self, hash: str, plan: bytes) -> None:
        await self._writer.submit(_put_plan, hash, plan)


def _put_plan(tx: Tx, hash: str, plan: bytes) -> None:
    tx.db.execute(ADD_PLAN, (hash, plan))


def move_run(tx: Tx, run: str, move: Move | None) -> None:
    """Part of an append."""
    if move is not None:
        _put_plan(tx, move.plan_hash, move.plan)
        tx.db.execute(MOVE_RUN, (move.plan_hash, move.version, run))


def check_sources(tx: Tx, runs: tuple[str, ...]) -> None:
    """Part of creating a run, before anything is written. Raises NotFound."""
    for run in runs:
        if not tx.db.execute(RUN_IS_THERE, (run,)).fetchall():
            raise NotFound(f"run '{run}' no longer exists", code="run_not_found")
