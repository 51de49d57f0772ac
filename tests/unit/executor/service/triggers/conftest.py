"""Engines on one SQLite file, with a clock that stands still until it is advanced."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from tests.support.clock import ManualClock

SECRET = b"a secret for tests of triggers!!"
MONDAY = 1_800_000_000_000 - 1_800_000_000_000 % 86_400_000  # a midnight in UTC, 2027-01-15

Open = Callable[..., Awaitable[Engine]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(MONDAY)


@pytest.fixture
async def open_engine(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Open]:
    """Opens engines, all on one file unless `db` names another; those still open at the end are closed."""
    opened: list[Engine] = []

    async def open(db: str = "weft.db", **options: Any) -> Engine:
        sandbox = Sandbox()
        env = options.pop("env", {})
        engine = await Engine.open(
            SQLiteStore(tmp_path / db),
            registry=Registry.load(sandbox=sandbox),
            services=Services(sandbox=sandbox, http=GuardedClient(), env=env, secrets=frozenset(env)),
            secret=SECRET,
            clock=options.pop("clock", clock),
            **options,
        )
        opened.append(engine)
        return engine

    yield open
    for engine in opened:
        await engine.close()
