"""Triggers whose service reports events: registered once, renewed, removed; a delivery is a poll at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from executor.open.testing.engines import ManualClock
from executor.service.triggers import hooks, polls
from executor.service.triggers.hooks import PushView
from tests.support.hooked import HookedShop, Mode, free_port, hooked_shop, public_engine
from tests.support.polled import watching
from tests.support.until import until
from tests.unit.executor.service.triggers.test_polls import ID, done, names, polled

OTHER_KEY = b"another key of tests, not secret"


@pytest.fixture
async def service() -> AsyncIterator[HookedShop]:
    async with hooked_shop() as one:
        yield one


@pytest.fixture
def port() -> int:
    return free_port()


def opened(
    service: HookedShop, folder: Path, port: int, clock: ManualClock | None = None, **options: Any
) -> AbstractAsyncContextManager[Engine]:
    store = SQLiteStore(folder / "weft.db")
    return public_engine(service, store, port, clock or ManualClock(), **options)


async def settled(weft: Engine) -> PushView:
    """All work of registrations is done, and nothing is due."""

    async def look() -> bool:
        topic, now_ms = weft.hooks, weft.parts.clock.now_ms()
        rows = [*await weft.store.missing_hooks(9), *await weft.store.due_hooks(now_ms, topic.place, 9)]
        return not (rows or topic.under_way)

    await until(look)
    await done(weft)
    view = (await weft.schedules.get(ID)).push
    assert view is not None
    return view


async def later(weft: Engine, seconds: float) -> PushView:
    clock = weft.parts.clock
    assert isinstance(clock, ManualClock)
    clock.set(clock.now_ms() + round(seconds * 1000))
    return await settled(weft)


@pytest.mark.parametrize("mode", ["own", "given", "handshake"])
async def test_a_delivery_starts_one_run_and_switching_off_removes_the_registration(
    mode: Mode, tmp_path: Path, port: int
) -> None:
    async with hooked_shop(mode) as service, opened(service, tmp_path, port) as weft:
        service.add("old")
        await weft.workflows.save(watching(delivery="push"))
        view = await settled(weft)
        assert view.registered and view.error is None and view.expires_at_ms == (service.now_s + 7 * 86_400) * 1000
        ((id, hook),) = service.hooks.items()
        await polled(weft)  # from here on it is polled seldom
        row = await weft.store.get_schedule(ID)
        assert row is not None and row.next_run_at_ms is not None
        assert row.next_run_at_ms - weft.parts.clock.now_ms() >= polls.CATCH_UP_MS - 61_000
        service.sell("tea")
        await until(lambda: service.delivered == [200])
        await done(weft)
        assert await names(weft) == ["tea"]
        await service.deliver(id, {"name": "tea"})  # again
        await service.deliver(id, {"name": "x"}, secret="Zm9yZ2Vk")
        assert service.delivered == [200, 200, 401]
        await done(weft)
        assert await names(weft) == ["tea"]
        text = (tmp_path / "weft.db").read_bytes() + (tmp_path / "weft.db-wal").read_bytes()
        assert hook["secret"].encode() not in text  # in no plain form
        await weft.schedules.switch(ID, False)
        await until(lambda: not service.hooks)
        await until(lambda: not weft.hooks.under_way)
        assert await weft.store.list_hooks() == []
        await weft.schedules.switch(ID, True)
        await settled(weft)
        assert len(service.hooks) == 1


async def test_it_is_renewed_each_day_and_made_again_if_someone_deleted_it(
    service: HookedShop, tmp_path: Path, port: int
) -> None:
    async with opened(service, tmp_path, port) as weft:
        await weft.workflows.save(watching(delivery="push"))
        await settled(weft)
        (first,) = service.hooks
        service.now_s += 86_400
        view = await later(weft, 86_400)
        assert list(service.hooks) == [first] and service.calls[-1] == f"POST /hooks/{first}/renew"
        assert view.expires_at_ms == (service.now_s + 7 * 86_400) * 1000
        service.hooks.clear()
        view = await later(weft, 86_401)
        assert view.registered and len(service.hooks) == 1 and [*service.hooks] != [first]


async def test_an_error_is_shown_and_polls_go_on_until_it_works(service: HookedShop, tmp_path: Path, port: int) -> None:
    async with opened(service, tmp_path, port) as weft:
        service.refuses = 403
        await weft.workflows.save(watching(delivery="push"))
        view = await settled(weft)
        assert not view.registered and view.error is not None and "no more hooks here" in view.error
        service.add("tea")
        await polled(weft)  # as if it were not pushed; the second try failed, too
        assert await names(weft) == ["tea"]
        tries = len(service.calls)
        await later(weft, 61)
        assert len(service.calls) == tries  # later with each failure
        service.refuses = 0
        view = await later(weft, 61)
        assert view.registered and view.error is None


async def test_another_source_account_or_address_is_another_registration(
    service: HookedShop, tmp_path: Path, port: int
) -> None:
    clock = ManualClock()
    async with opened(service, tmp_path, port, clock) as weft:
        await weft.workflows.save(watching(delivery="push"))
        await settled(weft)
        (first,) = service.hooks
        await weft.workflows.save(watching(delivery="push", every_s=30))
        await settled(weft)
        assert list(service.hooks) == [first]
        await weft.workflows.save(watching(delivery="push", shop="north"))
        await settled(weft)
        (second,) = service.hooks
        assert second != first
    async with opened(service, tmp_path, port, clock, secret=OTHER_KEY) as weft:  # its secret is of another key
        await settled(weft)
        (third,) = service.hooks
        assert third != second
        service.sell("tea")
        await until(lambda: service.delivered == [200])
        await done(weft)
        assert await names(weft) == ["tea"]
    async with opened(service, tmp_path, free_port(), clock, secret=OTHER_KEY) as weft:
        await settled(weft)
        (fourth,) = service.hooks
        assert fourth != third
        await weft.workflows.save(watching())
        await until(lambda: not service.hooks)
        assert (await weft.schedules.get(ID)).push is None
        await weft.workflows.save(watching(delivery="push"))
        await settled(weft)
        await weft.workflows.delete("orders")
        await until(lambda: not service.hooks)


async def test_what_came_while_no_server_was_there_is_polled_at_the_start(
    service: HookedShop, tmp_path: Path, port: int
) -> None:
    clock = ManualClock()
    async with opened(service, tmp_path, port, clock) as weft:
        await weft.workflows.save(watching(delivery="push"))
        await settled(weft)
        await polled(weft)
    service.add("tea")
    async with opened(service, tmp_path, port, clock) as weft:
        await until(weft.store.list_runs)
        await done(weft)
        assert await names(weft) == ["tea"]


async def test_without_a_public_address_it_polls(service: HookedShop, tmp_path: Path, port: int) -> None:
    async with opened(service, tmp_path, port) as weft:
        weft.parts.services.is_public = False
        await weft.workflows.save(watching(delivery="push"))
        view = await settled(weft)
        assert view.error is not None and "WEFT_BASE_URL" in view.error and service.calls == []
        weft.parts.services.is_public = True
        assert (await later(weft, 61)).registered
        (id,) = service.hooks
        store = SQLiteStore(tmp_path / "weft.db")
        clock = ManualClock(weft.parts.clock.now_ms())
        async with public_engine(service, store, free_port(), clock, is_front=False, is_public=False) as worker:
            clock.set(clock.now_ms() + 86_400_000)  # it is to be renewed, by a process that has the address
            await until(lambda: worker.hooks.is_idle)
            (row,) = await worker.store.list_hooks()
            assert list(service.hooks) == [id] and row.error is None and row.until_ms < clock.now_ms()


async def test_what_cannot_be_removed_is_given_up(
    service: HookedShop, tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "REMOVALS_MAX", 2)
    async with opened(service, tmp_path, port) as weft:
        await weft.workflows.save(watching(delivery="push"))
        await settled(weft)
        service.refuses = 401
        await weft.schedules.switch(ID, False)
        (row,) = await until(lambda: _failed(weft))
        assert row.error is not None and not row.wanted
        clock = weft.parts.clock
        assert isinstance(clock, ManualClock)
        clock.set(clock.now_ms() + 61_000)
        await until(lambda: _none(weft))


async def _failed(weft: Engine) -> Any:
    return [row for row in await weft.store.list_hooks() if row.failures]


async def _none(weft: Engine) -> bool:
    return not await weft.store.list_hooks()
