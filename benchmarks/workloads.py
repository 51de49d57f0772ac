"""What the durable benchmarks run: documents, and a block that does nothing.

The block says it writes to the world, so nothing may start before what it depends on is on disk.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from compiler.catalog import BlockSpec
from compiler.document import Limits
from executor.kernel.handler.base import Done, StepContext

Document = dict[str, Any]

# What is measured is larger than what people draw.
LIMITS = Limits(blocks=200_000, edges=400_000, document_bytes=1 << 30)


class Noop:
    """Does nothing, counts, and notes when it was last called. `reached` is done at the call number it was asked
    for."""

    spec = BlockSpec("noop", "No-op", "Does nothing, and says it writes.", "action", effect="write", attempts=3)

    def __init__(self) -> None:
        self.calls = 0
        self.called_at = 0.0
        self._until = 0
        self._reached: asyncio.Future[None] | None = None

    async def run(self, ctx: StepContext) -> Done:
        self.calls += 1
        self.called_at = time.perf_counter()
        if self.calls == self._until and self._reached is not None:
            self._reached.set_result(None)
        return _DONE

    def after(self, calls: int) -> asyncio.Future[None]:
        """Done when `calls` more calls were made."""
        self._until = self.calls + calls
        self._reached = asyncio.get_running_loop().create_future()
        return self._reached


class Pure(Noop):
    """The same of a block that changes nothing."""

    spec = BlockSpec("pure", "Pure", "Does nothing, and says so.", "action", effect="none")


_DONE = Done({"ok": True})


def document(name: str, blocks: Mapping[str, Document], edges: list[tuple[str, ...]], **settings: Any) -> Document:
    """`edges` are (source, target) or (source, handle, target). The trigger is `start`."""
    return {
        "format": "weft/1",
        "name": name,
        "settings": {"max_executions": 10_000_000, **settings},
        "blocks": {"start": {"type": "start", "name": "Start"}, **blocks},
        "edges": [
            {"source": edge[0], "target": edge[-1], **({"handle": edge[1]} if len(edge) == 3 else {})} for edge in edges
        ],
    }


def noop(id: str, **more: Any) -> Document:
    return {"type": "noop", "name": id, **more}


def chain(size: int) -> Document:
    ids = [f"s{n}" for n in range(size)]
    edges = list(zip(["start", *ids], ids, strict=False))
    return document(f"chain {size}", {id: noop(id) for id in ids}, [*edges])


def ahead(size: int) -> Document:
    """The chain of blocks that may start before the commit."""
    made = chain(size)
    blocks = {
        id: {**block, "type": "pure"} if block["type"] == "noop" else block for id, block in made["blocks"].items()
    }
    return {**made, "blocks": blocks, "settings": {**made["settings"], "durability": "ahead"}}


def fan(size: int) -> Document:
    """One source, `size` steps beside each other, one join."""
    ids = [f"s{n}" for n in range(size)]
    blocks = {"source": noop("source"), **{id: noop(id) for id in ids}, "join": noop("join")}
    edges = [("start", "source"), *(("source", id) for id in ids), *((id, "join") for id in ids)]
    return document(f"fan {size}", blocks, [*edges], max_concurrency=100_000)


def loop(iterations: int, steps: int) -> Document:
    ids = [f"s{n}" for n in range(steps)]
    params = {"mode": "for", "count": iterations, "max": iterations}
    blocks: dict[str, Document] = {"round": {"type": "loop", "name": "Round", "params": params}}
    blocks |= {id: noop(id, parent="round") for id in ids}
    edges = [("start", "round"), ("round", "body", ids[0]), *pairwise(ids)]
    return document(f"loop {iterations} x {steps}", blocks, [*edges])


def parallel(branches: int) -> Document:
    params = {"mode": "count", "count": branches}
    blocks = {"each": {"type": "parallel", "name": "Each", "params": params}, "step": noop("step", parent="each")}
    return document(f"parallel {branches}", blocks, [("start", "each"), ("each", "body", "step")])


def pause() -> Document:
    """An approval, then a step."""
    ask = {"type": "approval", "name": "Ask", "params": {"title": "Go on?", "actions": ["yes", "no"]}}
    return document("pause", {"ask": ask, "step": noop("step")}, [("start", "ask"), ("ask", "step")])
