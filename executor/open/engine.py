"""The engine: opens a store, starts the tasks that work on it, closes it. The entry point of the server, the command
line and tests.

    engine = await Engine.open(store, services=services, registry=registry, secret=secret)  # or embed.open_engine
    submitted = await engine.submit(document, input={"amount": 12})
    async for records in engine.follow(submitted.run): ...
    await engine.answer(wait.link, {"note": "fine"}, action="approve", by="Ada")

Every method belongs to a topic: `engine.runs`, `engine.workflows`, `engine.waits`. Their shared parts are in
`engine.parts`. Every method that changes something returns only after the change is on disk.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from typing import Final, Self

from msgspec import Struct

from compiler.compile import DEFAULT_LIMITS
from compiler.document import Limits
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.blocks.vault.sealing import Keys
from executor.errors import (
    DatabaseUnavailable,
    DatabaseWriteFailed,
)
from executor.kernel.process.clock import Clock, SystemClock
from executor.kernel.process.database_clock import DatabaseClock
from executor.kernel.run.links import Links
from executor.kernel.store.run_rows import DEFAULT_POOL
from executor.kernel.store.topics.store import Store
from executor.kernel.worker.bus import Bus, Wakes
from executor.kernel.worker.worker import RENEWALS_PER_LEASE, RUNS_MAX, Worker
from executor.open.awaited import awaited
from executor.service.notifications.alerts import Alerts
from executor.service.notifications.outbox import Notifications
from executor.service.parts import Parts
from executor.service.telemetry.exporter import Traces
from executor.service.topics.backtests import Backtests
from executor.service.topics.cards import Cards
from executor.service.topics.chats import Chats
from executor.service.topics.connections import Connections
from executor.service.topics.connectors import Connectors
from executor.service.topics.drafts import Drafts
from executor.service.topics.events import Events
from executor.service.topics.functions import Functions
from executor.service.topics.history import History
from executor.service.topics.knowledge import Knowledge
from executor.service.topics.lifecycle import Lifecycle
from executor.service.topics.loom import Looms
from executor.service.topics.runs import Runs
from executor.service.topics.secrets import Environment, Secrets
from executor.service.topics.signals import Callbacks, Signals
from executor.service.topics.tool_servers import ToolServers
from executor.service.topics.usage import Load, Usage
from executor.service.topics.waits import Waits
from executor.service.topics.workflows import Workflows
from executor.service.triggers.forms import Forms
from executor.service.triggers.listening import Listening
from executor.service.triggers.schedules import Schedules
from executor.service.triggers.webhooks import Webhooks
from executor.service.upkeep.gc import Upkeep

READY_S = 1.0
# A worker looks for waiting runs when it starts, and only then makes new ones its own, in one commit each. It needs a
# millisecond; a database that is locked does not delay opening by more than this.
FIRST_CLAIM_S = 1.0

GC_THRESHOLDS: Final = (10_000, 10, 500)  # for the garbage collector of a process that executes runs


class Figures(Struct, frozen=True):
    """`runs` in memory and `attempts` at work; counters since the start: `claims` of runs, new ones included, and
    `commits`, each of a group of changes. `is_claiming`: the process looks for runs to claim."""

    runs: int
    attempts: int
    claims: int
    commits: int
    is_claiming: bool


class Engine:
    """An open database and the tasks that work on it: `engine.runs`, `.events`, `.workflows`, `.drafts`, `.waits`,
    `.signals`, `.callbacks`, `.functions`, `.lifecycle`, `.history`, `.backtests`, `.schedules`, `.webhooks`,
    `.secrets`, `.connections`, `.knowledge`, `.usage`, `.upkeep`; and shortcuts for the most common calls: `submit`,
    `run`, `stream`, `follow`, `answer`, `signal`, `update`, `query`, `cancel`. Made by `weft.open`."""

    def __init__(self, parts: Parts, worker: Worker) -> None:
        self.parts = parts
        self.opened_by: object = None  # kept, as it closes the engine when it is freed
        self.store = parts.store
        self.schedules = Schedules(parts)
        self.hooks = self.schedules.scheduler.hooks
        self.webhooks = Webhooks(parts)
        self.forms = Forms(parts, self.webhooks)
        self.workflows = Workflows(parts, self.schedules.scheduler)
        self.events = Events(parts)
        self.waits = Waits(parts)
        self.signals = Signals(parts)
        self.callbacks = Callbacks(parts, self.waits)
        self.functions = Functions(parts, self.events, self.signals)
        self.runs = Runs(parts, self.waits, self.workflows)
        self.cards = Cards(parts)
        self.loom = Looms(parts)
        self.chats = Chats(parts, self.webhooks, self.runs, self.waits)
        self.lifecycle = Lifecycle(parts, self.runs)
        self.drafts = Drafts(parts, self.runs, self.workflows)
        self.listening = Listening(parts, self.drafts, self.webhooks, self.schedules.scheduler.polls)
        self.history = History(parts)
        self.backtests = Backtests(parts)
        self.environment = Environment(parts)
        self.secrets = Secrets(parts)
        self.usage = Usage(parts)
        self.load = Load(parts)
        self.traces = Traces(parts)
        self.connections = Connections(parts)
        self.connectors = Connectors(parts)
        self.knowledge = Knowledge(parts)
        self.tool_servers = ToolServers(parts)
        self.upkeep = Upkeep(parts)
        self.notifications = Notifications(parts, self.waits, worker.lease_ms)
        self.alerts = Alerts(parts, self.runs, worker.lease_ms)
        self._worker = worker
        self._wakes: Wakes | None = None
        # Shortcuts for the most common calls, documented at the methods of the topics.
        self.submit = awaited(self.runs.submit)
        self.run = awaited(self.runs.run)
        self.wait_finished = awaited(self.runs.wait_finished)
        self.cancel = awaited(self.runs.cancel)
        self.follow = self.events.follow
        self.stream = self.events.stream
        self.answer = awaited(self.waits.answer)
        self.signal = awaited(self.signals.send)
        self.query = self.functions.query
        self.update = self.functions.update

    @classmethod
    async def open(
        cls,
        store: Store,
        *,
        registry: Registry,
        services: Services,
        secret: bytes | None = None,
        old_secrets: Sequence[bytes] = (),
        key_is_lost: bool = False,
        clock: Clock | None = None,
        work: bool = True,
        lease_ms: int = 15_000,
        documents: Limits = DEFAULT_LIMITS,
        pools: Sequence[str] = (DEFAULT_POOL,),
        runs_max: int = RUNS_MAX,
        bus: Bus | None = None,
    ) -> Self:
        """Open the store and start working; a worker that has started has looked for waiting runs.

        `secret` keys the resume links and seals stored secrets: without one, links end with the process, which can
        store no secrets. `old_secrets`: earlier ones, valid until `secrets.rekey` has given them a time. `key_is_lost`:
        the database takes this key instead of a lost one. `clock`: by default that of the database server, if there is
        one. `work=False`: a front that submits and reads while other processes run. `pools`: whose runs it executes,
        `runs_max`: how many at a time."""
        await store.open()
        parts = Parts.make(
            store,
            registry=registry,
            services=services,
            clock=clock or await _clock_of(store, lease_ms),
            links=Links(secret or secrets.token_bytes(32), services.base_url, old_secrets if secret else ()),
            documents=documents,
            keys=None if secret is None else Keys(secret, *old_secrets),
            lease_ms=lease_ms,
        )
        if secret is not None:
            try:
                await parts.key_times.check(key_is_lost)
            except BaseException:
                await store.close()
                raise
        await parts.vault.learn()
        engine = cls(parts, Worker(parts, lease_ms=lease_ms, pools=pools, runs_max=runs_max))
        if bus is not None:
            changed = engine.schedules.scheduler.changed_elsewhere
            engine._wakes = Wakes(bus, parts, works=work, look=engine.events.changed, schedules=changed)
            engine._wakes.open()
        if work:
            engine._worker.start()
            engine.notifications.start()
            engine.traces.start()
            engine.alerts.start()
            engine.schedules.scheduler.start()
            try:
                await engine._worker.first_claim(FIRST_CLAIM_S)
            except BaseException:  # its caller leaves
                await engine.close(grace_s=0)
                raise
        return engine

    async def stop_working(self, grace_s: float = 8.0) -> None:
        """Start nothing more and free leases and claims. Everything else still works, but no write waits long for the
        lock of another process. Running handlers get `grace_s` to end."""
        self.store.stop_retrying()
        await self.schedules.scheduler.stop()
        await self.upkeep.stop()
        await asyncio.gather(self.notifications.stop(grace_s), self.alerts.stop(grace_s), self._worker.stop(grace_s))
        await self.traces.stop()

    async def close(self, grace_s: float = 8.0) -> None:
        await self.stop_working(grace_s)
        await self.webhooks.stop()
        await self.events.stop()
        await self.runs.stop()
        self.parts.timers.close()
        await self.parts.connections.close()
        await self.parts.services.close()
        if self._wakes is not None:
            await self._wakes.close()
        if isinstance(self.parts.clock, DatabaseClock):
            await self.parts.clock.stop()
        await self.store.close()

    @property
    def worker_name(self) -> str:
        return self._worker.name

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools from which this process claims runs: none if it executes none."""
        return self._worker.pools if self._worker.is_started else ()

    @property
    def figures(self) -> Figures:
        worker = self._worker
        runs, attempts = worker.active()
        attempts -= self.parts.timers.resting
        return Figures(runs, attempts, worker.claims, self.store.stats.commits, worker.is_claiming)

    async def healthy(self) -> None:
        """Raises when its database was replaced by another one. Asks nothing of the database: a supervisor that
        restarts a process because its database is down makes the outage longer."""
        self.store.check_identity()

    async def readable(self, within_s: float = READY_S) -> None:
        """Raises when the database cannot be read within this time."""
        try:
            async with asyncio.timeout(within_s):
                await self.store.ping_read()
        except TimeoutError:
            raise DatabaseUnavailable(f"the database answered nothing within {within_s:g} s") from None

    async def ready(self, within_s: float = READY_S) -> None:
        """Raises when the database cannot be written to within this time."""
        self.store.check_identity()
        try:
            async with asyncio.timeout(within_s):
                await self.store.ping()
        except TimeoutError:
            raise DatabaseWriteFailed(f"the database took no write within {within_s:g} s") from None


async def _clock_of(store: Store, lease_ms: int) -> Clock:
    """Return the clock of the database server, measured at each heartbeat, or of this machine where there is none."""
    if await store.time_us() is None:
        return SystemClock()

    async def ask() -> int:
        now_us = await store.time_us()
        assert now_us is not None
        return now_us

    clock = DatabaseClock(ask)
    await clock.begin(lease_ms / 1000 / RENEWALS_PER_LEASE)
    return clock
