"""Engines for tests: real ones, on a file that is removed at the end, by a clock that is set by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from executor.blocks.connectors.stored import connectors
from executor.blocks.http.client import GuardedClient
from executor.blocks.llm.base import Model
from executor.blocks.llm.endpoints import endpoints_of
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.functions import blocks_of
from executor.blocks.types.registry import Registry
from executor.kernel.handler.base import Block
from executor.kernel.handler.needs import RunLimits
from executor.kernel.process.clock import Clock
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from executor.open.embed import environment_of
from executor.open.engine import Engine
from executor.open.testing.scripted_http import ScriptedHttp

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
    secrets: Iterable[str] | Mapping[str, Iterable[str]] = (),
    models: Mapping[str, str | Model] | None = None,
    prices: Mapping[str, str] | None = None,
    allow_private: Iterable[str] = (),
    http: ScriptedHttp | None = None,
    lanes: int = 0,
) -> AsyncIterator[Engine]:
    """An engine with these block types beside the installed ones, which they replace. The arguments are those of
    `weft.open`; `clock` is a ManualClock by default, and `engine.parts.clock` has it. `http` answers all requests.
    `lanes`: durable functions that stay in memory while they wait. With 0 the code runs from its first line after each
    wait, as after a crash, so a test finds what is not the same each time.

    Schedules and timers follow the clock. Waits inside a handler (`asyncio.sleep`), and time limits of attempts, take
    real time."""
    time = ManualClock() if clock is None else clock
    sandbox = Sandbox(threads=1)
    flows = list(workflows)
    extra = [*connectors(), *blocks_of(flows, functions), *blocks]
    with TemporaryDirectory(prefix="weft-test-", ignore_cleanup_errors=True) as folder:
        path = Path(folder, "weft.db") if database is None else database
        opened = await Engine.open(
            SQLiteStore(path) if isinstance(path, str | Path) else path,
            registry=Registry.load(extra, sandbox=sandbox),
            services=Services(
                sandbox=sandbox,
                http=GuardedClient(tuple(allow_private)) if http is None else http.client(),
                limits=RunLimits(lanes=lanes),
                **environment_of(env or {}, secrets, endpoints_of(models, prices)),
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


# --- the clock ---


BEGIN_MS: Final = 1_800_000_000_000  # 2027-01-15, 08:00 UTC
_QUIET_POLLS: Final = 5
_POLL_S: Final = 0.004
_SETTLED_S: Final = 5.0


class ManualClock:
    """`await clock.advance(3600)`: an hour has passed, and all that became due has begun and, if it does not have to
    wait for anything, ended."""

    def __init__(self, now_ms: int = BEGIN_MS) -> None:
        self._now_ms = now_ms
        self._callbacks: list[Callable[[], None]] = []
        self._engines: list[Engine] = []

    def now_ms(self) -> int:
        """Return the time in Unix milliseconds."""
        return self._now_ms

    def on_jump(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def watch(self, engine: Engine) -> None:
        self._engines.append(engine)

    def forget(self, engine: Engine) -> None:
        self._engines.remove(engine)

    def set(self, now_ms: int) -> None:
        """Move to a time without waiting. Raises ValueError if it has passed."""
        if now_ms < self._now_ms:
            raise ValueError(f"a clock cannot be set back: it is {self._now_ms}, which is later than {now_ms}")
        self._now_ms = now_ms
        for callback in list(self._callbacks):
            callback()

    async def advance(self, seconds: float) -> None:
        """Move by so many seconds, and wait until the engines have nothing more to do, at most five seconds."""
        self.set(self._now_ms + round(seconds * 1000))
        for engine in self._engines:
            await settled(engine)


async def settled(engine: Engine, within_s: float = _SETTLED_S) -> bool:
    """Wait until nothing was committed or claimed and no attempt was at work for a moment. Returns False if that takes
    too long."""
    loop = asyncio.get_running_loop()
    until_s, quiet, commits = loop.time() + within_s, 0, -1
    while quiet < _QUIET_POLLS:
        if loop.time() > until_s:
            return False
        figures = engine.figures
        is_quiet = figures.commits == commits and not figures.attempts and not figures.is_claiming
        quiet = quiet + 1 if is_quiet else 0
        commits = figures.commits
        await asyncio.sleep(_POLL_S)
    return True
