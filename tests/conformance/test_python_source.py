"""The workflows of the cases, printed as Python and executed: the same documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compiler.imports.sim import convert
from tests.conformance.test_cases import FILES
from tests.support.python_source import round_trip


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_document_comes_back(path: Path) -> None:
    case = json.loads(path.read_text())
    round_trip(convert(case["workflow"]).document)
