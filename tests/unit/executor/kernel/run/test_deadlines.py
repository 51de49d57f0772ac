"""Retries, timer waits and expiries, by a clock that the test sets."""

from __future__ import annotations

import asyncio

import orjson

from executor.errors import StoreError
from executor.kernel.core import commands as c
from executor.kernel.core import facts as f
from executor.kernel.core import messages as m
from executor.kernel.handler.base import Suspend
from executor.kernel.run.deadlines import RETRY_EXPIRY_MS, Deadlines
from executor.kernel.run.inbox import Inbox
from tests.unit.executor.kernel.run.one_run import APPROVAL, OneRun

TIMER = Suspend("timer", {}, None, ())
SIGNAL = Suspend("signal", {}, None, (), name="go")


async def waiting(asked: Suspend) -> tuple[OneRun, Deadlines, c.SetTimer]:
    one = await OneRun.of("start a")
    one.begin()
    due_ms = one.clock.now_ms() + 1000
    one.ask("a", asked, due_ms=due_ms)
    await one.append()
    inbox = Inbox(one.run, one.parts, one.recorder, one.border(), one.arrivals)
    return one, Deadlines(one.run, one.parts, inbox, one.arrivals), c.SetTimer(one.key("a"), 1, due_ms)


async def test_a_timer_fires_when_it_is_due_and_not_before() -> None:
    one, deadlines, timer = await waiting(TIMER)
    deadlines.set(timer)
    one.clock.advance(999)
    assert one.facts() == []
    one.clock.advance(1)
    assert one.facts() == [f.TimerFired(timer.due_ms, one.key("a"), 1)]
    [result] = one.arrivals.results
    assert orjson.loads(result.payload.output or b"")["status"] == "completed"


async def test_a_retry_has_no_output() -> None:
    one, deadlines, _ = await waiting(TIMER)
    deadlines.set(c.SetTimer(one.key("start"), 2, one.clock.now_ms() + 5))
    one.clock.advance(5)
    [result] = one.arrivals.results
    assert result.payload.output is None


async def test_nothing_fires_after_close() -> None:
    one, deadlines, timer = await waiting(TIMER)
    deadlines.set(timer)
    deadlines.close()
    one.clock.advance(5000)
    assert one.facts() == []


async def test_the_row_of_a_wait_expires_and_a_message_says_so() -> None:
    one, deadlines, timer = await waiting(APPROVAL)
    deadlines.set(timer)
    one.clock.advance(1000)
    await asyncio.wait_for(one.arrivals.changed.wait(), 30)
    assert one.facts() == [], "the message decides"
    [row] = await one.store.read_inbox(one.run.id)
    assert m.decode(row.message) == m.Expired("a!1", one.clock.now_ms())
    wait = await one.store.get_wait(one.run.id, "a!1")
    assert wait is not None
    assert wait.status == "expired"


async def test_a_wait_that_was_answered_in_time_does_not_expire() -> None:
    one, deadlines, timer = await waiting(APPROVAL)
    deadlines.set(timer)
    wait = await one.store.get_wait(one.run.id, "a!1")
    assert wait is not None
    answer = m.encode(m.Answer("a!1", 5, {}, "yes"))
    await one.store.answer_wait(wait.token_hash, b"{}", None, answer, one.clock.now_ms())
    one.clock.advance(1000)
    await asyncio.wait_for(one.arrivals.changed.wait(), 30)
    assert [m.decode(row.message) for row in await one.store.read_inbox(one.run.id)] == [m.Answer("a!1", 5, {}, "yes")]


async def test_the_row_of_a_wait_for_a_signal_stays_open() -> None:
    one, deadlines, timer = await waiting(SIGNAL)
    deadlines.set(timer)
    one.clock.advance(1000)
    await asyncio.wait_for(one.arrivals.changed.wait(), 30)
    assert len(await one.store.read_inbox(one.run.id)) == 1
    wait = await one.store.get_wait(one.run.id, "a!1")
    assert wait is not None
    assert wait.status == "pending"


async def test_the_timer_of_a_retry_that_began_sooner_does_not_expire_the_wait_that_came_of_it() -> None:
    one, deadlines, timer = await waiting(APPROVAL)
    deadlines.set(c.SetTimer(timer.key, 1, timer.due_ms - 1))
    one.clock.advance(5000)
    for _ in range(5):
        await asyncio.sleep(0)
    assert await one.store.read_inbox(one.run.id) == []


async def test_an_expiry_that_could_not_be_stored_is_tried_again() -> None:
    one, deadlines, timer = await waiting(APPROVAL)
    expire_wait = one.store.expire_wait

    async def refuse(run_id: str, wait_id: str, message: bytes, now_ms: int) -> bool:
        raise StoreError("the disk is full")

    one.store.expire_wait = refuse
    deadlines.set(timer)
    one.clock.advance(1000)
    for _ in range(5):
        await asyncio.sleep(0)
    one.store.expire_wait = expire_wait
    one.clock.advance(RETRY_EXPIRY_MS)
    await asyncio.wait_for(one.arrivals.changed.wait(), 30)
    assert len(await one.store.read_inbox(one.run.id)) == 1
