"""`python -m tests.simulation --seed 123`, or `--seeds 100000 --start 5000` for a soak."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.simulation.check import ORDERS, simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="one seed, with its journal")
    parser.add_argument("--seeds", type=int, default=2000, help="how many seeds")
    parser.add_argument("--start", type=int, default=0, help="the first one")
    parser.add_argument("--orders", type=int, default=ORDERS, help="orders of completion per seed")
    parser.add_argument("--first", action="store_true", help="stop at the first seed that fails")
    options = parser.parse_args()
    if options.seed is not None:
        for order, observed in enumerate(simulate(options.seed, options.orders)):
            print(f"--- order {order}: {observed.status}")
            for number, event in enumerate(observed.journal, 1):
                print(f"{number:5} {event}")
        return 0
    return soak(options.start, options.seeds, options.orders, options.first)


def soak(start: int, seeds: int, orders: int, first: bool = False) -> int:
    """Runs on after a failure, so that one night shows all of them. Exit code 1 when there was any."""
    began = time.monotonic()
    statuses: Counter[str] = Counter()
    commits = nodes = 0
    failures: list[int] = []
    for seed in range(start, start + seeds):
        try:
            runs = simulate(seed, orders)
        except AssertionError as error:
            failures.append(seed)
            print(error, file=sys.stderr)
            if first:
                print(f"first failure: {seed}")
                return 1
            continue
        statuses.update(run.status for run in runs)
        commits += sum(run.commits for run in runs)
        nodes += sum(len(run.decided) for run in runs)
    took_s = time.monotonic() - began
    print(f"{seeds} seeds, {dict(statuses)}, {nodes} nodes, {commits} commits, {took_s:.1f} s, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
