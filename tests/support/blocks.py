"""Block types that do what a test says."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from compiler.catalog import BlockSpec
from executor.errors import BlockError
from executor.kernel.handler.base import Done, StepContext
from tests.support.documents import Json
from tests.support.until import until


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

    async def run(self, ctx: StepContext) -> Done:
        self.seen.append(ctx.params)
        if not self.outputs:
            return Done(ctx.params.get("value"))
        output = self.outputs.pop(0) if len(self.outputs) > 1 else self.outputs[0]
        if isinstance(output, BlockError):
            raise output
        return Done(output)


class Hold:
    """Block type `hold`: works until `free` is set. `started`: what began, by run and key."""

    spec = BlockSpec(type="hold", title="Hold", description="", category="action")

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.started: list[tuple[str, str]] = []

    async def run(self, ctx: StepContext) -> Done:
        self.started.append((ctx.run_id, ctx.key))
        await self.free.wait()
        return Done("held")


class Speak:
    """Block type `speak`: emits its param `pieces` one by one, and returns them as one text at once after the last."""

    spec = BlockSpec("speak", "Speak", "", "action")

    async def run(self, ctx: StepContext) -> Done:
        for number, piece in enumerate(ctx.params["pieces"]):
            if number:
                await asyncio.sleep(0)
            ctx.emit(piece)
        return Done({"all": "".join(ctx.params["pieces"])})


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

    async def run(self, ctx: StepContext) -> Done:
        self.ran[ctx.key] += 1
        if ctx.block in self.holding:
            await self.holding[ctx.block].wait()
        if ctx.key in self.failing:
            raise BlockError("the test says so", code="scripted", retryable=True)
        return Done({"n": self.ran[ctx.key], "value": ctx.params.get("value")})

    async def until_ran(self, key: str) -> None:
        """Until an attempt has begun: its start is on disk, and told, before it is made."""
        await until(lambda: self.ran[key])
