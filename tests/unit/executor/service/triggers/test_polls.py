"""Triggers that poll: each new item of a list starts one run, in the transaction that moves the state on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from executor.errors import BlockError, Conflict
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from executor.open.testing.engines import ManualClock, engine
from executor.service.triggers import polls
from tests.support.polled import Shop, shop, watching
from tests.support.until import until

ID = "orders:order"


@pytest.fixture
async def service() -> AsyncIterator[Shop]:
    async with shop() as one:
        yield one


def opened(service: Shop, **options: Any) -> Any:
    return engine(blocks=[service.block()], allow_private=["127.0.0.1"], **options)


@pytest.fixture(autouse=True)
def _claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim ends when no poll is due: `done` knows it by that."""
    monkeypatch.setattr(polls, "CLAIM_MS", polls.CLAIM_MS + 1)


async def polled(weft: Engine, seconds: float = 61) -> None:
    """The time of the next poll comes, and all that it starts has ended."""
    clock = weft.parts.clock
    assert isinstance(clock, ManualClock)
    clock.set(clock.now_ms() + round(seconds * 1000))
    await done(weft)


async def done(weft: Engine) -> None:
    async def look() -> bool:
        row = await weft.store.get_schedule(ID)
        assert row is not None
        next_ms, now_ms = row.next_run_at_ms, weft.parts.clock.now_ms()
        due = next_ms is not None and (next_ms <= now_ms or next_ms == now_ms + polls.CLAIM_MS)  # or claimed
        return not (due or weft.schedules.scheduler.polls.under_way)

    await until(look)


async def _ended(weft: Engine) -> bool:
    counts = await weft.runs.count()
    return not any(count for status, count in counts.items() if status in ("queued", "running"))


async def names(weft: Engine) -> list[str]:
    """The names of the events that started runs, in their order."""
    await until(lambda: _ended(weft))
    runs = [await weft.runs.view(row.id) for row in await weft.runs.list(workflow="orders")]
    assert all(run.status == "succeeded" for run in runs), [run.error for run in runs]
    outputs = [run.output for run in runs]
    return [output["name"] for output in sorted(outputs, key=lambda one: int(str(one["id"]).lstrip("#")))]


async def test_new_items_start_runs_and_what_was_there_does_not(service: Shop) -> None:
    service.add("old", "older")
    async with opened(service) as weft:
        await weft.workflows.save(watching())
        await done(weft)
        assert await names(weft) == []
        service.add("tea")
        await polled(weft)
        assert await names(weft) == ["tea"]
        service.add(*"abcdefg")  # more than two pages
        await polled(weft)
        await polled(weft)
        assert await names(weft) == ["tea", *"abcdefg"]
        view = await weft.schedules.get(ID)
        assert (view.polls, view.cron, view.error, view.input) == (True, "@every 60s", None, {})
        assert view.last_run_id is not None
        assert {fire.outcome for fire in await weft.schedules.fires(ID)} == {"started"}


async def test_items_from_a_number_on_are_read_to_the_end(service: Shop) -> None:
    service.add(*"ab")
    async with opened(service) as weft:
        await weft.workflows.save(watching("later_order"))
        await done(weft)
        service.add(*"cdefghij")
        await polled(weft)
        assert await names(weft) == [*"cdefghij"]
        assert "/after?from=2" in service.asked


async def test_existing_items_count_if_asked(service: Shop) -> None:
    service.add(*"ab")
    async with opened(service) as weft:
        await weft.workflows.save(watching(existing=True))
        await done(weft)
        assert await names(weft) == [*"ab"]


async def test_older_items_that_come_to_light_are_no_events(service: Shop) -> None:
    service.add(*"abcdef")
    async with opened(service) as weft:
        await weft.workflows.save(watching())
        await done(weft)
        del service.orders[3:]  # all that was seen
        await polled(weft)
        assert await names(weft) == []


async def test_an_error_is_shown_waits_longer_and_loses_nothing(service: Shop) -> None:
    service.add("old")
    async with opened(service) as weft:
        await weft.workflows.save(watching())
        await done(weft)
        service.status = 500
        service.add("tea")
        waits = []
        for _ in range(3):
            await polled(weft, 3600)
            view = await weft.schedules.get(ID)
            assert "answered 500" in (view.error or "") and view.next_run_at_ms is not None
            waits.append(view.next_run_at_ms - weft.parts.clock.now_ms())
        assert waits[1] == 2 * waits[0] and waits[2] == 4 * waits[0]
        service.status = 200
        await polled(weft, 3600)
        assert await names(weft) == ["tea"]
        assert (await weft.schedules.get(ID)).error is None
        outcomes = [fire.outcome for fire in await weft.schedules.fires(ID)]
        assert outcomes == ["started", "failed"]  # a failure is listed once


async def test_many_events_are_more_than_one_transaction(service: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polls, "RUNS_MAX", 2)
    service.add("old")
    async with opened(service) as weft:
        await weft.workflows.save(watching())
        await done(weft)
        service.add(*"abcde")
        await polled(weft)
        assert await names(weft) == [*"abcde"]


async def lists(weft: Engine) -> list[list[str]]:
    await until(lambda: _ended(weft))
    runs = [await weft.runs.view(row.id) for row in await weft.runs.list(workflow="orders")]
    return sorted([order["name"] for order in run.output["events"]] for run in runs)


def listing(**params: Any) -> Any:
    document = watching(every_s=10, **params)
    document["blocks"]["note"]["params"]["value"] = {"events": "<order.events>"}
    return document


async def test_events_come_in_lists(service: Shop) -> None:
    service.add("old")
    async with opened(service) as weft:
        await weft.workflows.save(listing(batch_max=3))
        await done(weft)
        service.add(*"abcdefg")
        await polled(weft, 11)
        assert await lists(weft) == [[*"abc"], [*"def"], ["g"]]


async def test_a_list_that_is_not_full_waits(service: Shop) -> None:
    service.add("old")
    async with opened(service) as weft:
        await weft.workflows.save(listing(batch_max=3, batch_within_s=60))
        await done(weft)
        service.add(*"abcd")
        await polled(weft, 11)
        assert await lists(weft) == [[*"abc"]]
        service.add("e")
        await polled(weft, 30)
        assert await lists(weft) == [[*"abc"]]
        await polled(weft, 40)
        assert await lists(weft) == [[*"abc"], [*"de"]]
        await polled(weft, 100)
        assert len(await lists(weft)) == 2


async def test_events_start_one_run_once_it_is_quiet(service: Shop) -> None:
    service.add("old")
    async with opened(service) as weft:
        await weft.workflows.save(listing(debounce_s=25))
        await done(weft)
        for name in "abc":
            service.add(name)
            await polled(weft, 20)
            assert await lists(weft) == []
        await polled(weft, 26)
        assert await lists(weft) == [[*"abc"]]
        service.add("d")
        await polled(weft, 11)
        for _ in range(30):  # never quiet
            service.add("x")
            await polled(weft, 20)
            if len(await lists(weft)) == 2:
                break
        assert len((await lists(weft))[1]) == 14


async def test_a_list_with_an_event_that_cannot_be_input_is_divided(service: Shop) -> None:
    service.add("old")
    async with opened(service) as weft:
        await weft.workflows.save(listing(batch_max=3))
        await done(weft)
        deep: Any = 1
        for _ in range(80):
            deep = [deep]
        service.add(*"abc")
        service.orders[2]["deep"] = deep
        await polled(weft, 11)
        assert await lists(weft) == [["a"], ["c"]]


async def test_two_engines_start_one_run_for_each_event(service: Shop, tmp_path: Path) -> None:
    service.add("old")
    clock, path = ManualClock(), tmp_path / "weft.db"
    async with opened(service, clock=clock, database=path) as one, opened(service, clock=clock, database=path) as two:
        await one.workflows.save(watching())
        await done(one)
        for name in "abcde":
            service.add(name)
            await polled(one)
            await done(two)
        assert await names(one) == [*"abcde"]


async def test_a_claim_that_ended_is_another_ones_and_the_first_writes_nothing(service: Shop, tmp_path: Path) -> None:
    service.add("old")
    async with opened(service, database=SQLiteStore(tmp_path / "weft.db")) as weft:
        await weft.workflows.save(watching())
        await done(weft)
        service.add("tea")
        service.gate = asyncio.Event()
        clock = weft.parts.clock
        clock.set(clock.now_ms() + 61_000)
        await until(lambda: len(service.asked) == 2)
        row = await weft.store.get_schedule(ID)
        assert row is not None and row.next_run_at_ms is not None
        assert await weft.store.claim_poll(ID, row.next_run_at_ms, row.next_run_at_ms + 1)
        service.gate.set()
        await until(lambda: not weft.schedules.scheduler.polls.under_way)
        assert await names(weft) == []
        await polled(weft, 300)
        assert await names(weft) == ["tea"]


async def test_a_new_version_keeps_the_place_and_another_source_is_marked_anew(service: Shop) -> None:
    service.add("old")
    async with opened(service) as weft:
        await weft.workflows.save(watching())
        await done(weft)
        service.add("tea")
        await weft.workflows.save({**watching(every_s=30), "description": "New"})
        await done(weft)
        await polled(weft)
        assert await names(weft) == ["tea"]
        service.add("coffee")
        await weft.workflows.save(watching(shop="north"))
        await done(weft)
        await polled(weft)
        assert await names(weft) == ["tea"]


async def test_what_comes_while_it_is_off_starts_nothing(service: Shop) -> None:
    service.add("old")
    async with opened(service) as weft:
        await weft.workflows.save(watching())
        await done(weft)
        await weft.schedules.switch(ID, False)
        service.add("tea")
        await polled(weft)
        await weft.schedules.switch(ID, True)
        await polled(weft)
        service.add("coffee")
        await polled(weft)
        assert await names(weft) == ["coffee"]


async def test_it_can_be_polled_at_once(service: Shop) -> None:
    service.add("old")
    async with opened(service) as weft:
        await weft.workflows.save(watching())
        await done(weft)
        with pytest.raises(Conflict, match="nothing new"):
            await weft.schedules.run_now(ID)
        service.add("tea")
        run = await weft.schedules.run_now(ID)
        assert (await weft.wait_finished(run, 5)).output == {"name": "tea", "id": "2"}


async def test_a_draft_runs_with_the_newest_event(service: Shop) -> None:
    async with opened(service) as weft:
        draft = await weft.drafts.create(watching(batch_max=5))
        with pytest.raises(Conflict, match="no event"):
            await weft.listening.poll(draft.id, "order")
        service.add("tea", "paper")
        started = await weft.listening.poll(draft.id, "order")
        run = await weft.wait_finished(started.run, 5)
        assert run.output == {"name": "paper", "id": "2"} and started.input["events"] == [started.input["event"]]
        assert run.draft_id == draft.id and await weft.schedules.all() == []
        service.status = 500
        with pytest.raises(BlockError, match="answered 500"):
            await weft.listening.poll(draft.id, "order")
        service.status = 200
        newest = await weft.listening.poll(draft.id, "order", "")
        assert newest.run is None and newest.newest
        service.add("ink", "glue")
        next = await weft.listening.poll(draft.id, "order", newest.after)
        assert next.run is not None and next.input["event"]["name"] == "ink"
        again = await weft.listening.poll(draft.id, "order", newest.after)
        assert again.run == next.run, "an answer that was lost starts no second run"
        assert await weft.schedules.all() == []
        start = {**watching(), "blocks": {"order": {"type": "start"}}, "edges": []}
        other = await weft.drafts.create(start)
        with pytest.raises(BlockError, match="cannot poll"):
            await weft.listening.poll(other.id, "order")


async def test_listening_for_the_next_event_ends(service: Shop) -> None:
    async with opened(service) as weft:
        draft = await weft.drafts.create(watching())
        begun = await weft.listening.poll(draft.id, "order", "")
        assert not begun.newest and begun.after is not None
        waiting = await weft.listening.poll(draft.id, "order", begun.after)
        assert (waiting.run, waiting.until_ms, waiting.newest) == (None, begun.until_ms, False)
        ended = pytest.raises(Conflict, match="has ended")
        for wrong in (f"x{begun.after}", begun.after[:-1], "x"):
            with ended:
                await weft.listening.poll(draft.id, "order", wrong)
        changed = await weft.drafts.put(draft.id, 1, watching(shop="north"))
        with ended:
            await weft.listening.poll(draft.id, "order", begun.after)
        await weft.drafts.put(draft.id, changed.rev, watching())
        weft.parts.clock.set(begun.until_ms)
        with ended:
            await weft.listening.poll(draft.id, "order", begun.after)
        assert await weft.runs.list() == [] and await weft.schedules.all() == []


async def test_an_event_that_is_too_large_is_listed_and_passed_over(service: Shop) -> None:
    service.add("old")
    async with opened(service) as weft:
        await weft.workflows.save(watching())
        await done(weft)
        service.add("huge", "tea")
        deep: Any = 1
        for _ in range(80):
            deep = [deep]
        service.orders[1]["deep"] = deep
        await polled(weft)
        assert await names(weft) == ["tea"]
        assert "nested" in ((await weft.schedules.get(ID)).error or "")
        assert sorted(fire.outcome for fire in await weft.schedules.fires(ID)) == ["failed", "started"]
