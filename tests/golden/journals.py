"""Records the journals of durable functions (`programs.py`) of this version: `journals_VERSION.gz`, which all later
versions must replay (`test_journals.py`).

    python -m tests.golden.journals

Each minor version is recorded once, at its release. Recorded files do not change; nor do the programs.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from compiler.tracing.durable import DurableFunction
from executor.errors import Refused
from executor.open.engine import Engine
from executor.open.testing.engines import engine
from executor.open.testing.play import finish
from executor.open.testing.replay import journal_of
from executor.service.replay.journals import Journal, save
from tests.golden.programs import (
    PROGRAMS,
    golden_add,
    golden_branches,
    golden_buy,
    golden_cancelled,
    golden_cart,
    golden_first,
    golden_marked,
    golden_queue,
    golden_saga,
)

HERE = Path(__file__).parent
SAGA = {"order": "7", "amount": 3}
# Each program, its input, and its answers; without answers the run is left where it waits.
RUNS: tuple[tuple[DurableFunction[..., Any], dict[str, Any], dict[str, Any] | None], ...] = (
    (golden_saga, SAGA, None),
    (golden_saga, SAGA, {"Ship it?": "approve"}),
    (golden_saga, {**SAGA, "parts": 3}, {"Ship it?": "reject"}),
    (golden_first, {"name": "Ada"}, None),
    (golden_first, {"name": "Ada"}, {"confirmed": "ada@example.org"}),
    (golden_first, {"name": "Ada"}, {}),
    (golden_branches, {}, None),
    (golden_branches, {}, {}),
    (golden_queue, {}, None),
    (golden_queue, {"items": 7}, {}),
    (golden_marked, {}, None),
    (golden_marked, {}, {"end": "over"}),
    (golden_cancelled, {}, None),
    (golden_buy, {"order": "7"}, {}),
)


async def record() -> list[Journal]:
    async with engine(workflows=PROGRAMS) as opened:
        found = [await _one(opened, *each) for each in RUNS]
        run = (await opened.submit(golden_cancelled)).run
        await _waiting(opened, run)
        await opened.cancel(run)
        await finish(opened, run)
        cart = (await opened.submit(golden_cart)).run
        for item in ("tea", "", "tea"):
            with suppress(Refused):
                await opened.update(cart, golden_add, item, seconds=10)
        await _waiting(opened, cart)
        open_cart = await journal_of(opened, cart)
        await finish(opened, cart)
        return [*found, *[await journal_of(opened, one) for one in (run, cart)], open_cart]


async def _one(
    opened: Engine, program: DurableFunction[..., Any], input: dict[str, Any], answers: dict[str, Any] | None
) -> Journal:
    run = (await opened.submit(program, input=input)).run
    if answers is None:
        await _waiting(opened, run)
    else:
        await finish(opened, run, answers)
    return await journal_of(opened, run)


async def _waiting(opened: Engine, run: str) -> None:
    while (await opened.runs.view(run)).status != "waiting":
        await asyncio.sleep(0.02)


if __name__ == "__main__":
    path = HERE / f"journals_{version('weft')}.gz"
    save(path, asyncio.run(record()))
    print(f"{path.name}: {len(RUNS) + 3} runs, {path.stat().st_size:,} bytes")
