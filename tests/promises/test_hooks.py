"""A trigger whose service reports events, killed at each commit of its life: it registers, an event comes, it is
switched off. At the end there is no registration at the service, never was there more than one when it reported, and
its event started one run. The service is a server of its own, which sees all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from executor.open.engine import Engine
from executor.open.testing.crashes import killer
from executor.open.testing.engines import BEGIN_MS, ManualClock
from executor.open.testing.process import DONE, in_child
from executor.service.triggers import hooks
from tests.promises.test_polls import Armed, Moment, _why, a_database, reporting
from tests.support.hooked import HookedShop, Mode, free_port, hooked_shop, public_engine
from tests.support.until import until

pytestmark = pytest.mark.proof

COMMITS_MAX = 60
LATER_MS = hooks.CLAIM_MS + 61_000  # when claims of a process that was killed have ended
ID = "orders:order"


class Server(Armed):
    """The `nth` process, which is killed at a commit, or ends when its trigger has had its event and is off. One that
    is `beside` another only does what it finds, until the file `over` is there."""

    def __init__(
        self,
        database: str,
        service: HookedShop,
        port: int,
        nth: int,
        fault: Callable[[str], None] | None = None,
        over: Path | None = None,
    ) -> None:
        super().__init__(database, fault)
        self._service, self._port, self._nth = service, port, nth
        self._over = over

    async def work(self) -> None:
        clock = ManualClock(BEGIN_MS + self._nth * LATER_MS)
        is_front = self._over is None
        async with public_engine(self._service, self._store(), self._port, clock, is_front=is_front) as engine:
            if self._over is not None:
                await until(self._over.exists, within_s=60)
                return
            self._armed = True
            try:
                await self._live(engine)
            finally:
                self._armed = False

    async def _live(self, engine: Engine) -> None:
        row = await engine.store.get_schedule(ID)
        if row is None or row.enabled:
            document = reporting(self._service)
            document["blocks"]["order"]["params"]["delivery"] = "push"
            await engine.workflows.save(document)
            await until(lambda: _is_live(engine), within_s=30)
            async with httpx.AsyncClient() as client:
                await client.post(f"http://{self._service.place}/add?name=tea")
            await until(lambda: _has_run(engine), within_s=30)
            await engine.schedules.switch(ID, False)
        await until(lambda: _is_gone(engine), within_s=30)


async def _is_live(engine: Engine) -> bool:
    """It is registered, and knows what was there before."""
    view = await engine.schedules.get(ID)
    row = await engine.store.get_schedule(ID)
    assert view.push is not None and row is not None
    if view.push.error is not None or row.error is not None:
        raise AssertionError(view.push.error or row.error)
    return view.push.registered and row.poll != b"null" and not engine.hooks.under_way


async def _has_run(engine: Engine) -> bool:
    counts = await engine.runs.count()
    return counts.get("succeeded", 0) == 1 and not engine.schedules.scheduler.polls.under_way


async def _is_gone(engine: Engine) -> bool:
    counts = await engine.runs.count()
    is_open = any(count for status, count in counts.items() if status in ("queued", "running", "waiting"))
    return not (is_open or await engine.store.list_hooks() or engine.hooks.under_way)


@pytest.mark.parametrize(
    ("kind", "mode", "moment", "beside"),
    [
        ("sqlite", "own", "before", False),
        ("sqlite", "own", "after", False),
        ("sqlite", "handshake", "before", False),
        ("sqlite", "given", "before", True),
        ("postgres", "own", "before", True),
    ],
)
@pytest.mark.timeout(400)
async def test_killed_at_every_commit(
    kind: str, mode: Mode, moment: Moment, beside: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    killed = 0
    with a_database(kind, tmp_path, request) as named:
        for commit in range(1, COMMITS_MAX):
            async with hooked_shop(mode) as service:
                database, port = named(f"{moment}-{beside}-{commit}"), free_port()
                over = tmp_path / f"over-{commit}"
                service.add("old")
                first = Server(database, service, port, 1, killer(commit, moment))
                other = Server(database, service, port, 1, over=over)
                task = asyncio.create_task(in_child(other.work, tmp_path)) if beside else None
                code = await in_child(first.work, tmp_path)
                over.touch()
                assert code in (DONE, -9) and (task is None or await task == DONE), _why(tmp_path)
                assert await in_child(Server(database, service, port, 2).work, tmp_path) == DONE, _why(tmp_path)
                case = f"killed {moment} commit {commit}"
                assert service.hooks == {}, f"{case}: left at the service"
                assert set(service.counts) == {1}, f"{case}: {service.counts} registrations"
                assert [number for number, _ in service.reports if number != 2] == [], case
                assert len({key for _, key in service.reports}) == 1, f"{case}: doubled or lost"
            killed += code != DONE
            if code == DONE:
                break
    assert killed == commit - 1 >= 8


with suppress(ImportError):  # loaded before the processes are forked
    import psycopg  # noqa: F401  # used by the store
