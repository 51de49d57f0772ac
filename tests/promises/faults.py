"""Breaks a server, its worker or its database in one way at a time, and measures what clients see of it.

    python -m tests.promises.faults          writes the table of docs/reference/reliability.md

While it lasts and after it, a run is started and the list of runs is read five times a second, on connections of
their own.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

import httpx
import psycopg
from msgspec import Struct

from tests.support.documents import document
from tests.support.other_process import OtherProcess
from tests.support.place import Place
from tests.support.postgres import Primary, Standby, as_url, socket_of
from tests.support.postgres_proxy import Proxy
from tests.support.server import ServerProcess, free_port
from tests.support.small_disk import NoDisk, SmallDisk, small_disk
from tests.support.until import until

Kind = Literal["SQLite", "PostgreSQL"]
RUN: Final = {"document": document("sets", "start a", blocks={"a": {"type": "set"}})}
EVERY_S: Final = 0.2
LASTS_S: Final = 8.0
AFTER_S: Final = 1.0  # asked for after everything works again
ANSWER_S: Final = 40.0  # clients wait no longer
BACK_S: Final = 60.0
LEASE_MS: Final = 4_000
DISK_BYTES: Final = 10 << 20
PAGE: Final = Path(__file__).parents[2] / "docs/reference/reliability.md"
BEGINS, ENDS = "<!-- faults: `make faults` writes everything up to the next marker -->\n", "<!-- end of faults -->\n"


class World:
    """A server and a worker on one database. On SQLite the server works itself."""

    def __init__(self, kind: Kind, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.place: Place = folder / "weft.db"
        self.port = free_port(random.Random())
        self.within: Sequence[str] = ()
        self.server: ServerProcess | None = None
        self.worker: ServerProcess | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start_server(self, wait: bool = True) -> None:
        command = ("serve",) if self.kind == "SQLite" else ("serve", "--no-worker")
        self.server = await self._start(command, self.port)
        if wait:
            await self.server.ready()

    async def start_worker(self, wait: bool = True) -> None:
        if self.kind == "PostgreSQL":
            self.worker = await self._start(("worker",), free_port(random.Random()))
            if wait:
                await self.worker.ready()

    async def _start(self, command: Sequence[str], port: int) -> ServerProcess:
        settings = {"WEFT_LEASE_MS": str(LEASE_MS)}
        log = self.folder / "log"
        return await ServerProcess.start(self.place, port, log, within=self.within, command=command, **settings)

    @property
    def processes(self) -> list[ServerProcess]:
        return [process for process in (self.server, self.worker) if process is not None]


class OnPostgres(World):
    def __init__(self, folder: Path, primary: Primary, standby: Standby | None, proxy: Proxy) -> None:
        super().__init__("PostgreSQL", folder)
        self.primary, self.standby, self.proxy = primary, standby, proxy
        self.place = as_url(primary.address, dbname="weft", host="127.0.0.1", port=str(proxy.port))
        if standby is not None:  # without the proxy, which leads to one of them
            hosts = ",".join(str(socket_of(each.address).parent) for each in (primary, standby))
            self.place = as_url(primary.address, dbname="weft", host=hosts)


class OnSmallDisk(World):
    def __init__(self, folder: Path, disk: SmallDisk) -> None:
        super().__init__("SQLite", folder)
        self.disk = disk
        self.place = disk.folder / "weft.db"
        self.within = disk.within


class Fault(Struct, frozen=True):
    """`name` is its row. `happens`: begins it, and ends it when it is left. `waits`: whether a client may wait for as
    long as it lasts, as for a frozen server."""

    name: str
    kind: Kind
    happens: Callable[[World], AbstractAsyncContextManager[None]]
    lasts_s: float = LASTS_S
    waits: bool = False
    standby: bool = False
    small_disk: bool = False

    @property
    def id(self) -> str:
        return f"{self.name}-{self.kind}".replace(" ", "_")


class Figures(NamedTuple):
    """Seconds. `first_error_s`: from the beginning of the fault to the first answer that is one; None: there is none.
    `longest_s`: what a client waited for an answer. `back_s`: from the end of the fault until a run that was started
    after it has succeeded and runs can be read. `errors`: what clients got."""

    first_error_s: float | None
    longest_s: float
    back_s: float
    errors: list[str]


class Asked(NamedTuple):
    sent_s: float
    answered_s: float
    error: str | None


async def measure(fault: Fault, folder: Path) -> Figures:
    """Raises NoDisk."""
    async with world_of(fault, folder) as world:
        await world.start_server()
        await world.start_worker()
        limits = httpx.Limits(max_keepalive_connections=0)
        async with httpx.AsyncClient(base_url=world.url, timeout=ANSWER_S, limits=limits) as client:
            await _back(client)
            asked: list[Asked] = []
            asking = asyncio.create_task(_ask(client, asked))
            await until(lambda: len(asked) >= 4)
            began_s = time.monotonic()
            async with fault.happens(world):
                await asyncio.sleep(fault.lasts_s)
            ended_s = time.monotonic()
            await _back(client)
            back_s = time.monotonic() - ended_s
            await asyncio.sleep(AFTER_S)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
    seen = [each for each in asked if each.answered_s > began_s]
    wrong = [each for each in seen if each.error is not None]
    first_s = min((each.answered_s for each in wrong), default=None)
    return Figures(
        None if first_s is None else first_s - began_s,
        max(each.answered_s - each.sent_s for each in seen),
        back_s,
        sorted({str(each.error) for each in wrong}),
    )


async def _ask(client: httpx.AsyncClient, asked: list[Asked]) -> None:
    async def one(method: str, path: str, body: object) -> None:
        sent_s, error = time.monotonic(), None
        try:
            answer = await client.request(method, path, json=body)
            error = None if answer.is_success else str(answer.status_code)
        except httpx.TransportError as failure:
            error = "no answer" if isinstance(failure, httpx.ReadTimeout) else "no connection"
        asked.append(Asked(sent_s, time.monotonic(), error))

    async with asyncio.TaskGroup() as tasks:
        try:
            while True:
                tasks.create_task(one("POST", "/api/runs", RUN))
                tasks.create_task(one("GET", "/api/runs", None))
                await asyncio.sleep(EVERY_S)
        except asyncio.CancelledError:
            pass  # those that are under way still count


async def _back(client: httpx.AsyncClient) -> None:
    """Return when a run that is started now has succeeded, and runs can be read."""

    async def works() -> bool:
        try:
            run = await client.post("/api/runs?wait=10", json=RUN)
            read = await client.get("/api/runs")
        except httpx.TransportError:
            return False
        return run.is_success and run.json().get("status") == "succeeded" and read.is_success

    await until(works, within_s=BACK_S)


# --- worlds


@asynccontextmanager
async def world_of(fault: Fault, folder: Path) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        world: World
        if fault.kind == "PostgreSQL":
            world = await stack.enter_async_context(_on_postgres(folder, fault.standby))
        elif fault.small_disk:
            world = OnSmallDisk(folder, stack.enter_context(small_disk(folder / "disk", DISK_BYTES)))
        else:
            world = World("SQLite", folder)
        try:
            yield world
        finally:
            for process in world.processes:
                await process.clean_up()


@asynccontextmanager
async def _on_postgres(folder: Path, with_standby: bool) -> AsyncIterator[World]:
    primary = Primary(*(["synchronous_standby_names=*"] if with_standby else []))
    standby, proxy = None, Proxy(socket_of(primary.address))
    try:
        primary.start()
        if with_standby:
            standby = Standby(primary)
            standby.start()
        with psycopg.connect(primary.address, autocommit=True) as session:
            session.execute("CREATE DATABASE weft")
        await proxy.start()
        yield OnPostgres(folder, primary, standby, proxy)
    finally:
        proxy.be_heard()
        await proxy.stop()
        if standby is not None:
            standby.remove()
        primary.remove()


# --- faults


def _on_postgres_world(world: World) -> OnPostgres:
    assert isinstance(world, OnPostgres)
    return world


@asynccontextmanager
async def refused(world: World) -> AsyncIterator[None]:
    proxy = _on_postgres_world(world).proxy
    await proxy.refuse()
    yield
    await proxy.accept()


@asynccontextmanager
async def silent(world: World) -> AsyncIterator[None]:
    proxy = _on_postgres_world(world).proxy
    proxy.be_silent()
    yield
    proxy.be_heard()


@asynccontextmanager
async def cut(world: World) -> AsyncIterator[None]:
    await _on_postgres_world(world).proxy.cut()
    yield


@asynccontextmanager
async def database_killed(world: World) -> AsyncIterator[None]:
    primary = _on_postgres_world(world).primary
    primary.kill()
    yield
    await asyncio.to_thread(primary.start)


@asynccontextmanager
async def database_restarted(world: World) -> AsyncIterator[None]:
    primary = _on_postgres_world(world).primary
    primary.crash()
    await asyncio.to_thread(primary.start)
    yield


@asynccontextmanager
async def database_frozen(world: World) -> AsyncIterator[None]:
    primary = _on_postgres_world(world).primary
    with _frozen(_group(primary)):
        yield


def _group(primary: Primary) -> list[int]:
    """Its processes, each of which has a session and a group of its own (`setsid`)."""
    assert primary.pid is not None
    children = Path(f"/proc/{primary.pid}/task/{primary.pid}/children").read_text().split()
    return [primary.pid, *map(int, children)]


@contextmanager
def _frozen(processes: Sequence[int]) -> Iterator[None]:
    for each in processes:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in processes:
            os.kill(each, signal.SIGCONT)


@asynccontextmanager
async def table_locked(world: World) -> AsyncIterator[None]:
    with psycopg.connect(_on_postgres_world(world).primary.address, dbname="weft") as other:
        other.execute("LOCK TABLE heads IN EXCLUSIVE MODE")
        yield
        other.rollback()


@asynccontextmanager
async def failed_over(world: World) -> AsyncIterator[None]:
    found = _on_postgres_world(world)
    assert found.standby is not None
    found.primary.kill()
    await asyncio.to_thread(found.standby.promote)
    yield


@asynccontextmanager
async def file_locked(world: World) -> AsyncIterator[None]:
    other = OtherProcess(str(world.place))
    yield
    await asyncio.to_thread(other.let_go)


@asynccontextmanager
async def disk_full(world: World) -> AsyncIterator[None]:
    assert isinstance(world, OnSmallDisk)
    world.disk.fill()
    yield
    world.disk.free()


@asynccontextmanager
async def killed_on_a_full_disk(world: World) -> AsyncIterator[None]:
    async with disk_full(world):
        for process in world.processes:
            await process.kill()
        await world.start_server(wait=False)
        yield


@asynccontextmanager
async def killed(world: World) -> AsyncIterator[None]:
    for process in world.processes:
        await process.kill()
    yield
    await world.start_server(wait=False)
    await world.start_worker(wait=False)


@asynccontextmanager
async def stopped(world: World) -> AsyncIterator[None]:
    for process in world.processes:
        await process.stop(60)
    yield
    await world.start_server(wait=False)
    await world.start_worker(wait=False)


@asynccontextmanager
async def frozen(world: World) -> AsyncIterator[None]:
    for process in world.processes:
        process.freeze()
    yield
    for process in world.processes:
        process.thaw()


@asynccontextmanager
async def started_without(world: World) -> AsyncIterator[None]:
    proxy = _on_postgres_world(world).proxy
    for process in world.processes:
        await process.kill()
    await proxy.refuse()
    await world.start_server(wait=False)
    await world.start_worker(wait=False)
    yield
    await proxy.accept()


FAULTS: Final = (
    Fault("the database refuses connections", "PostgreSQL", refused),
    Fault("the database says nothing: packets are swallowed", "PostgreSQL", silent),
    Fault("all its connections are cut once", "PostgreSQL", cut, lasts_s=0.0),
    Fault("the database is killed, and started later", "PostgreSQL", database_killed),
    Fault("the database restarts", "PostgreSQL", database_restarted, lasts_s=0.0),
    Fault("the database is frozen", "PostgreSQL", database_frozen),
    Fault("another session locks a table", "PostgreSQL", table_locked),
    Fault("another process locks the file", "SQLite", file_locked),
    Fault("the disk is full", "SQLite", disk_full, small_disk=True),
    Fault("the disk is full, weft is killed and started", "SQLite", killed_on_a_full_disk, small_disk=True),
    Fault("the primary is killed, its standby promoted", "PostgreSQL", failed_over, lasts_s=0.0, standby=True),
    *(
        fault
        for kind in ("SQLite", "PostgreSQL")
        for fault in (
            Fault("weft is killed, and started later", kind, killed, lasts_s=2.0),
            Fault("weft is stopped by SIGTERM, and started later", kind, stopped, lasts_s=2.0),
            Fault("weft is frozen", kind, frozen, waits=True),
        )
    ),
    Fault("weft is started without its database", "PostgreSQL", started_without),
)


# --- the table


def table(rows: Sequence[tuple[Fault, Figures]]) -> str:
    lines = [
        "| what happens | database | clients get | first error after | longest wait | works again after |",
        "|---|---|---|---|---|---|",
    ]
    for fault, found in rows:
        first = "–" if found.first_error_s is None else f"{found.first_error_s:.1f} s"
        errors = ", ".join(found.errors) or "no error"
        lasts = f" ({fault.lasts_s:g} s)" if fault.lasts_s else ""
        times = f"{first} | {found.longest_s:.1f} s | {found.back_s:.1f} s"
        lines.append(f"| {fault.name}{lasts} | {fault.kind} | {errors} | {times} |")
    return "\n".join(lines) + "\n"


async def _main() -> None:
    rows = []
    for fault in FAULTS:
        with tempfile.TemporaryDirectory(prefix="weft-faults-") as folder:
            try:
                found = await measure(fault, Path(folder))
            except NoDisk as error:
                sys.exit(f"a small disk cannot be made here: {error}")
        print(table([(fault, found)]).splitlines()[-1], flush=True)
        rows.append((fault, found))
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGINS)
    _, after = rest.split(ENDS)
    PAGE.write_text(f"{before}{BEGINS}\n{table(rows)}\n{ENDS}{after}", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(_main())
