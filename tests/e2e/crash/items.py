"""Functions for a server's `WEFT_FUNCTIONS`: they do items one after the other, note each in a file, and keep how far
they came. The first attempt stands still in front of item `stop`."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from executor.kernel.handler.base import StepContext


async def in_the_loop(items: list[str], file: str, stop: int, ctx: StepContext) -> dict[str, Any]:
    began = ctx.last_checkpoint or 0
    for n in range(began, len(items)):
        while n == stop and ctx.attempt == 1:
            await asyncio.sleep(0.05)
        _note(file, items[n])
        await ctx.checkpoint(n + 1)
    return {"began": began, "attempt": ctx.attempt}


def in_a_thread(items: list[str], file: str, stop: int, ctx: StepContext) -> dict[str, Any]:
    began = ctx.last_checkpoint or 0
    for n in range(began, len(items)):
        while n == stop and ctx.attempt == 1:
            time.sleep(0.05)
        _note(file, items[n])
        ctx.checkpoint_from_thread(n + 1)
    return {"began": began, "attempt": ctx.attempt}


def _note(file: str, item: str) -> None:
    with Path(file).open("a") as notes:
        notes.write(f"{item}\n")
