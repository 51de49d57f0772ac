"""examples/compare: the workflows in weft, in processes of their own, one of which is killed. `make compare` runs the
other systems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples.compare.check import EXPECTED, killed, made, plain


@pytest.mark.parametrize("name", EXPECTED)
def test_it_has_the_result_that_all_have(name: str, tmp_path: Path) -> None:
    assert plain("weft", name, tmp_path) == json.dumps(EXPECTED[name])
    assert made(tmp_path) == ({"fetch": 2} if name == "chain" else {})


@pytest.mark.parametrize(("name", "twice"), [("chain", {"fetch": 2, "parse": 2}), ("approval", {}), ("sleep", {})])
def test_it_continues_after_a_kill(name: str, twice: dict[str, int], tmp_path: Path) -> None:
    assert killed("weft", name, tmp_path) == json.dumps(EXPECTED[name])
    assert made(tmp_path) == twice
