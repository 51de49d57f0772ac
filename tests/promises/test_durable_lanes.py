"""Durable functions that stay in memory while they wait, killed at every third commit (at every one in `make soak`)
with room for none, one and many, and owned by two processes in turn: nothing is lost or done twice."""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import weft
from executor.kernel.process.lane_cache import LaneCache
from executor.kernel.store.postgres.store import PostgresStore
from executor.open.testing.crashes import crash_everywhere
from executor.open.testing.engines import ManualClock, engine
from executor.open.testing.play import finish
from executor.service import parts
from tests.support.durable_functions import do, outside
from tests.support.postgres import database
from tests.support.size import size
from tests.support.until import until

pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]


async def one(name: str) -> str:
    got = await weft.signal(name)
    return await do(f"{name} {got}")


@weft.durable
async def child() -> str:
    await weft.sleep(minutes=1)
    return await do("child")


@weft.durable
async def both() -> list[str]:
    """Branches that wait, and a child that waits meanwhile: two lanes in memory."""
    return list(await weft.gather(one("a"), child(), one("b")))


@pytest.mark.soak
@pytest.mark.parametrize("lanes", [0, 1, 1_000])
async def test_killed_at_every_commit(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LaneCache", lambda most, most_bytes: LaneCache(lanes, most_bytes))
    outside.clear()
    report = await crash_everywhere(both, {}, answers={"a": 1, "b": 2}, outside=outside, every=size(3, 1))
    assert (report.status, report.output) == ("succeeded", ["a 1", "child", "b 2"])
    assert report.commits > 5


def has_done(effects: int) -> bool:
    return len(outside.effects) == effects


@weft.durable
async def in_turn() -> list[str]:
    return list(await weft.gather(one("a"), one("b")))


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
async def test_a_lane_is_not_used_when_another_process_has_had_the_run(
    store: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    outside.clear()
    clock = ManualClock()
    async with AsyncExitStack() as stack:
        opened: Any = tmp_path / "weft.db"
        if store == "postgresql":
            address = stack.enter_context(database(request.getfixturevalue("postgres_server"), "lanes"))
            opened = partial(PostgresStore, address)
        made = [
            await stack.enter_async_context(
                engine(workflows=[in_turn], database=opened() if callable(opened) else opened, clock=clock, lanes=10)
            )
            for _ in range(2)
        ]
        first, second = made
        run = (await first.submit(in_turn)).run

        def is_left() -> bool:
            return all(run not in each.parts.owned.loops for each in made)

        for did, (owner, other, name) in enumerate([(second, first, "a"), (first, second, "b")]):
            await until(is_left)
            if not did:
                assert len(first.parts.owned.lanes) == 1
            async with other._worker._leases:  # it claims nothing meanwhile
                await owner.signals.send(run, name, 1)
                await until(partial(has_done, did + 1))
        view = await finish(first, run)
        assert (view.status, view.output) == ("succeeded", ["a 1", "b 1"])
        assert [each.parts.owned.lanes.taken for each in made] == [0, 0]
        assert Counter(effect.what for effect in outside.effects) == Counter(["a 1", "b 1"])
