"""Expiries: by themselves and on time, also of what came due while no process ran, and never beside an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from executor.errors import AlreadyAnswered
from executor.open.engine import Engine
from tests.e2e.crash.test_days_later import DAY_MS, engine_on
from tests.support.clock import ManualClock
from tests.support.journal import Journal
from tests.support.place import Place
from tests.support.runs import ended

pytestmark = pytest.mark.proof

RACES = 30
ROUNDS = 3
STEP_S = 0.002  # those who press come one after the other, from the moment of the expiries on


def asking(type: str, **params: Any) -> dict[str, Any]:
    if type == "form":
        params |= {"fields": {"properties": {"n": {"type": "integer"}}}}
    blocks = {"start": {"type": "start"}, "ask": {"type": type, "params": {"expires_in_s": 60, **params}}}
    return {"format": "weft/1", "name": type, "blocks": blocks, "edges": [{"source": "start", "target": "ask"}]}


async def answer(engine: Engine, type: str, run: str, wait: str) -> None:
    if type == "callback":
        await engine.callbacks.receive(engine.parts.links.token(run, wait, "callback"), {"n": 1}, {})
    else:
        await engine.answer(engine.parts.links.token(run, wait), {}, action="approve" if type == "approval" else None)


@pytest.mark.parametrize("type", ["approval", "form", "callback", "signal"])
async def test_an_expiry_fires_on_time_and_not_before(place: Place, type: str) -> None:
    clock = ManualClock()
    params = {"name": "go"} if type == "signal" else {}
    async with engine_on(place, clock) as engine:
        run = (await engine.submit(asking(type, on_expire="continue", **params))).run
        view = await engine.wait_finished(run, 60)
        (wait,) = view.waits
        assert wait.expires_at_ms is not None
        clock.advance(wait.expires_at_ms - clock.now_ms() - 1)
        await asyncio.sleep(0.1)  # time to fire, if it were due
        assert (await engine.runs.view(run)).status == "waiting"
        clock.advance(1)
        assert (await ended(engine, run)).status == "succeeded"
        expired = await engine.waits.get(run, wait.id)
        assert (expired.status, expired.answered_at_ms) == ("expired", wait.expires_at_ms)


@pytest.mark.parametrize("type", ["form", "callback"])
@pytest.mark.parametrize(
    ("on_expire", "status"), [("fail", "failed"), ("continue", "succeeded"), ("skip", "succeeded")]
)
async def test_what_expired_while_no_server_ran_is_done_on_opening(
    place: Place, type: str, on_expire: str, status: str
) -> None:
    clock = ManualClock()
    async with engine_on(place, clock) as engine:
        run = (await engine.submit(asking(type, on_expire=on_expire))).run
        (wait,) = (await engine.wait_finished(run, 60)).waits
    clock.advance(3 * DAY_MS)
    async with engine_on(place, clock) as engine:
        assert (await ended(engine, run)).status == status
        with pytest.raises(AlreadyAnswered, match="expired"):
            await answer(engine, type, run, wait.id)


@pytest.mark.parametrize("type", ["approval", "form", "callback"])
async def test_of_an_answer_a_withdrawal_and_an_expiry_exactly_one_wins(place: Place, type: str) -> None:
    """All three at the moment it expires, in another order each time. A client whose answer was accepted did win."""
    clock = ManualClock()
    won: dict[str, int] = {"answer": 0, "withdraw": 0, "expiry": 0}
    async with engine_on(place, clock) as engine:
        for round in range(ROUNDS):
            runs = [(await engine.submit(asking(type, on_expire="continue"))).run for _ in range(RACES)]
            waits = [(await engine.wait_finished(run, 60)).waits[0] for run in runs]

            async def attempt(what: str, run: str, wait: str, after_s: float) -> str | None:
                await asyncio.sleep(after_s)
                try:
                    if what == "answer":
                        await answer(engine, type, run, wait)
                    else:
                        await engine.waits.cancel(run, wait, by="Ada")
                except AlreadyAnswered:
                    return None
                return what

            order = ["answer", "withdraw"] if round % 2 else ["withdraw", "answer"]
            racing = list(enumerate(waits[: RACES * 2 // 3]))
            clock.advance(60_000)
            tries = [attempt(what, wait.run, wait.id, n * STEP_S) for n, wait in racing for what in order]
            told = [what for what in await asyncio.gather(*tries) if what is not None]
            states: list[str] = []
            for wait in waits:
                await ended(engine, wait.run)
                states.append((await engine.waits.get(wait.run, wait.id)).status)
            assert states.count("answered") == told.count("answer")
            assert states.count("cancelled") == told.count("withdraw")
            assert "pending" not in states
            for name, status in (("answer", "answered"), ("withdraw", "cancelled"), ("expiry", "expired")):
                won[name] += states.count(status)
            for wait, status in zip(waits, states, strict=True):
                view = await engine.runs.view(wait.run)
                assert view.status == ("failed" if status == "cancelled" else "succeeded")
                assert (view.output is None) == (status != "answered")
                if status == "cancelled":
                    assert view.error is not None and view.error["code"] == "wait_cancelled"
    assert sum(won.values()) == RACES * ROUNDS and min(won["expiry"], won["answer"] + won["withdraw"]) > 0, won
    journal = Journal(place)
    journal.results_are_recorded_once()
    for run in journal.events:
        assert [event["type"] for event in journal.events[run]].count("wait.closed") == 1
    print(f"{type}: {won}")
