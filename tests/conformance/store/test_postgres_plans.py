"""Plans of what a writer says to PostgreSQL often. Each statement is planned once for a session: a plan that was made
while tables were empty, and was never ANALYZEd, is used when they have many rows."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("psycopg")

import psycopg

from executor.kernel.store.postgres.store import PostgresStore
from tests.conformance.store.test_postgres_groups import KINDS, RUNS, changes_of
from tests.support.rows import LEASE_MS, T0, change, new_run, owned_run, placed, record
from tests.support.until import until

ROWS = 20_000
ROUNDS = 7  # psycopg prepares what it is asked for the sixth time
ADD_ROWS = """
WITH added AS (
    INSERT INTO run_details (id, workflow, plan_hash, request_hash, created_at_ms, input)
    SELECT 'many-' || i, 'w', 'p', '', 1, '' FROM generate_series(1, %(rows)s) AS i RETURNING n, id),
queued AS (
    INSERT INTO heads (n, id, status, seq, epoch, stalls, due_ms, fair, ready, owner)
    SELECT n, id, 'queued', 1, 1, 0, n, 'key ' || n %% %(keys)s, n %% 2, CASE WHEN n %% 2 = 0 THEN 'other' END
      FROM added)
INSERT INTO batches (n, seq, first_seq, output_bytes, checksum, head, payload)
SELECT n, 1, 1, 0, 0, '[]', '' FROM added"""
# What statements have read so far: rows by scans of tables, and entries of indexes.
READ = """
SELECT 'rows of ' || relname, seq_tup_read FROM pg_stat_user_tables WHERE seq_tup_read > 0
UNION ALL SELECT 'entries of ' || indexrelname, idx_tup_read FROM pg_stat_user_indexes WHERE idx_tup_read > 0"""
SESSIONS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


async def _round(store: PostgresStore, number: int) -> None:
    """A group of each kind, and both ways to claim."""
    for kind in KINDS:
        changes = await changes_of(store, kind, RUNS, number * RUNS)
        await asyncio.gather(*(each() for each in changes))
    runs = [await owned_run(store, f"run-{number}-{n}") for n in range(RUNS)]
    await asyncio.gather(*(store.append(change(run, record())) for run in runs))
    await store.create_run(new_run(f"queued-{number}"))
    assert await store.claim("w1", T0, LEASE_MS, RUNS)
    await store.create_run(placed(f"limited-{number}", limits=(("key", 100),)))
    assert await store.claim("w1", T0, LEASE_MS, RUNS, pools={"other": "", "default": ""})
    await store.renew("w1", [], T0, LEASE_MS)


@pytest.mark.parametrize("keys", [1, ROWS])
async def test_a_plan_of_an_empty_database_serves_a_full_one(postgres: str, keys: int) -> None:
    with psycopg.connect(postgres, autocommit=True) as other:
        assert other.execute("SHOW autovacuum").fetchall() == [("off",)]
        is_old = other.info.server_version < 180_000
        store = PostgresStore(postgres)
        await store.open()
        try:
            for number in range(ROUNDS):
                await _round(store, number)
            other.execute(ADD_ROWS, {"rows": ROWS, "keys": keys})
            if is_old:  # a claim sorts all that is ready until the first ANALYZE, which autovacuum makes
                other.execute("ANALYZE heads")
            await _round(store, ROUNDS)
        finally:
            await store.close()
        # A session says what it read at the latest when it ends.
        await until(lambda: not other.execute(SESSIONS).fetchall())
        other.execute("SELECT pg_stat_clear_snapshot()")
        read: dict[str, int] = dict(other.execute(READ).fetchall())
        analyzed = other.execute("SELECT 1 FROM pg_class WHERE relname = 'heads' AND reltuples >= 0").fetchall()
        assert bool(analyzed) == is_old
    much = {what: count for what, count in read.items() if count >= ROWS // 4}
    assert not much, f"a statement of the last round read whole tables or indexes: {much}"
