"""An engine on a file and a clock of the test's choice, and the workflows that load it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.process.clock import Clock
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from tests.support.documents import in_a_row, value

SECRET = b"0123456789abcdef"


@asynccontextmanager
async def opened(db: Path, clock: Clock, lease_ms: int = 15_000, *, work: bool = True) -> AsyncIterator[Engine]:
    """`work=False`: runs are taken in, and stay queued."""
    sandbox = Sandbox(threads=1)
    services = Services(sandbox=sandbox, http=GuardedClient())
    registry = Registry.load(sandbox=sandbox)
    engine = await Engine.open(
        SQLiteStore(db), registry=registry, services=services, secret=SECRET, clock=clock, lease_ms=lease_ms, work=work
    )
    try:
        yield engine
    finally:
        await engine.close(grace_s=5)


def ask() -> dict[str, Any]:
    return ending("ask", {"ask": {"type": "approval", "params": {"title": "Go on?"}}})


def sleep(seconds: float) -> dict[str, Any]:
    return ending("sleep", {"sleep": {"type": "wait", "params": {"seconds": seconds}}})


def ending(name: str, blocks: dict[str, Any]) -> dict[str, Any]:
    """start, the blocks in this order, and one that ends with the text `done`."""
    return in_a_row(name, {**blocks, "end": value("done")})
