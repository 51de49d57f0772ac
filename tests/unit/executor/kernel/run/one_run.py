"""One run in memory with the parts of its loop, without an engine: the store is the model, the clock stands still."""

from __future__ import annotations

from typing import Any

import orjson

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.core import facts as f
from executor.kernel.core import messages as m
from executor.kernel.core.events import Event
from executor.kernel.handler.base import Suspend
from executor.kernel.handler.needs import RunLimits
from executor.kernel.journal.reader import load_plan
from executor.kernel.run.attempt import Host
from executor.kernel.run.attempts import Attempts
from executor.kernel.run.border import Border
from executor.kernel.run.launch import Launcher
from executor.kernel.run.links import Links
from executor.kernel.run.loaded import LoadedRun, replay
from executor.kernel.run.loop import RunLoop
from executor.kernel.run.new_run import new_run, origin_of
from executor.kernel.run.recorder import Recorder
from executor.kernel.run.results import Arrivals, Payload, Result
from executor.kernel.store.run_rows import Append, RunRow
from executor.service.parts import Parts
from tests.support.blocks import Step
from tests.support.clock import ManualClock
from tests.support.documents import document
from tests.support.model_store.store import ModelStore

LEASE_MS = 15_000
APPROVAL = Suspend("approval", {"title": "OK?"}, None, ("yes", "no"))


class OneRun:
    """`step` is the block type of all blocks but `start`. `key("a")` is the key of block `a` at the root."""

    run: LoadedRun
    recorder: Recorder

    def __init__(self, limits: RunLimits | None = None, *blocks: Any) -> None:
        self.clock = ManualClock()
        self.step = Step()
        self.store = ModelStore()
        services = Services(sandbox=Sandbox(threads=1), http=GuardedClient(), limits=limits or RunLimits())
        self.parts = Parts.make(
            self.store,
            registry=Registry.load([self.step, *blocks]),
            services=services,
            clock=self.clock,
            links=Links(b"0" * 32, "http://127.0.0.1"),
        )
        self.arrivals = Arrivals()

    @classmethod
    async def of(cls, *edges: str, limits: RunLimits | None = None, **more: Any) -> OneRun:
        one = cls(limits)
        names = {name for edge in edges for name in (edge.split()[0], edge.split()[-1])} - {"start"}
        data = orjson.dumps(document("one", *edges, blocks={name: {"type": "step"} for name in names}, **more))
        plan = await one.parts.compiler.plan(data)
        start = f.StartRequested(one.clock.now_ms(), "r" * 32)
        await one.store.create_run(new_run(plan, start, origin_of(data, plan), {}))
        one.run, one.recorder = await one.loaded(await one.claim())
        return one

    async def claim(self) -> RunRow:
        [row] = await self.store.claim("w", self.clock.now_ms(), LEASE_MS, limit=1)
        return row

    async def loaded(self, row: RunRow) -> tuple[LoadedRun, Recorder]:
        """As recovery does it."""
        run = LoadedRun.empty(row, await load_plan(self.store, row.plan_hash), {})
        recorder = Recorder(run, self.parts)
        recorder.stand_at(row.seq, await replay(self.store, run))
        return run, recorder

    def loop(self) -> RunLoop:
        return RunLoop(self.run, self.parts, self.recorder, Attempts(self.run.id, self.parts, self.arrivals))

    def launcher(self) -> Launcher:
        return Launcher(Host(self.run, self.parts))

    def border(self) -> Border:
        return Border(self.run, self.parts)

    def key(self, block: str) -> tuple[tuple[()], int]:
        number = self.run.plan.node_index(block)
        assert number is not None
        return (), number

    def decide(self, fact: f.Fact, payload: Payload | None = None) -> list[Event]:
        return self.recorder.decide(self.run.plan, Result(fact, payload or Payload()))

    def begin(self) -> None:
        """Until the first block behind `start` runs."""
        now_ms = self.clock.now_ms()
        self.decide(f.Recovered(now_ms))
        self.decide(f.NodeDone(now_ms, self.key("start"), 1), Payload(b"{}"))

    def ask(
        self, block: str, suspend: Suspend | None = None, due_ms: int | None = None, on_expire: str = "fail"
    ) -> str:
        """The running block opens a wait. Returns its id."""
        asked = suspend or Suspend("approval", {"title": "OK?"}, None, ("yes", "no"))
        fact = f.NodeSuspended(self.clock.now_ms(), self.key(block), 1, asked.kind, due_ms, on_expire)
        self.decide(fact, Payload(suspends={None: asked}))
        return f"{block}!1"

    async def append(self, consumed: tuple[int, ...] = ()) -> Append:
        append = self.recorder.pop_append(consumed)
        assert append is not None
        await self.store.append(append)
        return append

    async def post(self, message: m.Known) -> None:
        assert await self.store.post_message(self.run.id, m.encode(message), self.clock.now_ms())

    def facts(self) -> list[f.Fact]:
        return [result.fact for result in self.arrivals.results]
