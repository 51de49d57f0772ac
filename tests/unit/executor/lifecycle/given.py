"""Runs to be lost, forked, retried and moved: two block types that do what the test says, and short workflows."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from compiler.catalog import BlockSpec
from executor.blocks.base import Context, Done
from executor.engine import Engine, RunView
from executor.errors import BlockError
from executor.store.rows import TERMINAL

Json = dict[str, Any]


class Step:
    """Puts out {"n": how often this key ran, "value": its param}; fails or stands still where the test says so.

    `effect` write and not idempotent: a lost attempt is asked about."""

    def __init__(self, type: str = "step", *, careful: bool = False) -> None:
        params: Json = {"type": "object", "properties": {"value": {}}}
        self.spec = BlockSpec(
            type,
            type.title(),
            "",
            "action",
            params=params,
            effect="write" if careful else "read",
            idempotent=not careful,
        )
        self.ran: Counter[str] = Counter()
        self.failing: set[str] = set()  # keys
        self.holding: dict[str, asyncio.Event] = {}  # blocks

    async def run(self, ctx: Context) -> Done:
        self.ran[ctx.key] += 1
        if ctx.block in self.holding:
            await self.holding[ctx.block].wait()
        if ctx.key in self.failing:
            raise BlockError("the test says so", code="scripted", retryable=True)
        return Done({"n": self.ran[ctx.key], "value": ctx.params.get("value")})

    async def until_ran(self, key: str) -> None:
        """Until an attempt has begun: its start is on disk, and told, before it is made."""
        async with asyncio.timeout(30):
            while not self.ran[key]:
                await asyncio.sleep(0.001)


def chain(*blocks: str, name: str = "chain", **changes: Json) -> Json:
    """start -> blocks in a row, each a `step` unless `changes` says otherwise."""
    made: Json = {"start": {"type": "start"}, **{block: {"type": "step", **changes.get(block, {})} for block in blocks}}
    edges = [{"source": a, "target": b} for a, b in zip(made, list(made)[1:], strict=False)]
    return {"format": "weft/1", "name": name, "blocks": made, "edges": edges}


def looped(count: int = 3, kind: str = "loop", **more: Json) -> Json:
    """start -> l(a -> b) -> last, `b` sees what `a` put out, `last` sees the results of `l`."""
    mode = {"mode": "for", "count": count} if kind == "loop" else {"mode": "count", "count": count}
    blocks: Json = {
        "start": {"type": "start"},
        "l": {"type": kind, "params": mode},
        "a": {"type": "step", "parent": "l", "params": {"value": f"<{kind}.index>"}},
        "b": {"type": "step", "parent": "l", "params": {"value": "<a.value>"}},
        "last": {"type": "step", "params": {"value": "<l.results>"}},
    }
    for block, change in more.items():
        blocks[block] = blocks[block] | change
    edges = [
        {"source": "start", "target": "l"},
        {"source": "l", "handle": "body", "target": "a"},
        {"source": "a", "target": "b"},
        {"source": "l", "target": "last"},
    ]
    return {"format": "weft/1", "name": "looped", "blocks": blocks, "edges": edges}


async def settled(engine: Engine, run: str) -> RunView:
    """The run when it has ended or waits for somebody."""
    return await engine.wait_finished(run, 30)


async def until(engine: Engine, run: str, type: str, node: str | None = None, count: int = 1) -> int:
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


def outputs(view: RunView) -> Json:
    return {node.key: node.output for node in view.nodes if node.status == "succeeded"}


async def journal(engine: Engine, run: str) -> list[tuple[str, str | None, int]]:
    return [
        (r.type, f"{r.node}@{r.path}" if r.path else r.node, r.attempt) for r in await engine.store.read_events(run)
    ]


def ended(view: RunView) -> bool:
    return view.status in TERMINAL
