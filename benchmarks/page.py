"""`python -m benchmarks.page`: writes the figures into docs/reference/performance.md, between two markers.

What stands around the markers is written by hand. The figures are those of `results/figures.json`, which `make bench`
saves, and of `results/peers.json`, which `make bench-peers` saves; the page is never edited between the markers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from benchmarks.compare import PACKAGES
from benchmarks.report import Report, both, from_json, number
from benchmarks.sample import ROOT
from benchmarks.statistics import FOREIGN_MAX, Figure, Spread

FIGURES = ROOT / "benchmarks" / "results" / "figures.json"
PEER_FIGURES = FIGURES.with_name("peers.json")
PAGE = ROOT / "docs" / "reference" / "performance.md"
BEGIN = "<!-- figures: `make bench` writes everything up to the next marker -->"
END = "<!-- end of figures -->"
DURABLE = ("chain", "ahead", "fan", "loop", "runs", "resume", "short")
GROWTH = "growth"
FLEET = "fleet"
NOT_KNOWN = "not measured"
# Why a target is missed, by section.
WHY = {
    "chain": "two threads share the interpreter, and a step's events are more bytes than the floor's row",
    "loop": "as W1; each iteration also decides whether there is another one",
    "fan": "deciding, recording and calling a block are Python, no part of it large; the floor only writes a row",
    "runs": "as W2; a run also begins and ends, a tenth of which counts for each of its ten steps",
    "resume": "an answer closes a wait, claims its run and records the next step; the floor writes one row",
    "post": "half is the run itself: plan, decisions, two blocks, four statements; the echo does none of it",
    "start": "half is importing weft, the rest its libraries and opening the database",
    "sse": "each stream takes its pages by itself; the floor sends the same chunks and asks for nothing",
    "postgres": "each group is a way to the server and back, through psycopg and two switches between threads",
    "growth": "memory: a run has ten steps; a page: the index of a million rows is deeper",
}


class PageError(Exception):
    """The page has not exactly one place for figures."""


def main() -> int:
    PAGE.write_text(write(PAGE.read_text(encoding="utf-8"), saved()), encoding="utf-8")
    return 0


def saved() -> Report:
    report = from_json(FIGURES.read_bytes())
    return with_peers(report, from_json(PEER_FIGURES.read_bytes())) if PEER_FIGURES.exists() else report


def with_peers(report: Report, peers: Report) -> Report:
    """The figures beside other systems are those of `peers`: they were measured apart. Each says how far that system is
    from the floor, which bounds what weft can reach beside it."""
    versions = {name: peers.machine[name] for name in PACKAGES if name in peers.machine}
    own = [one for one in report.figures if not _beside_another(one)]
    floors = {one.section: one.beside for one in peers.figures if one.beside_name == "floor"}
    others = [_from_the_floor(one, floors.get(one.section)) for one in peers.figures if _beside_another(one)]
    return Report(report.machine | versions | {"peers": peers.machine["date"]}, own + others)


def _from_the_floor(one: Figure, floor: Spread | None) -> Figure:
    if floor is None or one.beside is None:
        return one
    return replace(one, note=f"{number(one.beside.p50 / floor.p50)} times the floor")


def write(page: str, report: Report) -> str:
    """The page with these figures in place of those that it has."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise PageError(f"the page needs one {BEGIN!r} and after it one {END!r}")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{figures(report)}\n{END}{after}"


def figures(report: Report) -> str:
    parts = [measured(report)]
    grown = [one for one in report.figures if one.section == GROWTH]
    fleet = [one for one in report.figures if one.section == FLEET]
    missed = [one for one in report.figures if one.verdict == "MISSED" and not _beside_another(one)]
    report = Report(report.machine, [one for one in report.figures if one.section not in (GROWTH, FLEET)])
    if durable := [one for one in _to_the_floor(report) if one.section in DURABLE]:
        parts += ["### Durable work, beside the floor", beside_the_floor(durable)]
    if others := [one for one in report.figures if _beside_another(one)]:
        parts.append("### Durable work, beside other systems")
        if "peers" in report.machine:
            parts.append(f"In sequences of their own, on {report.machine['peers']}.")
        parts.append(beside_others(others))
    if counts := [one for one in report.figures if one.counted is not None]:
        parts += ["### Syncs", counted(counts)]
    if grown:
        parts += ["### Growth", beside_smaller(grown)]
    if fleet:
        parts += ["### A fleet of workers", alone(fleet)]
    if rest := [one for one in _to_the_floor(report) if one.section not in DURABLE]:
        parts += ["### Everything else", beside_the_floor(rest)]
    if missed:
        parts += ["### Missed", "Targets beside the floor that are not reached, and why.", why(missed)]
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


def beside_smaller(found: Sequence[Figure]) -> str:
    """What stands beside these is the same at a smaller size."""
    head = ("what", "unit", "large, p10 / p50", "small, p10 / p50", "ratio of p10", "ratio of p50", "target", "")
    return table(head, (_row(one) for one in found))


def beside_others(found: Sequence[Figure]) -> str:
    head = ("what", "unit", "weft, p10 / p50", "other", "p10 / p50", "times more, p10", "times more, p50", "target", "")
    rows = []
    for one in found:
        _, unit, ours, other, *rest = _row(one)
        whose = f"{one.beside_name} ({one.note})" if one.note else one.beside_name
        rows.append([one.name, unit, ours, whose, other, *rest])
    return table(head, rows)


def why(missed: Sequence[Figure]) -> str:
    rows = ([one.name, number(one.value), *_asked(one)[:1], WHY.get(one.section, NOT_KNOWN)] for one in missed)
    return table(("what", "reached", "target", "why"), rows)


def alone(found: Sequence[Figure]) -> str:
    """Figures that have no floor."""
    rows = ([name, unit, ours, *asked] for name, unit, ours, _, _, _, *asked in map(_row, found))
    return table(("what", "unit", "p10 / p50", "target", ""), rows)


def counted(found: Sequence[Figure]) -> str:
    rows = [[one.name, number(one.counted), *_asked(one), one.note] for one in found]
    return table(("what", "syncs per step", "target", "", "how"), rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join("".join(f"| {cell} " if cell else "| " for cell in row) + "|" for row in [head, rule, *rows])


def _beside_another(one: Figure) -> bool:
    return one.beside_name not in ("", "floor")


def _to_the_floor(report: Report) -> Iterator[Figure]:
    return (one for one in report.figures if one.beside_name in ("", "floor") and one.counted is None)


def _row(one: Figure) -> list[str]:
    name = f"{one.name} ({one.note})" if one.note else one.name
    if one.busy:
        return [name, one.unit, NOT_KNOWN, NOT_KNOWN, "", "", *_asked(one)]
    if one.counted is not None:
        return [name, one.unit, number(one.counted), "", "", "", *_asked(one)]
    return [name, one.unit, both(one.ours), both(one.beside), number(one.ratio_p10), number(one.ratio), *_asked(one)]


def _asked(one: Figure) -> list[str]:
    """The target, and whether it is met."""
    if one.target is None:
        return ["", ""]
    of = f" {one.unit}" if one.target.of == "value" else ""
    return [f"{one.target}{of}", {"met": "met", "MISSED": "missed", "": ""}[one.verdict]]


if __name__ == "__main__":
    raise SystemExit(main())
