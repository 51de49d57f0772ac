"""Claims of any runs of one pool that are free and due, and the runs that their owner gives up.

Nearly every claim is of this form: one statement that does what `topics/claims.py` does. It claims nothing, and leaves
the claim to that function, when there are runs of a dead worker, a free place of a limit, or a run with limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import psycopg
from msgspec.structs import astuple, replace

from executor.kernel.store.postgres.batch import Array
from executor.kernel.store.postgres.dialect import lease_now
from executor.kernel.store.postgres.hot.kind import Answered, Asked, Columns, Kind, Session
from executor.kernel.store.run_rows import DEFAULT_POOLS, RunRow
from executor.kernel.store.statements import Row, RunStatus
from executor.kernel.store.topics.claims import FOLDABLE, ORPHANED, READY_MAX, behind
from executor.kernel.store.topics.runs import RUN
from executor.kernel.store.topics.snapshots import REPLACING, SNAPSHOT, SnapshotRow, check_length
from executor.kernel.store.writer import Outcome


class Claim(NamedTuple):
    """The parameters of `claim`."""

    owner: str
    now_ms: int
    lease_ms: int
    limit: int = 1
    run_id: str | None = None
    pools: Mapping[str, str] = DEFAULT_POOLS


# The number of runs that the first step of a walk over the keys reads. If a key has WALK_PER_KEY of them at most, on
# average, the next step reads as many as are wanted; else a step reads one, so that the many runs of a key are not all
# read.
WALK_FIRST, WALK_PER_KEY = 10, 8
_COLUMNS = {name: f"runs.{name}" for name in RUN.split(", ")} | {
    "status": "'running'",
    "seq": "t.seq",
    "epoch": "t.epoch",
    "lease_owner": "%(owner)s::text",
    "lease_until_ms": "%(now)s::bigint + %(lease)s::bigint",
    "next_run_at_ms": "t.due_ms",
    "started_at_ms": "t.started_at_ms",
    "stalls": "t.stalls",
}
# `claims.MAKE_READY` of one pool.
MAKE_READY = f"""
UPDATE heads SET ready = 1
 WHERE n = ANY(ARRAY(
    SELECT h.n FROM heads AS h
     WHERE h.pool = %(pool)s AND h.owner IS NULL AND h.ready = 0 AND h.blocked_by IS NULL AND h.due_ms <= %(now)s
     LIMIT {READY_MAX} FOR NO KEY UPDATE SKIP LOCKED))"""
# `walk`: over the keys from the one after the last claim on, and in a second lap from the first. A step without keys
# ends a lap; chr(1): see `claims.behind`. First comes the first run of each key, then the second of each. `ANY`,
# `OFFSET`, `FULL`: so that rows are looked for by their numbers, and joined by hash, however many the planner thinks
# there are. Always one row, whose first value is whether the claim is left to the function.
CLAIM_RUNS = f"""
WITH RECURSIVE odd AS MATERIALIZED (
    SELECT EXISTS (SELECT 1 FROM slots WHERE freed = 1)
        OR EXISTS (SELECT 1 FROM workers WHERE until_ms <= {lease_now("%(now)s::bigint")}) AS there),
walk (fairs, keys, before, rows, lap) AS (
    SELECT NULL::text[] COLLATE "C", 0::bigint, 0::bigint, 0::bigint, -1 WHERE NOT (SELECT there FROM odd)
    UNION ALL
    SELECT step.fairs, step.keys, next.before, next.rows, next.lap
      FROM (SELECT w.before + w.keys AS before,
                   CASE WHEN w.lap < 0 THEN %(from)s
                        WHEN w.keys = 0 THEN '' ELSE w.fairs[w.keys] || chr(1) END AS start,
                   CASE WHEN w.keys = 0 THEN {WALK_FIRST} WHEN w.rows = 1 OR w.keys * {WALK_PER_KEY} < w.rows THEN 1
                        ELSE %(limit)s END::bigint AS rows,
                   CASE WHEN w.keys = 0 THEN w.lap + 1 ELSE w.lap END AS lap
              FROM walk AS w
             WHERE CASE WHEN w.keys = 0 THEN w.lap < 0 OR w.lap = 0 AND %(from)s::text <> ''
                        ELSE w.before + w.keys < %(limit)s AND (w.lap = 0 OR w.fairs[w.keys] < %(from)s) END) AS next
      CROSS JOIN LATERAL (
        SELECT array_agg(key.fair ORDER BY key.fair) AS fairs, count(*) AS keys
          FROM (SELECT DISTINCT run.fair
                  FROM (SELECT h.fair FROM heads AS h
                         WHERE h.pool = %(pool)s AND h.ready = 1 AND h.fair >= next.start
                         ORDER BY h.fair LIMIT next.rows) AS run) AS key) AS step),
found AS MATERIALIZED (
    SELECT key.fair, w.before + key.place AS place
      FROM walk AS w CROSS JOIN LATERAL unnest(w.fairs) WITH ORDINALITY AS key (fair, place)
     WHERE w.before + key.place <= %(limit)s AND (w.lap = 0 OR key.fair < %(from)s)),
due AS MATERIALIZED (
    SELECT h.n, h.is_limited, found.place,
           row_number() OVER (PARTITION BY found.place ORDER BY h.priority DESC, h.due_ms, h.id) AS turn
      FROM found
      CROSS JOIN LATERAL (
        SELECT q.n, q.priority, q.due_ms, q.id, q.limits IS NOT NULL OR q.rates IS NOT NULL AS is_limited
          FROM heads AS q
         WHERE q.pool = %(pool)s AND q.ready = 1 AND q.fair = found.fair AND q.due_ms <= %(now)s AND q.{FOLDABLE}
         ORDER BY q.priority DESC, q.due_ms, q.id
         LIMIT (SELECT (%(limit)s::bigint + count(fair) - 1) / greatest(count(fair), 1) FROM found)
           FOR NO KEY UPDATE SKIP LOCKED) AS h),
picked AS MATERIALIZED (SELECT n, turn, place, is_limited FROM due ORDER BY turn, place LIMIT %(limit)s),
limited AS MATERIALIZED (SELECT EXISTS (SELECT 1 FROM picked WHERE is_limited) AS there),
taken AS (
    UPDATE heads AS h
       SET owner = %(owner)s, ready = 0, blocked_by = NULL, epoch = h.epoch + 1, stalls = h.stalls + 1,
           status = 'running', started_at_ms = coalesce(h.started_at_ms, %(now)s)
     WHERE h.n = ANY(ARRAY(SELECT p.n FROM picked AS p WHERE NOT (SELECT there FROM limited)))
       AND h.owner IS NULL AND h.due_ms <= %(now)s
    RETURNING h.n, h.epoch, h.seq, h.stalls, h.due_ms, h.started_at_ms, h.pool, h.fair),
held AS (
    INSERT INTO workers (id, until_ms)
    SELECT %(owner)s, {lease_now("%(now)s::bigint")} + %(lease)s WHERE EXISTS (SELECT 1 FROM taken)
    ON CONFLICT (id) DO UPDATE SET until_ms = excluded.until_ms)
SELECT odd.there OR limited.there, {", ".join(_COLUMNS.values())}, {ORPHANED}, t.pool, t.fair
  FROM odd CROSS JOIN limited
  LEFT JOIN (taken AS t FULL JOIN picked AS p ON p.n = t.n
             CROSS JOIN LATERAL (SELECT * FROM run_details AS d WHERE d.n = t.n OFFSET 0) AS runs) ON true
 ORDER BY p.turn, p.place"""
NONE = "SELECT true WHERE false"


class Claims(Kind[Claim]):
    def write(self, tx: Asked) -> Answered:
        (claim,) = self.asked
        ((pool, after),) = claim.pools.items()
        tx.send(MAKE_READY, {"now": claim.now_ms, "pool": pool})
        values = {"owner": claim.owner, "now": claim.now_ms, "lease": claim.lease_ms, "limit": claim.limit}
        return tx.ask(CLAIM_RUNS, {**values, "pool": pool, "from": behind(after)})

    def look(self, session: Session) -> psycopg.Cursor[Row]:
        """Return no runs, as none is known to be of this claim: their owner gives them back with its next heartbeat."""
        return session.execute(NONE)

    def outcomes(self, rows: Sequence[Row]) -> list[Outcome | None]:
        if rows and rows[0][0]:
            return [None]
        return [Outcome([_run(row) for row in rows if row[1] is not None])]


def _run(row: Row) -> RunRow:
    *values, orphaned, pool, fair = row[1:]
    return replace(RunRow(*values), orphaned=bool(orphaned), pool=pool, fair=fair)


def is_plain(claim: Claim) -> bool:
    return claim.run_id is None and len(claim.pools) == 1 and claim.limit > 0


class Release(NamedTuple):
    """The parameters of `release`."""

    run_id: str
    epoch: int
    seq: int
    next_run_at_ms: int | None
    status: RunStatus
    snapshot: SnapshotRow | None = None


RELEASES = Columns("w", id="t", epoch="n", seq="n", due="n", status="t")
SNAPSHOTS = Columns("s", run="t", seq="n", format="n", code="t", plan_hash="t", checksum="n", data="b")
# A run that is not returned has another owner, or a message in its inbox and must not sleep. `ANY`: so that rows are
# looked for by their ids, and joined by hash, also with a plan from when there were few.
RELEASE_RUNS = f"""
WITH released AS (
    UPDATE heads AS h SET status = w.status, owner = NULL, due_ms = w.due, stalls = 0,
                          ready = CASE WHEN w.status = 'running' THEN 1 ELSE 0 END
      FROM {RELEASES.table}
     WHERE h.id = ANY(%(w_id)s::text[]) AND h.id = w.id AND h.epoch = w.epoch AND h.seq = w.seq
       AND (w.status = 'running' OR NOT EXISTS (SELECT 1 FROM inbox AS i WHERE i.run_id = h.id))
    RETURNING h.id, h.n, h.limits),
left_behind AS (
    UPDATE slots AS s SET freed = 1 FROM released AS r WHERE s.n = r.n AND s.freed = 0 AND r.limits IS NOT NULL),
folded AS (
    INSERT INTO snapshots (n, {SNAPSHOT})
    SELECT r.n, s.seq, s.format, s.code, s.plan_hash, s.checksum, s.data
      FROM {SNAPSHOTS.table} JOIN released AS r ON r.id = s.run
    {REPLACING})
SELECT id FROM released"""
# Runs that have the same owner as before were not released. A process that lost one to another has no use for it.
STILL_OWNED = f"""
SELECT w.id FROM {RELEASES.table}
 WHERE NOT EXISTS (SELECT 1 FROM heads AS h WHERE h.id = w.id AND h.epoch = w.epoch AND h.owner IS NOT NULL)"""


class Releases(Kind[Release]):
    locks = True

    def write(self, tx: Asked) -> Answered:
        snapshots = [(each.run_id, each.snapshot) for each in self.asked if each.snapshot is not None]
        for run, snapshot in snapshots:
            check_length(run, snapshot)
        of_snapshots = SNAPSHOTS.values((run, *astuple(row)) for run, row in snapshots)
        return tx.ask(RELEASE_RUNS, {**self._values(), **of_snapshots})

    def look(self, session: Session) -> psycopg.Cursor[Row]:
        return session.execute(STILL_OWNED, self._values())

    def _values(self) -> dict[str, Array]:
        return RELEASES.values(each[:5] for each in self.asked)
