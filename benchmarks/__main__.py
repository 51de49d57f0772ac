"""`python -m benchmarks [--only name,...] [--json] [--repeat N]`: every benchmark beside its floor, as a ratio."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator

import msgspec

from benchmarks import core, durable, parts, serving, syncs
from benchmarks.measure import Figure, machine

BENCHMARKS: dict[str, Callable[[int], Iterator[Figure]]] = {
    **core.BENCHMARKS,
    **durable.BENCHMARKS,
    **syncs.BENCHMARKS,
    **parts.BENCHMARKS,
    **serving.BENCHMARKS,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", help=f"comma list of: {', '.join(BENCHMARKS)}")
    parser.add_argument("--repeat", type=int, default=3, help="how often ours and floor take turns; the best counts")
    parser.add_argument("--json", action="store_true", help="figures and machine as JSON")
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name] or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    began = time.monotonic()
    where = machine()
    out = sys.stderr if options.json else sys.stdout
    print(", ".join(f"{key} {value}" for key, value in where.items()), file=out)
    print(f"\n{'':46} {'ours':>10} {'floor':>10} {'':8} {'ratio':>6} {'must':>6} {'aim':>6}", file=out)
    figures: list[Figure] = []
    for name in names:
        for figure in BENCHMARKS[name](options.repeat):
            figures.append(figure)
            print(line(figure), file=out, flush=True)
    print(f"\n{time.monotonic() - began:.0f} s", file=out)
    if options.json:
        rows = [{**msgspec.to_builtins(figure), "ratio": figure.ratio, "verdict": figure.verdict} for figure in figures]
        print(msgspec.json.format(msgspec.json.encode({"machine": where, "figures": rows})).decode())
    return 0


def line(figure: Figure) -> str:
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    bounds = ["" if bound is None else f"{bound:g}" for bound in (figure.must, figure.aim)]
    cells = f"{number(figure.ours):>10} {number(figure.floor):>10} {figure.unit:8} {ratio:>6}"
    note = f"  ({figure.note})" if figure.note else ""
    return f"{figure.name:46} {cells} {bounds[0]:>6} {bounds[1]:>6} {figure.verdict:6}{note}"


def number(value: float | None) -> str:
    """Three digits that mean something."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    raise SystemExit(main())
