"""A day of old runs on PostgreSQL: dropped with its part of the journals, and deleted row by row.

All begin with the same rows, made by SQL, and end with none of them, nor dead ones. `parts`: as it is done. `rows`: as
`weft gc` deletes where there are no parts, with a vacuum. `statements`: two DELETEs without any promise, with a vacuum,
which is what has to be written at the least. Computing time is of this process and of everything PostgreSQL ran for it
meanwhile, from /proc.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.measure import folder
from benchmarks.sample import program
from benchmarks.sequence import Sampled
from benchmarks.statistics import Target
from executor.service.upkeep.gc import Collected, collect

RUNS, BATCHES, BYTES = 3_000, 50, 700
DAY_MS = 86_400_000
FILL = f"""
INSERT INTO run_details (id, workflow, version, plan_hash, request_hash, created_at_ms, status, seq, epoch,
                         started_at_ms, finished_at_ms, input, output)
SELECT 'r' || i, 'w', 1, 'p', 'q', i, 'succeeded', {BATCHES}, 1, i, i + 1, convert_to(repeat('x', 200), 'UTF8'), '1'
  FROM generate_series(1, {RUNS}) AS i;
INSERT INTO batches (n, seq, first_seq, output_bytes, checksum, head, payload)
SELECT d.n, s, s, 0, 0, '[[1700000000000,"node.succeeded","draft","",1,0,null,600]]',
       convert_to(repeat(md5(s::text), {BYTES // 32}), 'UTF8')
  FROM run_details AS d, generate_series(1, {BATCHES}) AS s;
"""
WAL = "SELECT pg_current_wal_insert_lsn() - '0/0'"
LEFT = "SELECT (SELECT count(*) FROM run_details) + (SELECT count(*) FROM batches)"


class Costs(Struct):
    cpu_ms: float
    wal_kb: float


def retired(how: str, what: str) -> list[float]:
    from examples.fleet.database import Database  # the extra `postgres`, and the wheel

    with folder() as path:
        path.chmod(0o755)  # for the account that PostgreSQL runs as
        database = Database(("autovacuum=off",), parent=str(path))
        try:
            database.start()
            assert database.pid is not None
            return [getattr(asyncio.run(_retired(database.address, database.pid, how)), what)]
        finally:
            database.remove()


async def _retired(address: str, server: int, how: str) -> Costs:
    import psycopg

    from executor.kernel.store.postgres.store import PostgresStore

    store = PostgresStore(address)
    await store.open()
    try:
        with psycopg.connect(address, autocommit=True) as other:
            other.execute(FILL)
            await store.retire_days(None, 1)  # cuts: all that is there is of an old day
            other.execute("VACUUM ANALYZE")
            other.execute("CHECKPOINT")
            wal, cpu = _number(other, WAL), _cpu_s(server) + time.process_time()
            if how == "parts":
                deleted = await collect(store, RUNS + 2 + DAY_MS, DAY_MS)
            elif how == "statements":
                other.execute("DELETE FROM run_details")
                other.execute("DELETE FROM batches")
                other.execute("VACUUM batches")
                deleted = Collected(RUNS, RUNS * BATCHES)
            else:
                store.retire_days = _no_parts  # type: ignore[method-assign]  # as a database without them
                deleted = await collect(store, RUNS + 2 + DAY_MS, DAY_MS)
                other.execute("VACUUM batches")
            other.execute("VACUUM run_details")
            cpu_s = _cpu_s(server) + time.process_time() - cpu
            assert (deleted.runs, deleted.events, _number(other, LEFT)) == (RUNS, RUNS * BATCHES, 0), deleted
            return Costs(cpu_s * 1e3, (_number(other, WAL) - wal) / 1024)
    finally:
        await store.close()


async def _no_parts(ended_before_ms: int | None, every_days: int) -> None:
    return None


def _number(connection: Any, query: str) -> float:
    ((value,),) = connection.execute(query).fetchall()
    return float(value)


def _cpu_s(server: int) -> float:
    """Of the server and all its processes, also those that have ended."""
    tick = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == server or path.name == str(server):
                total += (int(fields[11]) + int(fields[12])) / tick
            if path.name == str(server):
                total += (int(fields[13]) + int(fields[14])) / tick
        except OSError:
            continue  # it has ended
    return total


def _beside(floor: str, what: str) -> Any:
    return {
        "ours": program(retired, "parts", what),
        "floor": program(retired, floor, what),
        "target": Target(0.1),
        "share": 6,
    }


RETIRING = [
    Sampled("a day retired, CPU; the floor deletes run by run", "ms", **_beside("rows", "cpu_ms")),
    Sampled("a day retired, WAL; the floor is two DELETEs", "KB", **_beside("statements", "wal_kb")),
]
