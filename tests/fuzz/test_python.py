"""Documents made at random, printed as Python and executed: the same documents."""

from __future__ import annotations

import pytest
from hypothesis import given, seed

from tests.fuzz.budget import FIRST_SEED, examples
from tests.fuzz.documents import documents
from tests.fuzz.params import Document
from tests.support.python_source import round_trip


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.proof) for part in range(1, 8))])
def test_random_documents_come_back(part: int) -> None:
    @seed(FIRST_SEED + part)
    @examples(60)
    @given(document=documents())
    def come_back(document: Document) -> None:
        round_trip(document)

    come_back()
