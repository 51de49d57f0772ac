from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from executor.store.contract import Store
from executor.store.sqlite.store import SQLiteStore
from tests.support.model_store.store import ModelStore


@pytest_asyncio.fixture(params=["model", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened: Store = ModelStore() if request.param == "model" else SQLiteStore(tmp_path / "weft.db")
    await opened.open()
    yield opened
    await opened.close()


@pytest_asyncio.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    opened = SQLiteStore(tmp_path / "weft.db")
    await opened.open()
    yield opened
    await opened.close()
