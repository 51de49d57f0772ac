"""A process that plays the run of a durable function and may be killed at a commit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import Any

import weft
from executor.blocks.http.client import GuardedClient
from executor.blocks.llm.endpoints import Endpoints
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.functions import blocks_of
from executor.blocks.types.registry import Registry
from executor.kernel.handler.base import Block
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from executor.open.engine import Engine
from executor.open.testing.engines import BEGIN_MS, LEASE_MS, SECRET, ManualClock

Fault = Callable[[str], None]


class Killed:
    """`nth`: of those for one run, each begins when the lease of the one before has lapsed. `armed`: `fault` is asked
    at each commit, from when the engine is open."""

    def __init__(self, database: str, run: str, nth: int, fault: Fault | None) -> None:
        self.database, self.run, self.nth, self.fault = database, run, nth, fault
        self.armed = False
        if database.startswith("postgres"):
            import_module("executor.kernel.store.postgres.store")  # once here, and not in each child

    def _point(self, name: str) -> None:
        if self.armed and self.fault is not None:
            self.fault(name)

    def engine(self, flow: weft.DurableFunction[..., Any]) -> AbstractAsyncContextManager[Engine]:
        return self.opened(blocks_of([flow], None))

    @asynccontextmanager
    async def opened(self, blocks: Sequence[Block] = (), endpoints: Endpoints | None = None) -> AsyncIterator[Engine]:
        if self.database.startswith("postgres"):
            from executor.kernel.store.postgres.store import PostgresStore

            store: Store = PostgresStore(self.database, fault=self._point)
        else:
            store = SQLiteStore(self.database, fault=self._point)
        sandbox = Sandbox(threads=1)
        engine = await Engine.open(
            store,
            registry=Registry.load(blocks, sandbox=sandbox),
            services=Services(sandbox=sandbox, http=GuardedClient(), endpoints=endpoints or Endpoints()),
            secret=SECRET,
            clock=ManualClock(BEGIN_MS + self.nth * 2 * LEASE_MS),
            lease_ms=LEASE_MS,
        )
        self.armed = True
        try:
            yield engine
        finally:
            await engine.close(grace_s=1)
