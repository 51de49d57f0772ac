"""The same engine, days later by the clock: closed on Monday, opened on Saturday. In this process, on a real file."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.errors import AlreadyAnswered
from executor.open.engine import Engine
from tests.support.clock import ManualClock
from tests.support.journal import Journal
from tests.support.place import Place, store_at
from tests.support.runs import ended
from tests.support.service import Service

pytestmark = pytest.mark.proof

DAY_MS = 24 * 3600 * 1000
SECRET = b"0123456789abcdef"


@asynccontextmanager
async def engine_on(
    place: Place, clock: ManualClock, service: Service | None = None, lease_ms: int = 15_000
) -> AsyncIterator[Engine]:
    sandbox = Sandbox(threads=1)
    services = Services(sandbox=sandbox, http=GuardedClient(allow_private=(service.place,) if service else ()))
    registry = Registry.load(sandbox=sandbox)
    engine = await Engine.open(
        store_at(place), registry=registry, services=services, secret=SECRET, clock=clock, lease_ms=lease_ms
    )
    try:
        yield engine
    finally:
        await engine.close(grace_s=1)


def asking(**params: Any) -> dict[str, Any]:
    blocks = {
        "start": {"type": "start"},
        "ask": {"type": "approval", "params": {"title": "Pay?", **params}},
        "yes": {"type": "set", "params": {"value": {"paid": True, "by": "<ask.answered_by>"}}},
        "no": {"type": "set", "params": {"value": {"paid": False, "expired": "<ask.expired ?? false>"}}},
    }
    edges = [
        {"source": "start", "target": "ask"},
        {"source": "ask", "target": "yes", "handle": "approve"},
        {"source": "ask", "target": "no", "handle": "reject"},
    ]
    return {"format": "weft/1", "name": "pay", "blocks": blocks, "edges": edges}


def sleeping(seconds: int) -> dict[str, Any]:
    blocks = {
        "start": {"type": "start"},
        "sleep": {"type": "wait", "params": {"seconds": seconds}},
        "done": {"type": "set", "params": {"value": "awake"}},
    }
    edges = [{"source": "start", "target": "sleep"}, {"source": "sleep", "target": "done"}]
    return {"format": "weft/1", "name": "sleep", "blocks": blocks, "edges": edges}


async def run_until_it_waits(place: Place, clock: ManualClock, workflow: dict[str, Any]) -> tuple[str, str]:
    """The run, and the token of its link (empty for a timer). The engine is closed again."""
    async with engine_on(place, clock) as engine:
        run = (await engine.submit(workflow)).run
        assert (await engine.wait_finished(run, 60)).status == "waiting"
        (wait,) = await engine.waits.list("pending", run)
        return run, (wait.link or "").rpartition("/")[2]


async def test_a_link_of_last_week_still_works(place: Place) -> None:
    clock = ManualClock()
    run, token = await run_until_it_waits(place, clock, asking())
    clock.advance(5 * DAY_MS)

    async with engine_on(place, clock) as engine:
        taken = await engine.answer(token, {}, action="approve", by="Ada")
        assert taken.answered_at_ms == clock.now_ms()
        view = await ended(engine, run)
        assert (view.status, view.output) == ("succeeded", {"paid": True, "by": "Ada"})
        with pytest.raises(AlreadyAnswered, match="Ada"):
            await engine.answer(token, {}, action="reject", by="Bob")

    journal = Journal(place)
    journal.results_are_recorded_once()
    assert journal.started(run) == Counter(["start", "ask", "yes"])


async def test_what_expired_meanwhile_takes_its_path_by_itself(place: Place) -> None:
    clock = ManualClock()
    run, token = await run_until_it_waits(place, clock, asking(expires_in_s=3600, on_expire="reject"))
    clock.advance(5 * DAY_MS)

    async with engine_on(place, clock) as engine:
        view = await ended(engine, run)
        assert (view.status, view.output) == ("succeeded", {"paid": False, "expired": True})
        with pytest.raises(AlreadyAnswered, match="expired"):
            await engine.answer(token, {}, action="approve", by="Ada")
    assert Journal(place).started(run) == Counter(["start", "ask", "no"])


async def test_an_expiry_that_is_still_to_come_does_not_fire(place: Place) -> None:
    clock = ManualClock()
    run, token = await run_until_it_waits(place, clock, asking(expires_in_s=3600, on_expire="reject"))
    clock.advance(3_599_000)

    async with engine_on(place, clock) as engine:
        assert (await engine.answer(token, {}, action="approve", by="Ada")).answered_by == "Ada"
        assert (await ended(engine, run)).output == {"paid": True, "by": "Ada"}


async def test_a_timer_that_came_due_meanwhile_fires_on_opening(place: Place) -> None:
    clock = ManualClock()
    run, _ = await run_until_it_waits(place, clock, sleeping(seconds=3600))
    clock.advance(3_599_999)
    async with engine_on(place, clock) as engine:
        await asyncio.sleep(0.1)  # time to fire, if it were due
        assert (await engine.runs.view(run)).status == "waiting"
    clock.advance(1)
    async with engine_on(place, clock) as engine:
        assert (await ended(engine, run)).output == "awake"
