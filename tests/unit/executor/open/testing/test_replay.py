"""Durable functions against journals: `weft.testing.replay`."""

from __future__ import annotations

import asyncio
import datetime as dt
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import msgspec
import pytest

import weft
from executor.open.testing.engines import engine
from executor.open.testing.play import finish
from executor.open.testing.replay import journal_of, replay
from executor.service.replay.journals import Journal, write
from server.scripted_model import ScriptedModel

now: dict[str, Any] = {"extra": "", "amount": 3}


@dataclass
class Paid:
    id: str
    at: datetime


@weft.step(effect="none")
async def charge(order: str, amount: float, day: date | None = None) -> Paid:
    if amount < 0:
        raise ValueError("no money")
    return Paid(f"{order} {amount:g}", datetime(2026, 1, 2, tzinfo=dt.UTC))


@weft.durable
async def order(order: str, amount: float = 3) -> str:
    if now["extra"] == "before":
        await weft.sleep(seconds=1)
    one, two = await asyncio.gather(charge(order, amount + now["amount"]), charge("b", 1, date(2026, 1, 1)))
    courier = await weft.signal("courier", type=str)
    if now["extra"] == "after":
        await charge("c", 1)
    return f"{one.id} {two.id} {courier} {now['extra']}"


@pytest.fixture(autouse=True)
def as_recorded() -> None:
    now.update(extra="", amount=3)


async def recorded(answers: Any = None, **arguments: Any) -> Journal:
    async with engine(workflows=[order]) as opened:
        run = (await opened.submit(order, **arguments)).run
        if answers is None:
            while (await opened.runs.view(run)).status not in ("waiting", "failed"):
                await asyncio.sleep(0.01)
        else:
            await finish(opened, run, answers)
        return await journal_of(opened, run)


async def test_the_same_code_makes_the_same_calls_and_comes_to_the_same_end() -> None:
    ended, waits, failed = (
        await recorded({"courier": "Ada"}, order="a"),
        await recorded(order="a"),
        await recorded(order="a", amount=-9),
    )
    one, two, three = replay(order, write([ended, waits, failed]))
    assert (one.status, one.output, one.error) == ("succeeded", "a 6 b 1 Ada ", None)
    assert (two.status, two.output, two.error) == ("waiting", None, None)
    assert (three.status, three.output, three.error) == ("failed", None, "function_failed")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"extra": "before"}, "call 1 is the wait `sleep` now, and was `"),
        (
            {"extra": "after"},
            r"test_replay\.py:\d+: call 4, `[\w.]+charge\(amount=1, .*\)`, is not in the journal: the run returned",
        ),
        ({"amount": 4}, r"call 1 is `[\w.]+charge\(amount=7.0, order=\"a\"\)` now, and was .*amount=6.0"),
        ({"extra": "x"}, 'it returned "a 6 b 1 Ada x", and the run returned "a 6 b 1 Ada "'),
    ],
)
async def test_another_call_or_end_is_an_error_that_shows_it(change: Any, said: str) -> None:
    journal = write([await recorded({"courier": "Ada"}, order="a")])
    now.update(change)
    with pytest.raises(AssertionError, match=said):
        replay(order, journal)


def test_what_is_no_journal_is_refused() -> None:
    for text in ("", "{}", '{"format": "weft-journals/2"}', "x", '{"format": "weft-journals/1"}\n{"seq": 1}'):
        with pytest.raises(weft.BadRequest, match="no journals of weft"):
            replay(order, text)


@weft.durable
async def research(topic: str) -> str:
    return await weft.agent("dev:m", f"Write about {topic}", tools=[charge])


async def test_the_calls_of_an_agent_are_those_of_the_function() -> None:
    asks = {"when": {"tool": ""}, "calls": [{"name": "charge", "arguments": {"order": "a", "amount": 3}}]}
    model = ScriptedModel(asks, {"text": "done"})
    async with engine(workflows=[research], models={"dev": model}) as opened:
        run = (await opened.submit(research, topic="lanes")).run
        assert (await finish(opened, run)).output == "done"
        journal = await journal_of(opened, run)
    assert [one.output for one in replay(research, write([journal]))] == ["done"]
    other = msgspec.structs.replace(journal, arguments={"topic": "loops"})
    with pytest.raises(AssertionError, match=r"call 1 is the model `dev:m` with .*loops.* now, and was .*lanes"):
        replay(research, write([other]))
