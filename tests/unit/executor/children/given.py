"""An engine on a file, and short ways to say what it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from compiler.catalog import BlockSpec
from executor.blocks.base import Context, Done
from executor.blocks.http import GuardedClient
from executor.blocks.registry import Registry
from executor.engine import Engine, RunView
from executor.errors import BlockError
from executor.runtime.clock import Clock
from executor.sandbox import Sandbox
from executor.services import RunLimits, Services
from executor.store.contract import Store
from executor.store.sqlite.store import SQLiteStore

SECRET = b"0123456789abcdef"


class Probe:
    """Block type `probe`: notes its params, and puts out `outputs` one after the other (the last one for ever): values,
    or errors to raise. Without outputs it puts out its param `value`."""

    spec = BlockSpec(
        type="probe",
        title="Probe",
        description="",
        category="action",
        params={"type": "object", "properties": {"value": {}, "code": {"type": "string", "x-weft": "code"}}},
        effect="read",
        attempts=3,
    )

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.outputs: list[Any] = []

    async def run(self, ctx: Context) -> Done:
        self.seen.append(ctx.params)
        if not self.outputs:
            return Done(ctx.params.get("value"))
        output = self.outputs.pop(0) if len(self.outputs) > 1 else self.outputs[0]
        if isinstance(output, BlockError):
            raise output
        return Done(output)


class Hold:
    """Block type `hold`: works until `free` is set."""

    spec = BlockSpec(type="hold", title="Hold", description="", category="action")

    def __init__(self) -> None:
        self.free = asyncio.Event()

    async def run(self, ctx: Context) -> Done:
        await self.free.wait()
        return Done("held")


@asynccontextmanager
async def engine_on(
    store: Store | Path,
    *blocks: Any,
    clock: Clock | None = None,
    env: Mapping[str, str] | None = None,
    work: bool = True,
    lease_ms: int = 15_000,
    limits: RunLimits | None = None,
) -> AsyncIterator[Engine]:
    sandbox = Sandbox(threads=1)
    names = dict(env or {})
    services = Services(
        sandbox=sandbox, http=GuardedClient(), env=names, secrets=frozenset(names), limits=limits or RunLimits()
    )
    engine = await Engine.open(
        SQLiteStore(store) if isinstance(store, Path) else store,
        registry=Registry.load(blocks, sandbox=sandbox),
        services=services,
        secret=SECRET,
        clock=clock,
        work=work,
        lease_ms=lease_ms,
    )
    try:
        yield engine
    finally:
        await engine.close(grace_s=1)


def document(name: str, *edges: str, blocks: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """`edges`: "a b" or "a error b". A block `start` is there anyway."""
    joined = []
    for edge in edges:
        source, *handle, target = edge.split()
        joined.append({"source": source, "target": target, **({"handle": handle[0]} if handle else {})})
    return {
        "format": "weft/1",
        "name": name,
        "blocks": {"start": {"type": "start"}, **(blocks or {})},
        "edges": joined,
        **more,
    }


def call(workflow: str | None = None, policy: Mapping[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    if workflow is not None:
        params["workflow"] = workflow
    return {"type": "run_workflow", "params": params, **({"policy": dict(policy)} if policy else {})}


def value(of: Any) -> dict[str, Any]:
    return {"type": "set", "params": {"value": of}}


def caller(name: str = "parent", **block: Any) -> dict[str, Any]:
    """start -> call -> end, whose output is all of the call's."""
    return document(name, "start call", "call end", blocks={"call": call(**block), "end": value("<call>")})


ASKING = document(
    "asking",
    "start ask",
    "ask end",
    blocks={
        "ask": {"type": "approval", "params": {"title": "Pay?", "actions": ["yes"]}},
        "end": value({"by": "<ask.answered_by>"}),
    },
)


async def ended(engine: Engine, run: str) -> RunView:
    async with asyncio.timeout(30):
        async for _ in engine.follow(run):
            pass
    return await engine.get_run(run)


async def ran(engine: Engine, workflow: Any, **submitted: Any) -> RunView:
    return await ended(engine, (await engine.submit(workflow, **submitted)).run)


async def until_asked(engine: Engine, run: str, count: int = 1) -> RunView:
    """Until `count` people below `run` are asked."""
    async with asyncio.timeout(30):
        while True:
            view = await engine.get_run(run)
            if len(view.child_waits) == count and view.status == "waiting" and not view.children_active:
                return view
            await asyncio.sleep(0.01)


def token_of(link: str | None) -> str:
    assert link is not None
    return link.rpartition("/")[2]


async def events_of(engine: Engine, run: str, *types: str) -> list[str]:
    return [record.type for record in await engine.store.read_events(run) if not types or record.type in types]
