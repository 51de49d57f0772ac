from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from tests.support.model_store.store import ModelStore


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """What processes may share: a path, or an address."""
    return str(tmp_path / "weft.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


@pytest_asyncio.fixture(params=["model", "sqlite", "sqlite-here", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened: Store
    if request.param == "model":
        opened = ModelStore()
    elif request.param in ("sqlite", "sqlite-here"):
        here = math.inf if request.param == "sqlite-here" else 0.0
        opened = SQLiteStore(tmp_path / "weft.db", commit_here_below_s=here)
    else:
        address = request.getfixturevalue("postgres")
        from executor.kernel.store.postgres.store import PostgresStore

        opened = PostgresStore(address)
    await opened.open()
    yield opened
    await opened.close()


@pytest_asyncio.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    opened = SQLiteStore(tmp_path / "weft.db")
    await opened.open()
    yield opened
    await opened.close()
