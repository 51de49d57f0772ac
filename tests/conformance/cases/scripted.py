"""Blocks that do what a case says: `return`, `echo`, `counter`, `sequence`, `raise`, `route`, `sleep`, `cancel`."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from compiler.catalog import BlockSpec
from executor.blocks.base import Block, Context, Done, Outcome
from executor.blocks.registry import Registry
from executor.errors import BlockError
from executor.sandbox import Sandbox


class Script:
    """The handlers of one case. `cancel` is called by a `cancel` handler with the run id."""

    def __init__(self, handlers: dict[str, dict[str, Any]]) -> None:
        self.handlers = handlers
        self.calls: Counter[str] = Counter()
        self.cancel: Callable[[str], Awaitable[object]] | None = None

    async def play(self, ctx: Context) -> Outcome:
        await asyncio.sleep(0)
        self.calls[ctx.block] += 1
        handler = self.handlers.get(ctx.block, {"kind": "id"})
        if not _applies(handler.get("when"), self.calls[ctx.block], ctx.key):
            handler = handler.get("else", {"kind": "id"})
        return await self._act(handler, ctx)

    async def _act(self, handler: dict[str, Any], ctx: Context) -> Outcome:
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
                await asyncio.sleep(handler["ms"] / 1000)
                return await self._act(handler.get("then", {"kind": "id"}), ctx)
            case "cancel":
                assert self.cancel is not None
                await self.cancel(ctx.run_id)
                return Done({"result": ctx.block})
            case other:
                raise AssertionError(f"the case has a handler of unknown kind {other!r}")


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


class ScriptedBlock:
    """A block type played by the script: for all blocks (`task`), or only for those the case has a handler for."""

    def __init__(self, script: Script, type: str, real: Block | None) -> None:
        self._script = script
        self._real = real
        self.spec = (
            real.spec
            if real
            else BlockSpec(type, type, "scripted", "action", params={"type": "object"}, effect="write")
        )

    async def run(self, ctx: Context) -> Outcome:
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
