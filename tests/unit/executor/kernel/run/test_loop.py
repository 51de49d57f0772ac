"""The loop of one run, without an engine or a worker: what it commits, in which order, and how it leaves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from executor.errors import Fenced, StoreError
from executor.kernel.core import facts as f
from executor.kernel.core import messages as m
from executor.kernel.handler.base import Suspend
from executor.kernel.handler.needs import RunLimits
from executor.kernel.run.recover import recover
from executor.kernel.store.run_rows import Append, Appended
from tests.unit.executor.kernel.run.one_run import LEASE_MS, OneRun


def recorded(one: OneRun) -> list[list[str]]:
    """Every append from now on, as "type node"; beside them what the step ran and when readers were woken."""
    appends: list[list[str]] = []
    append = one.store.append

    async def recording(change: Append) -> Appended:
        appends.append([f"{r.type} {r.node}" if r.node else r.type for r in change.records])
        signals, ran = one.parts.hub.signals, sum(one.step.ran.values())
        appended = await append(change)
        assert (one.parts.hub.signals, sum(one.step.ran.values())) == (signals, ran), (
            "nothing happens before the commit"
        )
        return appended

    one.store.append = recording
    return appends


async def test_a_run_is_driven_to_its_end() -> None:
    one = await OneRun.of("start a", "a b")
    appends = recorded(one)
    signals = one.parts.hub.signals
    loop, first = await recover(one.parts, one.run.row)
    assert await loop.drive(first) == "finished"
    assert appends == [
        ["node.started start", "node.succeeded start", "node.started a"],
        ["node.succeeded a", "node.started b"],
        ["node.succeeded b", "run.finished"],
    ]
    assert one.parts.hub.signals == signals + 3
    row = await one.store.get_run(one.run.id)
    assert row is not None
    assert (row.status, row.output) == ("succeeded", b'{"n":1,"value":null}')


async def test_a_run_that_waits_parks_and_frees_its_lease() -> None:
    one = await OneRun.of("start a")
    one.begin()
    one.ask("a")
    await one.append()
    assert await one.loop().drive([]) == "parked"
    row = await one.store.get_run(one.run.id)
    assert row is not None
    assert (row.status, row.lease_owner) == ("waiting", None)


async def test_an_answer_goes_on_from_where_the_run_waited() -> None:
    one = await OneRun.of("start a", "a b")
    one.begin()
    one.ask("a")
    await one.append()
    await one.post(m.Answer("a!1", 5, {}, "yes"))
    assert await one.loop().drive([]) == "finished"
    assert one.step.ran == {"b": 1}


async def test_a_loop_that_stops_starts_nothing_more() -> None:
    one = await OneRun.of("start a", "a b")
    held = one.step.holding["a"] = asyncio.Event()
    loop, first = await recover(one.parts, one.run.row)
    driving = asyncio.create_task(loop.drive(first))
    await one.step.until_ran("a")
    loop.stop()
    held.set()
    assert await asyncio.wait_for(driving, 30) == "stopped"
    assert one.step.ran == {"a": 1}
    row = await one.store.get_run(one.run.id)
    assert row is not None
    assert row.lease_owner is None


async def test_a_cancelled_family_ends_the_run() -> None:
    one = await OneRun.of("start a")
    one.step.holding["a"] = asyncio.Event()
    loop, first = await recover(one.parts, one.run.row)
    driving = asyncio.create_task(loop.drive(first))
    await one.step.until_ran("a")
    loop.end_with_family()
    assert await asyncio.wait_for(driving, 30) == "finished"
    row = await one.store.get_run(one.run.id)
    assert row is not None
    assert row.status == "cancelled"


async def test_attempts_go_on_when_an_append_is_refused() -> None:
    """The run was cancelled while its last block ended: the loop that follows has the result, and hears the cancel."""
    one = await OneRun.of("start a")
    held = one.step.holding["a"] = asyncio.Event()
    loop, first = await recover(one.parts, one.run.row)
    driving = asyncio.create_task(loop.drive(first))
    await one.step.until_ran("a")
    assert await one.store.cancel_run(one.run.id, m.encode(m.Cancel("enough")), one.clock.now_ms())
    held.set()
    assert await asyncio.wait_for(driving, 30) == "refused"
    [result] = loop.attempts.arrivals.results
    assert isinstance(result.fact, f.NodeDone)
    row = await one.store.get_run(one.run.id)
    assert row is not None
    again, first = await recover(one.parts, row, loop.attempts)
    assert not [fact for fact in first if isinstance(fact, f.AttemptLost)], "its result is here"
    assert await asyncio.wait_for(again.drive(first), 30) == "finished"
    row = await one.store.get_run(one.run.id)
    assert row is not None
    assert row.status == "cancelled"
    assert one.step.ran == {"a": 1}


async def test_an_attempt_of_an_earlier_owner_is_lost() -> None:
    one = await OneRun.of("start a")
    one.begin()
    await one.append()
    row = await one.store.get_run(one.run.id)
    assert row is not None
    _, first = await recover(one.parts, row)
    [lost] = [fact for fact in first if isinstance(fact, f.AttemptLost)]
    assert (lost.key, lost.attempt) == (one.key("a"), 1)


async def test_a_run_that_another_worker_has_is_dropped_with_its_attempts() -> None:
    one = await OneRun.of("start a", "start b")
    held = one.step.holding["a"] = asyncio.Event()
    other = one.step.holding["b"] = asyncio.Event()
    loop, first = await recover(one.parts, one.run.row)
    driving = asyncio.create_task(loop.drive(first))
    await one.step.until_ran("a")
    await one.step.until_ran("b")
    [_] = await one.store.claim("other", one.clock.now_ms() + LEASE_MS + 1, LEASE_MS, limit=1)
    held.set()
    with pytest.raises(Fenced):
        await asyncio.wait_for(driving, 30)
    assert len(loop.attempts) == 0
    other.set()


async def test_a_failed_append_poisons_the_loop() -> None:
    one = await OneRun.of("start a")

    async def fail(change: Append) -> Any:
        raise StoreError("the disk is full")

    one.store.append = fail
    loop, first = await recover(one.parts, one.run.row)
    with pytest.raises(StoreError):
        await loop.drive(first)
    assert one.step.ran == {}


async def test_a_run_over_its_bytes_fails() -> None:
    one = await OneRun.of("start a", "a b", limits=RunLimits(run_bytes=10))
    loop, first = await recover(one.parts, one.run.row)
    assert await loop.drive(first) == "finished"
    row = await one.store.get_run(one.run.id)
    assert row is not None
    assert row.status == "failed"
    assert b"limit_run_bytes" in (row.error or b"")
    assert one.step.ran == {"a": 1}


async def test_a_signal_that_came_first_is_found_before_the_run_sleeps() -> None:
    one = await OneRun.of("start a")
    one.begin()
    one.ask("a", Suspend("signal", {}, None, (), name="go"))
    sent = m.encode(m.SignalSent("go"))
    await one.store.post_signal(one.run.id, "go", None, b"1", None, None, sent, one.clock.now_ms())
    assert await one.loop().drive([f.Recovered(one.clock.now_ms())]) == "finished"
