"""`python -m benchmarks.sizing`: the tables of "Size it" in docs/howto/run-on-postgresql.md, from what was measured.

Paper: nothing here was run at these sizes. The inputs are microseconds of one core and bytes; a run has ten steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

MONTH_S = 30 * 86_400


class Inputs(Struct, frozen=True):
    database_us: float = 46  # a step, in groups of 16
    worker_us: float = 190  # a step, four workers on one machine
    wal_step: int = 1_200
    wal_run: int = 5_000
    disk_run: int = 12_000
    steps: int = 10
    peak: float = 4  # times the mean
    # Of one process: sessions, the one that listens among them; heartbeats and looks for runs in five seconds.
    sessions: int = 6
    pooled: int = 40  # sessions of pgbouncer, for all processes
    look_us: float = 150
    notify_us: float = 45  # for each process that listens


def by_volume(inputs: Inputs, runs_a_month: Sequence[int] = (10**6, 10**7, 10**8, 10**9)) -> Iterator[list[str]]:
    for runs in runs_a_month:
        mean = runs / MONTH_S
        steps = mean * inputs.peak * inputs.steps
        wal = mean * inputs.peak * (inputs.steps * inputs.wal_step + inputs.wal_run)
        yield [
            f"10^{len(str(runs)) - 1}",
            _number(mean),
            _number(steps),
            _number(steps * inputs.database_us / 1e6),
            _number(steps * inputs.worker_us / 1e6),
            f"{_number(wal / 1e6)} MB/s",
            f"{_number(runs * inputs.disk_run / 1e9)} GB",
        ]


def by_processes(inputs: Inputs, processes: Sequence[int] = (4, 30, 100, 1_000)) -> Iterator[list[str]]:
    for count in processes:
        yield [
            f"{count:,}",
            f"{count * inputs.sessions:,}",
            f"{inputs.pooled + count:,}",
            _number(count / 5 * 2),
            _number(count / 5 * inputs.look_us / 1e6),
            _number(count * count * inputs.notify_us / 1e6),
        ]


VOLUME = ("runs a month", "runs/s", "steps/s at the peak", "PostgreSQL cores", "worker cores", "WAL", "disk a month")
PROCESSES = (
    "processes",
    "sessions",
    "behind pgbouncer",
    "heartbeats and looks/s",
    "cores for looks",
    "cores for the bus, 1 notification/s each",
)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def tables(inputs: Inputs | None = None) -> list[str]:
    inputs = inputs or Inputs()
    return [table(VOLUME, by_volume(inputs)), table(PROCESSES, by_processes(inputs))]


def _number(value: float) -> str:
    """Two digits that mean something."""
    return f"{round(value):,}" if value >= 10 else f"{float(f'{value:.2g}'):g}"


if __name__ == "__main__":
    print("\n\n".join(tables()))
