"""examples/compare: the workflows in weft, in processes of their own, one of which is killed. `make compare` runs the
other systems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples.compare.check import EXPECTED, ROOT, SYSTEMS, killed, lines, made, plain


def test_the_page_counts_the_lines() -> None:
    page = (ROOT / "docs/explanation/compare-python.md").read_text()
    counted = [lines(system) for system in SYSTEMS]
    assert f"| workflows | {' | '.join(str(one) for one, _ in counted)} |" in page
    assert f"| run and resume | {' | '.join(str(one) for _, one in counted)} |" in page


@pytest.mark.parametrize("other", ["dbos", "langgraph"])
def test_the_workflows_are_at_most_as_long_as_those_of_others(other: str) -> None:
    assert lines("weft")[0] <= lines(other)[0]


@pytest.mark.parametrize("name", EXPECTED)
def test_it_has_the_result_that_all_have(name: str, tmp_path: Path) -> None:
    assert plain("weft", name, tmp_path) == json.dumps(EXPECTED[name])
    assert made(tmp_path) == ({"fetch": 2} if name == "chain" else {})


@pytest.mark.parametrize(("name", "twice"), [("chain", {"fetch": 2, "parse": 2}), ("approval", {}), ("sleep", {})])
def test_it_continues_after_a_kill(name: str, twice: dict[str, int], tmp_path: Path) -> None:
    assert killed("weft", name, tmp_path) == json.dumps(EXPECTED[name])
    assert made(tmp_path) == twice
