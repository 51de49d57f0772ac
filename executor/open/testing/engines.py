"""Engines for tests: real ones, on a file that is removed at the end, by a clock that is set by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from executor.blocks.connectors.stored import connectors
from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.python import Python, steps_of
from executor.blocks.types.registry import Registry
from executor.kernel.handler.base import Block
from executor.kernel.process.clock import Clock
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from executor.open.engine import Engine
from executor.open.testing.clock import ManualClock

SECRET: Final = b"of tests, and not secret"
LEASE_MS: Final = 15_000


@asynccontextmanager
async def engine(
    *,
    blocks: Iterable[Block] = (),
    functions: Mapping[str, Callable[..., Any]] | None = None,
    workflows: Iterable[Any] = (),
    clock: Clock | None = None,
    database: str | Path | Store | None = None,
    env: Mapping[str, str] | None = None,
    secrets: Iterable[str] = (),
    allow_private: Iterable[str] = (),
) -> AsyncIterator[Engine]:
    """An engine with these block types beside the installed ones, which they replace. The arguments are those of
    `weft.open`; `clock` is a ManualClock by default, and `engine.parts.clock` has it.

    Schedules and timers follow the clock. Waits inside a handler (`asyncio.sleep`), and time limits of attempts, take
    real time."""
    time = ManualClock() if clock is None else clock
    sandbox = Sandbox(threads=1)
    flows = list(workflows)
    called: dict[str, Callable[..., Any]] = {**steps_of(flows), **(functions or {})}
    extra = [*connectors(), *([Python(called)] if called else ()), *blocks]
    with TemporaryDirectory(prefix="weft-test-", ignore_cleanup_errors=True) as folder:
        path = Path(folder, "weft.db") if database is None else database
        opened = await Engine.open(
            SQLiteStore(path) if isinstance(path, str | Path) else path,
            registry=Registry.load(extra, sandbox=sandbox),
            services=Services(
                sandbox=sandbox,
                http=GuardedClient(tuple(allow_private)),
                env=dict(env or {}),
                secrets=frozenset(secrets),
            ),
            secret=SECRET,
            clock=time,
            lease_ms=LEASE_MS,
        )
        if isinstance(time, ManualClock):
            time.watch(opened)
        try:
            await opened.workflows.give(flows)
            yield opened
        finally:
            if isinstance(time, ManualClock):
                time.forget(opened)
            await opened.close(grace_s=1)
