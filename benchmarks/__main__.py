"""`python -m benchmarks [--only name,...] [--samples N] [--compare peers] [--json]`: benchmarks beside their floors."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence

from benchmarks import (
    compare,
    core,
    durable,
    fleet,
    functions,
    growth,
    parts,
    postgres,
    report,
    serving,
    streaming,
    syncs,
)
from benchmarks.measure import machine
from benchmarks.report import Report
from benchmarks.sequence import Benchmark, Taker
from benchmarks.statistics import Figure

BENCHMARKS: Mapping[str, Sequence[Benchmark]] = {
    **durable.BENCHMARKS,
    **functions.BENCHMARKS,
    **syncs.BENCHMARKS,
    **core.BENCHMARKS,
    **growth.BENCHMARKS,
    **parts.BENCHMARKS,
    **serving.BENCHMARKS,
    **streaming.BENCHMARKS,
    **postgres.BENCHMARKS,
    **fleet.BENCHMARKS,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", help=f"comma list of: {', '.join(BENCHMARKS)}")
    parser.add_argument("--samples", type=int, default=10, help="quiet samples that are wanted of each program (10)")
    parser.add_argument("--compare", choices=["peers"], help="run the durable workloads on LangGraph and DBOS as well")
    parser.add_argument("--json", action="store_true", help="figures and machine as JSON")
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name] or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a process without it imports two to three times as fast
    where, benchmarks = machine(), dict(BENCHMARKS)
    if options.compare:
        python = compare.interpreter()
        try:
            where |= compare.versions(python)
        except compare.NotInstalled as error:
            parser.exit(2, f"{error}\n")
        benchmarks |= compare.beside(durable.WORKLOADS, python)
    began = time.monotonic()
    out = sys.stderr if options.json else sys.stdout
    print(", ".join(f"{key} {value}" for key, value in where.items()), file=out)
    print(f"\n{report.HEAD}", file=out)
    figures: list[Figure] = []
    for name in names:
        for benchmark in benchmarks[name]:
            for figure in benchmark.figures(name, options.samples, Taker()):
                figures.append(figure)
                print(report.line(figure), file=out, flush=True)
    print(f"\n{report.total(figures)}; {time.monotonic() - began:.0f} s", file=out)
    if options.json:
        print(report.to_json(Report(where, figures)).decode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
