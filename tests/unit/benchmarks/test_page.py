from __future__ import annotations

import pytest
from msgspec.structs import replace

from benchmarks.page import BEGIN, END, PAGE, WHY, PageError, figures, saved, with_peers, write
from benchmarks.report import Report
from benchmarks.statistics import Figure, Spread, Target

MACHINE = {
    "date": "2026-11-22",
    "processor": "A processor",
    "cpus": "2",
    "load": "0.1",
    "system": "Linux 6",
    "python": "3.11.7",
    "sqlite": "3.40.1",
    "disk": "ext4",
}
OURS, FLOOR, PEER = Spread(0.2, 0.375, 9), Spread(0.1, 0.25, 9), Spread(1.0, 1.5, 9)
CHAIN = Figure("chain", "W1", "ms/step", OURS, FLOOR, "floor", target=Target(1.6), samples=20, thrown=2)
BESIDE = Figure("chain", "W1", "ms/step", OURS, PEER, "LangGraph", target=Target(3, least=True), samples=20, thrown=1)
BUSY = Figure("fan", "W2", "ms/step", None, FLOOR, "floor", target=Target(2.5), samples=24, thrown=24)
SYNCS = Figure("syncs", "W1 syncs", "syncs/step", counted=1.03, target=Target(1.05), note="counted by strace")
POST = Figure(
    "post", "POST", "1/s", Spread(900, 1000, 4), Spread(4000, 5000, 4), "floor", target=Target(3000, "value", True)
)


def report(*found: Figure, **machine: str) -> Report:
    return Report(MACHINE | machine, list(found))


def test_the_page_is_what_the_writer_makes_of_the_saved_figures() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert write(page, saved()) == page, "run `python -m benchmarks.page`"


def test_other_systems_are_measured_apart() -> None:
    apart = report(CHAIN, BESIDE, date="2026-11-23", dbos="3.4")
    merged = with_peers(report(SYNCS, CHAIN, BUSY), apart)
    assert merged.figures[:3] == [SYNCS, CHAIN, BUSY], "weft beside its floor is not taken from there"
    text = figures(merged)
    assert "Measured on 2026-11-22" in text and "dbos 3.4" in text
    assert "In sequences of their own, on 2026-11-23." in text
    assert "| W1 | ms/step | 0.2 / 0.375 | LangGraph (6 times the floor) | 1 / 1.5 | 5 | 4 | ≥ 3 | met |" in text


def test_a_fleet_stands_beside_no_floor() -> None:
    rate = Figure("fleet", "4 workers: rate", "steps/s", Spread(1000, 2000, 2), samples=2)
    share = Figure(
        "fleet", "4 workers: smallest share", "part", Spread(0.8, 0.9, 2), target=Target(0.75, "value", True)
    )
    text = figures(report(CHAIN, rate, share))
    _, _, of_fleet = text.partition("### A fleet of workers")
    assert "| 4 workers: rate | steps/s | 1,000 / 2,000 | | |" in of_fleet
    assert "| 4 workers: smallest share | part | 0.8 / 0.9 | ≥ 0.75 part | met |" in of_fleet
    assert "Everything else" not in text, "it is in no other table"


def test_only_what_is_between_the_markers_changes() -> None:
    page = f"# Title\n\n{BEGIN}\nold\n{END}\n\nEnd.\n"
    written = write(page, report(CHAIN))
    assert written.startswith(f"# Title\n\n{BEGIN}\n\nMeasured on")
    assert written.endswith(f"\n{END}\n\nEnd.\n")
    assert "old" not in written
    assert write(written, report(CHAIN)) == written


@pytest.mark.parametrize("page", ["", BEGIN, END, f"{END}{BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"])
def test_a_page_without_one_place_for_figures_is_refused(page: str) -> None:
    with pytest.raises(PageError):
        write(page, report(CHAIN))


def test_it_says_where_when_and_how_many_samples_were_thrown_away() -> None:
    text = figures(report(CHAIN, BUSY, langgraph="1.2", dbos="3.4"))
    assert "Measured on 2026-11-22: A processor, 2 processors, Linux 6, ext4, Python 3.11.7, SQLite 3.40.1" in text
    assert "; langgraph 1.2, dbos 3.4. 26 of 44 samples were thrown away" in text


def test_durable_work_has_its_table() -> None:
    assert "| W1 | ms/step | 0.2 / 0.375 | 0.1 / 0.25 | 2 | 1.5 | ≤ 1.6 | met |" in figures(report(CHAIN))


def test_a_figure_without_a_quiet_sample_is_not_shown() -> None:
    text = figures(report(BUSY))
    assert "| W2 | ms/step | not measured | not measured | | | ≤ 2.5 | |" in text
    assert "none was left" in text
    assert "none was left" not in figures(report(CHAIN))


def test_other_systems_have_a_table_of_their_own() -> None:
    text = figures(report(CHAIN, BESIDE))
    assert "| W1 | ms/step | 0.2 / 0.375 | LangGraph | 1 / 1.5 | 5 | 4 | ≥ 3 | met |" in text
    assert "other systems" not in figures(report(CHAIN))
    assert "floor" not in figures(report(SYNCS))


def test_what_is_missed_has_a_reason() -> None:
    slow = replace(CHAIN, target=Target(1.2))
    text = figures(report(CHAIN, slow, POST, BUSY))
    assert f"| W1 | 1.5 | ≤ 1.2 | {WHY['chain']} |" in text
    assert f"| POST | 1,000 | ≥ 3000 1/s | {WHY['post']} |" in text
    assert text.count(WHY["chain"]) == 1, "what is met has none"
    assert "### Missed" not in figures(report(CHAIN, BUSY))
    assert "not measured |" not in figures(saved()).partition("### Missed")[2].partition("###")[0]


def test_syncs_and_the_rest_come_after() -> None:
    text = figures(report(POST, SYNCS, CHAIN))
    assert "| W1 syncs | 1.03 | ≤ 1.05 | met | counted by strace |" in text
    assert "| POST | 1/s | 900 / 1,000 | 4,000 / 5,000 | 0.225 | 0.2 | ≥ 3000 1/s | missed |" in text
    assert text.index("### Durable") < text.index("### Syncs") < text.index("### Everything else")


def test_growth_has_a_table_of_its_own() -> None:
    grown = Figure("growth", "a step", "us", Spread(2, 3, 3), Spread(2, 2, 3), "floor", target=Target(1.3), samples=6)
    memory = Figure("growth", "memory", "bytes", counted=512.0, target=Target(1_024))
    text = figures(report(CHAIN, SYNCS, grown, memory))
    head, _, table = text.partition("### Growth")
    assert "| a step | us | 2 / 3 | 2 / 2 | 1 | 1.5 | ≤ 1.3 | missed |" in table
    assert "| memory | bytes | 512 | | | | ≤ 1024 | met |" in table
    assert "a step" not in head and "memory" not in head
