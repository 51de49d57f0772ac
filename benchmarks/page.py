"""`python -m benchmarks.page`: writes the figures into docs/reference/performance.md, between two markers.

What stands around the markers is written by hand. The figures are those of `results/figures.json`, which `make bench`
saves; the page is never edited between the markers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.compare import PACKAGES
from benchmarks.report import Report, both, from_json, number
from benchmarks.sample import ROOT
from benchmarks.statistics import FOREIGN_MAX, Figure

FIGURES = ROOT / "benchmarks" / "results" / "figures.json"
PAGE = ROOT / "docs" / "reference" / "performance.md"
BEGIN = "<!-- figures: `make bench` writes everything up to the next marker -->"
END = "<!-- end of figures -->"
DURABLE = ("chain", "fan", "loop", "runs", "resume", "short")
NOT_KNOWN = "not measured"


class PageError(Exception):
    """The page has not exactly one place for figures."""


def main() -> int:
    report = from_json(FIGURES.read_bytes())
    PAGE.write_text(write(PAGE.read_text(encoding="utf-8"), report), encoding="utf-8")
    return 0


def write(page: str, report: Report) -> str:
    """The page with these figures in place of those that it has."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise PageError(f"the page needs one {BEGIN!r} and after it one {END!r}")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{figures(report)}\n{END}{after}"


def figures(report: Report) -> str:
    parts = [measured(report)]
    if durable := [one for one in _to_the_floor(report) if one.section in DURABLE]:
        parts += ["### Durable work, beside the floor", beside_the_floor(durable)]
    if others := [one for one in report.figures if one.beside_name not in ("", "floor")]:
        parts += ["### Durable work, beside other systems", beside_others(others)]
    if counts := [one for one in report.figures if one.counted is not None]:
        parts += ["### Syncs", counted(counts)]
    if rest := [one for one in _to_the_floor(report) if one.section not in DURABLE]:
        parts += ["### Everything else", beside_the_floor(rest)]
    return "\n\n".join(parts) + "\n"


def measured(report: Report) -> str:
    """Where, when, and how much was thrown away."""
    machine = report.machine
    samples, thrown = sum(one.samples for one in report.figures), sum(one.thrown for one in report.figures)
    versions = ", ".join(f"{name} {machine[name]}" for name in PACKAGES if name in machine)
    return (
        f"Measured on {machine['date']}: {machine['processor']}, {machine['cpus']} processors, {machine['system']}, "
        f"{machine['disk']}, Python {machine['python']}, SQLite {machine['sqlite']}"
        + (f"; {versions}" if versions else "")
        + f". {thrown} of {samples} samples were thrown away because other programs used more than {FOREIGN_MAX} "
        "processors meanwhile."
        + (f" Where none was left, the table says *{NOT_KNOWN}*." if any(one.busy for one in report.figures) else "")
    )


def beside_the_floor(found: Sequence[Figure]) -> str:
    head = ("what", "unit", "weft, p10 / p50", "floor, p10 / p50", "ratio of p10", "ratio of p50", "target", "")
    return table(head, (_row(one) for one in found))


def beside_others(found: Sequence[Figure]) -> str:
    head = ("what", "unit", "weft, p10 / p50", "other", "p10 / p50", "times more, p10", "times more, p50", "target", "")
    rows = []
    for one in found:
        name, unit, ours, other, *rest = _row(one)
        rows.append([name, unit, ours, one.beside_name, other, *rest])
    return table(head, rows)


def counted(found: Sequence[Figure]) -> str:
    rows = [[one.name, number(one.counted), *_asked(one), one.note] for one in found]
    return table(("what", "syncs per step", "target", "", "how"), rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join("".join(f"| {cell} " if cell else "| " for cell in row) + "|" for row in [head, rule, *rows])


def _to_the_floor(report: Report) -> Iterator[Figure]:
    return (one for one in report.figures if one.beside_name in ("", "floor") and one.counted is None)


def _row(one: Figure) -> list[str]:
    name = f"{one.name} ({one.note})" if one.note else one.name
    if one.busy:
        return [name, one.unit, NOT_KNOWN, NOT_KNOWN, "", "", *_asked(one)]
    return [name, one.unit, both(one.ours), both(one.beside), number(one.ratio_p10), number(one.ratio), *_asked(one)]


def _asked(one: Figure) -> list[str]:
    """The target, and whether it is met."""
    if one.target is None:
        return ["", ""]
    of = f" {one.unit}" if one.target.of == "value" else ""
    return [f"{one.target}{of}", {"met": "met", "MISSED": "missed", "": ""}[one.verdict]]


if __name__ == "__main__":
    raise SystemExit(main())
