"""Blocks that do what a case says: `return`, `echo`, `counter`, `sequence`, `raise`, `route`, `sleep`, `cancel`.

Who is slower in a case is so on every machine: its time advances only when all that is under way sleeps.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import structs

from compiler.catalog import BlockSpec
from compiler.plan import Effect
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.types.registry import Registry
from executor.errors import BlockError
from executor.kernel.handler.base import Block, Done, Outcome, StepContext
from executor.kernel.store.topics.inbox import InboxRow

PATIENCE_S = 60.0  # of real time, for what takes milliseconds


class Script:
    """The handlers of one case. `cancel` is called by a `cancel` handler with the run id, `under_way` by a `sleep`: it
    tells the keys of the run's nodes that have started and not ended. `effect`: of blocks that are no real ones."""

    def __init__(self, handlers: dict[str, dict[str, Any]], effect: Effect = "write") -> None:
        self.handlers = handlers
        self.effect = effect
        self.calls: Counter[str] = Counter()
        self.cancel: Callable[[str], Awaitable[bool]] | None = None
        self.under_way: Callable[[str], Awaitable[set[str]]] | None = None
        self._now_ms = 0
        self._sleeping: dict[str, int] = {}  # node key -> when it ends
        self._cancelling: dict[asyncio.Task[Any], asyncio.Event] = {}  # attempt -> it may end

    async def play(self, ctx: StepContext) -> Outcome:
        await asyncio.sleep(0)
        self.calls[ctx.block] += 1
        handler = self.handlers.get(ctx.block, {"kind": "id"})
        if not _applies(handler.get("when"), self.calls[ctx.block], ctx.key):
            handler = handler.get("else", {"kind": "id"})
        return await self._act(handler, ctx)

    async def _act(self, handler: dict[str, Any], ctx: StepContext) -> Outcome:
        match handler["kind"]:
            case "id":
                return Done({"result": ctx.block})
            case "return":
                return Done(handler["output"])
            case "echo":
                return Done({"result": ctx.params})
            case "counter":
                return Done({"result": self.calls[ctx.block]})
            case "sequence":
                outputs = handler["outputs"]
                return Done(outputs[min(self.calls[ctx.block], len(outputs)) - 1])
            case "raise":
                raise BlockError(handler.get("message", "scripted"), code="scripted", retryable=True)
            case "route":
                return Done({"selectedRoute": handler["route"], "result": ctx.block}, route=handler["route"])
            case "sleep":
                await self._sleep(handler["ms"], ctx)
                return await self._act(handler.get("then", {"kind": "id"}), ctx)
            case "cancel":
                await self._cancel(ctx)
                return Done({"result": ctx.block})
            case other:
                raise AssertionError(f"the case has a handler of unknown kind {other!r}")

    async def _cancel(self, ctx: StepContext) -> None:
        """The block ends while the run reads of the cancel: see `read_inbox`."""
        task = asyncio.current_task()
        assert self.cancel is not None and task is not None
        if await self.cancel(ctx.run_id):
            may_end = self._cancelling[task] = asyncio.Event()
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await may_end.wait()
            finally:
                del self._cancelling[task]

    async def read_inbox(self, read: Callable[[str], Awaitable[list[InboxRow]]], run: str) -> list[InboxRow]:
        """In the place of `read`, the store's. That the block which cancelled has ended is known to the run before the
        cancel is: nothing may come of it nevertheless."""
        cancelling = dict(self._cancelling)
        rows = await read(run)
        if cancelling:
            for may_end in cancelling.values():
                may_end.set()
            await asyncio.wait(cancelling)
        return rows

    async def _sleep(self, ms: int, ctx: StepContext) -> None:
        """The shortest first. What the others did is in the journal by then, and so is what started because of it."""
        assert self.under_way is not None
        due_ms = self._sleeping[ctx.key] = self._now_ms + ms
        try:
            async with asyncio.timeout(PATIENCE_S):
                while self._now_ms < due_ms:
                    awake = await self.under_way(ctx.run_id) - self._sleeping.keys()
                    if not awake and due_ms == min(self._sleeping.values()):
                        self._now_ms = due_ms
                    else:
                        await asyncio.sleep(0.005)
        finally:
            del self._sleeping[ctx.key]


def _applies(when: dict[str, list[int]] | None, call: int, key: str) -> bool:
    """All given lists must contain the current value; iteration and branch are those of the nearest container of the
    kind."""
    if when is None:
        return True
    iterations = re.findall(r"#(\d+)", key)
    branches = re.findall(r"\[(\d+)\]", key)
    now = {
        "call": call,
        "iteration": int(iterations[-1]) if iterations else None,
        "branch": int(branches[-1]) if branches else None,
    }
    return all(now[name] in allowed for name, allowed in when.items())


def _without(params: dict[str, Any], *keywords: str) -> dict[str, Any]:
    """The schema without these keywords, its properties too."""
    plain = {key: value for key, value in params.items() if key not in keywords}
    listed = params.get("properties", {})
    plain["properties"] = {
        name: {key: value for key, value in param.items() if key not in keywords} for name, param in listed.items()
    }
    return plain


class ScriptedBlock:
    """A block type played by the script: for all blocks (`task`), or only for those the case has a handler for."""

    def __init__(self, script: Script, type: str, real: Block | None) -> None:
        self._script = script
        self._real = real
        if real is None:
            self.spec = BlockSpec(type, type, "scripted", "action", params={"type": "object"}, effect=script.effect)
        else:  # cases leave out, or empty, what their script does not read
            self.spec = structs.replace(real.spec, params=_without(real.spec.params, "required", "pattern"), check=None)

    async def run(self, ctx: StepContext) -> Outcome:
        if self._real is None or ctx.block in self._script.handlers:
            return await self._script.play(ctx)
        return await self._real.run(ctx)


def registry_for(script: Script, types: set[str], base: Registry, sandbox: Sandbox) -> Registry:
    """The real registry with every type of the case played by the script where the case says so."""
    extra: list[Block] = []
    for type in sorted(types):
        spec = base.get(type)
        real = base.handler(type) if spec is not None else None
        if spec is not None and (spec.container or spec.trigger):
            continue
        extra.append(ScriptedBlock(script, type, real))
    return Registry.load(extra=extra, sandbox=sandbox)
