"""The examples, printed as Python and executed: the same documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.python_source import round_trip

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_the_example_comes_back(path: Path) -> None:
    round_trip(json.loads(path.read_text()))
