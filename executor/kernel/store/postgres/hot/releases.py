"""Runs that their owner gives up: they wait, or its process ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import psycopg

from executor.kernel.store.postgres.connection import Tx
from executor.kernel.store.postgres.hot.kind import Columns, Kind, Session
from executor.kernel.store.statements import RunStatus
from executor.kernel.store.topics.snapshots import SnapshotRow, check_length
from executor.kernel.store.tx import Row
from executor.kernel.store.writer import Outcome


class Release(NamedTuple):
    """The parameters of `release`."""

    run_id: str
    epoch: int
    seq: int
    next_run_at_ms: int | None
    status: RunStatus
    snapshot: SnapshotRow | None = None


WANTED = Columns("w", id="t", epoch="n", seq="n", due="n", status="t")
SNAPSHOTS = Columns("s", run="t", seq="n", format="n", code="t", plan_hash="t", checksum="n", data="b")
# Who does not come back is no longer the owner, or would go to sleep with a message in the inbox.
RELEASE_RUNS = f"""
WITH released AS (
    UPDATE heads AS h SET status = w.status, owner = NULL, due_ms = w.due, stalls = 0,
                          ready = CASE WHEN w.status = 'running' THEN 1 ELSE 0 END
      FROM {WANTED.table}
     WHERE h.id = w.id AND h.epoch = w.epoch AND h.seq = w.seq
       AND (w.status = 'running' OR NOT EXISTS (SELECT 1 FROM inbox AS i WHERE i.run_id = h.id))
    RETURNING h.id, h.n, h.limits),
left_behind AS (
    UPDATE slots AS s SET freed = 1 FROM released AS r WHERE s.n = r.n AND s.freed = 0 AND r.limits IS NOT NULL),
folded AS (
    INSERT INTO snapshots (n, seq, format, code, plan_hash, checksum, data)
    SELECT r.n, s.seq, s.format, s.code, s.plan_hash, s.checksum, s.data
      FROM {SNAPSHOTS.table} JOIN released AS r ON r.id = s.run
    ON CONFLICT (n) DO UPDATE SET seq = excluded.seq, format = excluded.format, code = excluded.code,
                plan_hash = excluded.plan_hash, checksum = excluded.checksum, data = excluded.data)
SELECT id FROM released"""
# Those that have the same owner as before were not released. A process that lost one to another has no use for it.
STILL_OWNED = f"""
SELECT w.id FROM {WANTED.table}
 WHERE NOT EXISTS (SELECT 1 FROM heads AS h WHERE h.id = w.id AND h.epoch = w.epoch AND h.owner IS NOT NULL)"""


class Releases(Kind[Release]):
    locks = True

    def write(self, tx: Tx) -> psycopg.Cursor[Row]:
        snapshots = [(each.run_id, each.snapshot) for each in self.said if each.snapshot is not None]
        for run, snapshot in snapshots:
            check_length(run, snapshot)
        of_snapshots = SNAPSHOTS.values(
            (run, row.seq, row.format, row.code, row.plan_hash, row.checksum, row.data) for run, row in snapshots
        )
        return tx.ask(RELEASE_RUNS, {**self._values(), **of_snapshots})

    def look(self, session: Session) -> psycopg.Cursor[Row]:
        return session.execute(STILL_OWNED, self._values())

    def outcomes(self, rows: Sequence[Row]) -> list[Outcome | None]:
        released = {row[0] for row in rows}
        return [Outcome(run in released) for run in self.runs]

    def _values(self) -> dict[str, list[object]]:
        return WANTED.values(each[:5] for each in self.said)
