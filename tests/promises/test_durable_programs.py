"""Random programs as durable functions, cancelled at any event, with processes that end at any event: all that was done
is undone once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

import weft
from executor.open.engine import Engine
from executor.open.testing.engines import BEGIN_MS, LEASE_MS, ManualClock, engine
from executor.open.testing.play import finish
from executor.service.views import RunView
from tests.promises.test_durable_cancel import mark, truth
from tests.support.durable_functions import outside

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]

SEEDS = 40
LOST = {f"Step {n} of {block} was lost": truth for n in range(1, 60) for block in ("body", "undo")}
Part = tuple[str, Any]


def drawn(rng: Random, depth: int = 0) -> list[Part]:
    """Return the parts of a random program, one after the other."""
    kinds = ["do", "do", "do", "sleep"] + (["both", "group", "shield", "timeout"] if depth < 3 else [])
    parts: list[Part] = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(kinds)
        match kind:
            case "do":
                parts.append((kind, f"{rng.randrange(10**9)}"))
            case "sleep":
                parts.append((kind, rng.randint(1, 5)))
            case "timeout":
                parts.append((kind, (rng.randint(1, 5), rng.randint(1, 5))))
            case "shield":
                parts.append((kind, drawn(rng, depth + 1)))
            case _:
                parts.append((kind, [drawn(rng, depth + 1) for _ in range(rng.randint(2, 3))]))
    return parts


async def carry_out(parts: list[Part], done: list[str]) -> None:
    for kind, what in parts:
        match kind:
            case "do":
                done.append(await mark(what))
            case "sleep":
                await weft.sleep(minutes=what)
            case "timeout":
                try:
                    async with weft.timeout(minutes=what[0]):
                        await weft.sleep(minutes=what[1])
                except TimeoutError:
                    done.append(await mark(f"late {len(done)}"))
            case "shield":
                async with weft.shield():
                    await carry_out(what, done)
            case "group":
                async with asyncio.TaskGroup() as group:
                    for each in what:
                        group.create_task(carry_out(each, done))
            case _:
                await weft.gather(what, lambda each: carry_out(each, done), at_most=2)


@weft.durable(undo=10 * 86_400)
async def program(seed: int) -> None:
    done: list[str] = []
    try:
        await carry_out(drawn(Random(seed)), done)
        await weft.signal("stop")
    except weft.Cancelled:
        for what in reversed(done):
            await mark(f"undo {what}")
            if len(what) % 3 == 0:
                await weft.sleep(minutes=1)
        raise


async def played_upto(opened: Engine, run: str, seq: int) -> RunView | None:
    """Play the run until it has so many events, or waits to be stopped. Returns it if it has ended."""
    playing = asyncio.create_task(finish(opened, run, LOST))
    try:
        while not playing.done():
            view = await opened.runs.view(run)
            if view.seq >= seq or any(wait.name == "stop" and wait.key == "body" for wait in view.waits):
                return None
            await asyncio.sleep(0.001)
        return playing.result()
    finally:
        playing.cancel()
        await asyncio.wait([playing])


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_program_that_is_cancelled_undoes_what_it_did(seed: int, tmp_path: Path) -> None:
    rng = Random(f"play {seed}")
    outside.clear()
    path, clock = tmp_path / "weft.db", ManualClock(BEGIN_MS)
    async with engine(workflows=[program], database=path, clock=clock) as opened:
        run = (await opened.submit(program, seed=seed)).run
        assert await played_upto(opened, run, rng.randint(4, 60)) is None
        if rng.random() < 0.5:
            await opened.cancel(run)
            cancelled = True
        else:
            cancelled = False
        await opened.stop_working(grace_s=0)  # what is under way is lost
    for crash in range(rng.randint(1, 3)):
        clock = ManualClock(clock.now_ms() + LEASE_MS + 1)
        async with engine(workflows=[program], database=path, clock=clock) as opened:
            if not cancelled:
                cancelled = await opened.cancel(run)
            seq = (await opened.runs.view(run)).seq
            await played_upto(opened, run, seq + rng.randint(1, 12))
            await opened.stop_working(grace_s=0)
        assert crash < 3
    async with engine(workflows=[program], database=path, clock=ManualClock(clock.now_ms() + LEASE_MS + 1)) as opened:
        view = await finish(opened, run, LOST)
    assert (view.status, view.error) == ("cancelled", None)
    assert [node.status for node in view.nodes if node.block == "undo"] in (["succeeded"], [])
    effects = [effect.what["what"] for effect in outside.effects]
    did = [what for what in effects if not what.startswith("undo ")]
    assert sorted(effects) == sorted([*did, *(f"undo {what}" for what in did)])
