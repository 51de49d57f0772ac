"""Fixtures of several folders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from executor.kernel.store.sqlite.reading import open_reading
from executor.service.upkeep.invariants import check


@pytest.fixture
def invariants_hold(tmp_path: Path) -> Iterator[None]:
    """Whatever the test does to runs, the database that it leaves holds every invariant."""
    yield
    if not (tmp_path / "weft.db").exists():
        return  # nothing ran
    with closing(open_reading(tmp_path / "weft.db")) as db:
        assert list(check(db)) == []
