"""`python -m tests.simulation.world --seed 123`, or `--seeds 5000 --start 100` for more of them."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.simulation.world.world import World, simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.world", description=__doc__)
    parser.add_argument("--seed", type=int, help="one seed, with what came of it")
    parser.add_argument("--seeds", type=int, default=300, help="how many seeds")
    parser.add_argument("--start", type=int, default=0, help="the first one")
    parser.add_argument("--first", action="store_true", help="stop at the first seed that fails")
    options = parser.parse_args()
    if options.seed is not None:
        _show(simulate(options.seed))
        return 0
    return soak(options.start, options.seeds, options.first)


def soak(start: int, seeds: int, first: bool = False) -> int:
    """Runs on after a failure, so that one night shows all of them. Exit code 1 when there was any."""
    began = time.monotonic()
    totals: Counter[str] = Counter()
    failures = 0
    for seed in range(start, start + seeds):
        try:
            world = simulate(seed)
        except AssertionError as error:
            failures += 1
            print(error, file=sys.stderr)
            if first:
                print(f"first failure: {seed}")
                return 1
            continue
        totals.update(seen.status for seen in world.observed.values())
        totals.update(commits=world.ledger.commits, events=world.ledger.events, **world.strikes)
    took_s = time.monotonic() - began
    print(f"{seeds} seeds, {dict(totals)}, {took_s:.1f} s, {failures} failed")
    return 1 if failures else 0


def _show(world: World) -> None:
    print(world.faults, world.tunables, world.strikes)
    for run, seen in world.observed.items():
        print(f"--- run {run}: {seen.status}")
        for number, event in enumerate(seen.journal, 1):
            print(f"{number:5} {event}")
    print(f"{world.loop.steps} callbacks, {world.ledger.commits} commits, {world.loop.time():.1f} s of virtual time")


if __name__ == "__main__":
    raise SystemExit(main())
