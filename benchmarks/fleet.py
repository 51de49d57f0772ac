"""A fleet of equal workers on one PostgreSQL: steps a second and what a step costs, by the number of workers, and how
evenly they share.

Each sample starts a PostgreSQL of its own on the disk that is measured and real `weft worker` processes, submits more
runs than they can finish, and looks at a window of time that begins when all of them are at work. Workers, the database
and what counts them share the processors of one machine: the rate grows until these are used up, and the CPU time of a
step tells what more machines would do.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from benchmarks.measure import folder
from benchmarks.sample import ROOT, program
from benchmarks.sequence import Take, collect, spread_of
from benchmarks.statistics import Figure, Target
from benchmarks.workloads import Document, document
from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.python import Python
from executor.blocks.types.registry import Registry
from executor.open.engine import Engine

WORKERS = (1, 2, 4)
STEPS, RUNS = 50, 5_000  # more than two processors can do until the window ends
WINDOW_S = 4.0
WARM_S = 1.0  # after the first step of the last worker
START_S = 60.0
AT_ONCE = 100  # submissions
SAMPLES = 2
SHARE = 0.25  # a worker may have so much more or less than its part
TICKS = os.sysconf("SC_CLK_TCK")


class Counter:
    """The steps that this process has done, in a file of its name: others can read it at any time."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(8))
        with path.open("r+b") as file:
            self._count = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")

    def add(self) -> None:
        self._count[0] += 1


_counters: dict[str, Counter] = {}


async def step(counts: str) -> bool:
    """The function that workers execute. `counts`: the folder of the counters."""
    counter = _counters.get(counts)
    if counter is None:
        counter = _counters[counts] = Counter(Path(counts) / str(os.getpid()))
    counter.add()
    return True


def worked(workers: str) -> list[float]:
    """Steps a second, CPU microseconds of a step of the workers and of the database, and the smallest and the largest
    part of one worker in what they did, where 1 is the same for all."""
    from examples.fleet.database import Database  # the extra `postgres`, and the wheel

    with folder() as path, ExitStack() as stack:
        path.chmod(0o755)  # for the account that PostgreSQL runs as
        database = Database(parent=str(path))
        stack.callback(database.remove)
        database.start()
        counts = path / "counts"
        counts.mkdir()
        asyncio.run(_submit(database.address, _chain(counts)))
        processes = [_worker(database.address, path, stack) for _ in range(int(workers))]
        counters = [counts / str(process.pid) for process in processes]
        _wait_for(counters, processes)
        time.sleep(WARM_S)
        assert database.pid is not None
        began = _Reading.take(counters, processes, database.pid)
        time.sleep(WINDOW_S)
        ended = _Reading.take(counters, processes, database.pid)
    assert sum(ended.done) < RUNS * STEPS, "they have done everything: submit more"
    done = [after - before for before, after in zip(began.done, ended.done, strict=True)]
    total = sum(done)
    parts = [each / total * len(done) for each in done]
    return [
        total / (ended.at_s - began.at_s),
        (ended.workers_s - began.workers_s) / total * 1e6,
        (ended.database_s - began.database_s) / total * 1e6,
        min(parts),
        max(parts),
    ]


class _Reading(Struct):
    """Steps by worker, and CPU seconds."""

    at_s: float
    done: list[int]
    workers_s: float
    database_s: float

    @classmethod
    def take(cls, counters: Sequence[Path], processes: Sequence[subprocess.Popen[bytes]], database: int) -> _Reading:
        workers_s = _cpu_s(process.pid for process in processes)
        return cls(time.monotonic(), _done(counters), workers_s, _cpu_of_tree_s(database))


def _chain(counts: Path) -> Document:
    ids = [f"s{n}" for n in range(STEPS)]
    params = {"function": "step", "arguments": {"counts": str(counts)}}
    edges = list(zip(["start", *ids], ids, strict=False))
    return document("fleet", {id: {"type": "python", "params": params} for id in ids}, [*edges])


async def _submit(address: str, document: Document) -> None:
    """Before there is a worker, so that none of their time goes into it."""
    from executor.kernel.store.postgres.store import PostgresStore

    sandbox = Sandbox()
    engine = await Engine.open(
        PostgresStore(address),
        registry=Registry.load([Python({"step": step})], sandbox=sandbox),
        services=Services(sandbox=sandbox, http=GuardedClient()),
        work=False,
    )
    try:
        for _ in range(0, RUNS, AT_ONCE):
            await asyncio.gather(*(engine.submit(document) for _ in range(AT_ONCE)))
    finally:
        await engine.close()


def _worker(address: str, path: Path, stack: ExitStack) -> subprocess.Popen[bytes]:
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("WEFT_")},
        "WEFT_DB": address,
        "WEFT_SECRET_KEY": "k" * 32,
        "WEFT_FUNCTIONS": f"{__name__}:step",
    }
    with (path / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "server", "worker", "--grace", "1"], cwd=ROOT, env=environ, stdout=log, stderr=log
        )
    stack.callback(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    """Killed: what it has is not needed, and to give it back takes as long as to do it."""
    process.kill()
    process.wait()


def _wait_for(counters: Sequence[Path], processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Until each has done a step."""
    until = time.monotonic() + START_S
    while not all(_done(counters)):
        assert time.monotonic() < until and all(one.poll() is None for one in processes), "a worker did not begin"
        time.sleep(0.01)


def _done(counters: Sequence[Path]) -> list[int]:
    return [int.from_bytes(each.read_bytes(), sys.byteorder) if each.exists() else 0 for each in counters]


def _cpu_s(pids: Iterable[int]) -> float:
    return sum(sum(map(int, _stat(pid)[11:13])) for pid in pids) / TICKS


def _cpu_of_tree_s(root: int) -> float:
    """Of a PostgreSQL: its first process, those that it has, and those that have ended."""
    children = [int(pid) for pid in Path(f"/proc/{root}/task/{root}/children").read_text().split()]
    return (sum(map(int, _stat(root)[11:15]))) / TICKS + _cpu_s(children)


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


class Curve(Struct, frozen=True):
    """The figures of each number of workers."""

    workers: Sequence[int] = WORKERS

    def figures(self, section: str, wanted: int, take: Take) -> list[Figure]:
        programs = {str(count): program(worked, count) for count in self.workers}
        series = collect(programs, min(wanted, SAMPLES), take)
        found = []
        for count in self.workers:
            one = series[str(count)]
            name = f"{count} worker{'s' if count > 1 else ''}"
            for n, (what, unit, target) in enumerate(PARTS if count > 1 else PARTS[:3]):
                found.append(
                    Figure(
                        section,
                        f"{name}: {what}",
                        unit,
                        spread_of(one, n),
                        target=target,
                        samples=len(one.samples),
                        thrown=one.thrown,
                    )
                )
        return found


PARTS: tuple[tuple[str, str, Target | None], ...] = (
    ("rate", "steps/s", None),
    ("worker CPU", "us/step", None),
    ("database CPU", "us/step", None),
    ("smallest share", "of an equal one", Target(1 - SHARE, of="value", least=True)),
    ("largest share", "of an equal one", Target(1 + SHARE, of="value")),
)

BENCHMARKS = {"fleet": [Curve()]}
