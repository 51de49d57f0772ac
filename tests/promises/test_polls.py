"""A trigger that polls, killed at each commit, alone and beside another server: each item of the service, and each file
of a folder, starts one run. The service is a server of its own, which sees the runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile
from typing import Any, Literal

import pytest

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.blocks.types.sources import sources
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from executor.open.engine import Engine
from executor.open.testing.crashes import killer
from executor.open.testing.engines import BEGIN_MS, SECRET, ManualClock
from executor.open.testing.process import DONE, in_child
from executor.service.triggers import polls
from tests.support.polled import Shop, shop, watching
from tests.support.until import until

pytestmark = pytest.mark.proof

COMMITS_MAX = 60
EVERY_MS = 60_000  # of the trigger
LATER_MS = polls.CLAIM_MS + 61_000  # when claims of a process that was killed have ended
Moment = Literal["before", "after"]


class Armed:
    """A process whose store is killed at a commit while it is armed."""

    def __init__(self, database: str, fault: Callable[[str], None] | None) -> None:
        self._database, self._fault = database, fault
        self._armed = False

    def _store(self) -> Store:
        if self._database.startswith("postgres"):
            from executor.kernel.store.postgres.store import PostgresStore

            return PostgresStore(self._database, fault=self._point)
        return SQLiteStore(self._database, fault=self._point)

    def _point(self, name: str) -> None:
        if self._armed and self._fault is not None:
            self._fault(name)


class Server(Armed):
    """A process at the `nth` time, which is killed at a commit, or ends when there is nothing to do."""

    def __init__(
        self,
        database: str,
        service: Shop,
        nth: int,
        fault: Callable[[str], None] | None = None,
        is_beside: bool = False,
        folder: Path | None = None,
    ) -> None:
        super().__init__(database, fault)
        self._service, self._nth = service, nth
        self._is_beside, self._folder = is_beside, folder

    async def work(self) -> None:
        polls.RUNS_MAX = 2  # type: ignore[misc]  # a constant, in a process of its own
        sandbox = Sandbox(threads=1)
        clock = ManualClock(BEGIN_MS + self._nth * LATER_MS)
        engine = await Engine.open(
            self._store(),
            registry=Registry.load([self._service.block(), *sources()], sandbox=sandbox),
            services=Services(
                sandbox=sandbox,
                http=GuardedClient(("127.0.0.1",)),
                file_folders=() if self._folder is None else (str(self._folder),),
            ),
            secret=SECRET,
            clock=clock,
        )
        self._armed = True
        try:
            await engine.workflows.save(reporting(self._service, self._folder))
            await until(lambda: self._is_idle(engine, clock), within_s=30)
        finally:
            self._armed = False
            await engine.close(grace_s=0)

    async def _is_idle(self, engine: Engine, clock: ManualClock) -> bool:
        """One beside another leaves the runs of a server that was killed, and its claim of a poll: until the poll is
        recorded, the next one is later than the trigger has it."""
        row = await engine.store.get_schedule("orders:order")
        assert row is not None
        if row.error is not None:
            raise AssertionError(row.error)
        counts = await engine.runs.count()
        is_open = sum(count for status, count in counts.items() if status in ("queued", "running", "waiting"))
        is_open = engine.figures.runs if self._is_beside else is_open
        next_ms = (row.next_run_at_ms or 0) - clock.now_ms()
        is_claimed = next_ms > EVERY_MS and not self._is_beside
        return not (is_open or next_ms <= 0 or is_claimed or engine.schedules.scheduler.polls.under_way)


def reporting(service: Shop, folder: Path | None = None) -> dict[str, Any]:
    """Each run reports its event to the service, with a key that is another one in another run."""
    document = watching()
    if folder is not None:
        document["blocks"]["order"] = {"type": "event.file", "params": {"folder": str(folder)}}
    document["blocks"]["note"] = {
        "type": "http",
        "params": {
            "method": "POST",
            "url": f"http://{service.place}/report",
            "idempotency_header": "Idempotency-Key",
            "body": {"number": "<order.event.number>" if folder is None else "<order.event.name>"},
        },
    }
    return document


@contextmanager
def a_database(kind: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], str]]:
    """Yields a function that makes a database of this name."""
    if kind == "sqlite":
        yield lambda name: str(folder / f"{name}.db")
        return
    from contextlib import ExitStack

    from tests.support.postgres import database

    address = request.getfixturevalue("postgres_server")
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(database(address, f"polls-{name}"))


@pytest.fixture
async def service() -> AsyncIterator[Shop]:
    async with shop() as one:
        yield one


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside-another"])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.timeout(300)
async def test_killed_at_every_commit(
    kind: str, moment: Moment, beside: bool, service: Shop, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    killed = 0
    with a_database(kind, tmp_path, request) as named:
        for commit in range(1, COMMITS_MAX):
            database = named(f"{moment}-{beside}-{commit}")
            service.orders.clear()
            service.reports.clear()
            service.add("old")
            assert await in_child(Server(database, service, 0).work, tmp_path) == DONE, _why(tmp_path)
            service.add("a", "b", "c")
            first = Server(database, service, 1, killer(commit, moment))
            others = [in_child(Server(database, service, 1, is_beside=True).work, tmp_path)] if beside else []
            code, *codes = await asyncio.gather(in_child(first.work, tmp_path), *others)
            assert code in (DONE, -9) and set(codes) <= {DONE}, _why(tmp_path)
            service.add("d")
            assert await in_child(Server(database, service, 2).work, tmp_path) == DONE, _why(tmp_path)
            numbers = sorted({number for number, _ in service.reports})
            assert numbers == [2, 3, 4, 5], f"killed {moment} commit {commit}: lost"
            assert len({key for _, key in service.reports}) == 4, f"killed {moment} commit {commit}: doubled"
            killed += code != DONE
            if code == DONE:
                break
    assert killed == commit - 1 >= (1 if beside else 5)


@pytest.mark.timeout(300)
async def test_files_killed_at_every_commit(service: Shop, tmp_path: Path) -> None:
    (folder := tmp_path / "in").mkdir()
    (folder / "1").write_text("old")
    first = str(tmp_path / "first.db")
    assert await in_child(Server(first, service, 0, folder=folder).work, tmp_path) == DONE, _why(tmp_path)
    for name in "23":
        (folder / name).write_text(name)
    assert await in_child(Server(first, service, 1, folder=folder).work, tmp_path) == DONE, _why(tmp_path)
    assert service.reports == [], "they may be incomplete"
    for commit in range(1, COMMITS_MAX):
        service.reports.clear()
        database = copyfile(first, tmp_path / f"{commit}.db")
        code = await in_child(Server(str(database), service, 2, killer(commit, "after"), folder=folder).work, tmp_path)
        assert code in (DONE, -9), _why(tmp_path)
        if code == -9:
            again = Server(str(database), service, 3, folder=folder)
            assert await in_child(again.work, tmp_path) == DONE, _why(tmp_path)
        assert {str(name) for name, _ in service.reports} == {"2", "3"}, f"killed after commit {commit}: lost"
        assert len({key for _, key in service.reports}) == 2, f"killed after commit {commit}: doubled"
        if code == DONE:
            break
    assert commit > 5


def _why(folder: Path) -> str:
    error = folder / "error"
    return error.read_text() if error.exists() else "it ended without an error"
