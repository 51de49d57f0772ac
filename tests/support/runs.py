"""Engines on a file, their runs, and what became of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from executor.blocks.http.client import GuardedClient
from executor.blocks.llm.endpoints import Endpoints
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.handler.needs import RunLimits
from executor.kernel.process.clock import Clock
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from executor.kernel.worker.bus import Bus
from executor.kernel.worker.worker import RUNS_MAX
from executor.open.engine import Engine
from executor.service.views import RunView
from tests.support.documents import Json
from tests.support.until import until

SECRET = b"0123456789abcdef"


@asynccontextmanager
async def engine_on(
    store: Store | Path,
    *blocks: Any,
    clock: Clock | None = None,
    env: Mapping[str, str] | None = None,
    work: bool = True,
    lease_ms: int = 15_000,
    limits: RunLimits | None = None,
    bus: Bus | None = None,
    runs_max: int = RUNS_MAX,
    models: Mapping[str, str] | None = None,
    allow_private: Sequence[str] = (),
    sqlite_folders: Sequence[str] = (),
) -> AsyncIterator[Engine]:
    sandbox = Sandbox(threads=1)
    names = dict(env or {})
    services = Services(
        sandbox=sandbox,
        http=GuardedClient(allow_private),
        env=names,
        secrets=frozenset(names),
        limits=limits or RunLimits(),
        endpoints=Endpoints(models),
        sqlite_folders=tuple(sqlite_folders),
    )
    engine = await Engine.open(
        SQLiteStore(store) if isinstance(store, Path) else store,
        registry=Registry.load(blocks, sandbox=sandbox),
        services=services,
        secret=SECRET,
        clock=clock,
        work=work,
        lease_ms=lease_ms,
        bus=bus,
        runs_max=runs_max,
    )
    try:
        yield engine
    finally:
        await engine.close(grace_s=1)


async def ended(engine: Engine, run: str) -> RunView:
    async with asyncio.timeout(30):
        async for _ in engine.follow(run):
            pass
    return await engine.runs.view(run)


async def ran(engine: Engine, workflow: Any, **submitted: Any) -> RunView:
    return await ended(engine, (await engine.submit(workflow, **submitted)).run)


async def settled(engine: Engine, run: str) -> RunView:
    """The run when it has ended or waits for a person."""
    return await engine.wait_finished(run, 30)


async def until_asked(engine: Engine, run: str, count: int = 1) -> RunView:
    """Until `count` people below `run` are asked."""

    async def asked() -> RunView | None:
        view = await engine.runs.view(run)
        return (
            view if len(view.child_waits) == count and view.status == "waiting" and not view.children_active else None
        )

    return await until(asked)


async def until_event(engine: Engine, run: str, type: str, node: str | None = None, count: int = 1) -> int:
    """The seq of the `count`th event of this type (of this node), as soon as it is there."""
    async with asyncio.timeout(30):
        async for records in engine.follow(run):
            for record in records:
                if record.type == type and node in (None, record.node):
                    count -= 1
                    if not count:
                        return record.seq
    raise AssertionError(f"run {run} has no {type} of {node}")


async def seq_of(engine: Engine, run: str, type: str, key: str) -> int:
    node, _, path = key.partition("@")
    records = await engine.store.read_events(run)
    return next(r.seq for r in records if (r.type, r.node, r.path) == (type, node, path))


async def events_of(engine: Engine, run: str, *types: str) -> list[str]:
    return [record.type for record in await engine.store.read_events(run) if not types or record.type in types]


async def journal(engine: Engine, run: str) -> list[tuple[str, str | None, int]]:
    return [
        (r.type, f"{r.node}@{r.path}" if r.path else r.node, r.attempt) for r in await engine.store.read_events(run)
    ]


def outputs(view: RunView) -> Json:
    return {node.key: node.output for node in view.nodes if node.status == "succeeded"}


def token_of(link: str | None) -> str:
    assert link is not None
    return link.rpartition("/")[2]
