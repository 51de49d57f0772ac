"""The processes of the fleet, each started again when it has ended, and what is done to them."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from tests.support.postgres import as_url, cluster, socket_of
from tests.support.server import ROOT, ServerProcess, free_port

LEASE_S = 4.0
FROZEN_S = LEASE_S + 3.0
DRAIN_S = 30.0
OLDER_S = 240.0  # until members of the older version have begun, and with them the schema of theirs
HELD_S = 60.0  # by a transaction that reads


class ProxyProcess:
    """tests/support/postgres_proxy.py as a process, so that it is never behind because clients compute."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process = process
        self.port = port

    @classmethod
    async def start(cls, socket: Path, drops: float, seed: int) -> ProxyProcess:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.postgres_proxy", str(socket), str(drops), str(seed)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
        )
        assert process.stdout is not None
        return cls(process, int(await process.stdout.readline()))

    def say(self, what: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n".encode())

    async def stop(self) -> dict[str, int]:
        out, _ = await self._process.communicate(b"")  # and the end of its input
        names = ("commits", "dropped", "sessions", "busiest")
        return dict(zip(names, map(int, out.split()[-len(names) :]), strict=True))


class Member:
    """One process that is meant to run. `root`: the checkout that it runs from. One of an older version that
    has begun is not started again, as it refuses a schema that is newer; while it runs it works on with it."""

    def __init__(
        self, name: str, command: tuple[str, ...], place: str, port: int, log: Path, root: Path, **environ: str
    ) -> None:
        self.name = name
        self.is_older = root != ROOT
        self._root = root
        self.url = f"http://127.0.0.1:{port}"
        self._command, self._place, self._port, self._log = command, place, port, log
        self._environ = environ
        self.process: ServerProcess | None = None
        self.is_ready = asyncio.Event()

    async def run_for_ever(self, counts: Counter[str]) -> None:
        while True:
            self.process = await ServerProcess.start(
                Path("unused"),
                self._port,
                self._log,
                command=self._command,
                within=("env", "-C", str(self._root)),
                WEFT_DB=self._place,
                **self._environ,
            )
            with suppress(TimeoutError):
                if await self.process.started(60):
                    self.is_ready.set()
            while self.process.exit_code is None:
                await asyncio.sleep(0.1)
            counts[f"ended with {self.process.exit_code}"] += 1
            await self.process.clean_up()
            had_begun = self.is_older and self.is_ready.is_set()  # before that, an answer may have been dropped
            assert not had_begun, f"{self.name} of the older version ended; see its log"
            await asyncio.sleep(0.3)

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.exit_code is None:
            with suppress(ProcessLookupError):
                self.process.signal(number)

    async def end(self) -> None:
        if self.process is not None:
            await self.process.clean_up()


class Fleet:
    """`troubles` counts what was done to it."""

    def __init__(
        self,
        folder: Path,
        workers: int,
        servers: int,
        choose: random.Random,
        drops: float,
        older: Path | None = None,
    ) -> None:
        """`older`: a checkout of an older version, of which every other member is."""
        self._folder, self._choose, self._drops, self._older = folder, choose, drops, older
        self._counts = (workers, servers)
        self.database = cluster()
        self.troubles: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.members: list[Member] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        await asyncio.to_thread(self.database.start)
        self.address = as_url(self.database.address, dbname="weft", options="")
        with psycopg.connect(self.database.address, autocommit=True) as session:
            session.execute("CREATE DATABASE weft")
        self.proxy = await ProxyProcess.start(
            socket_of(self.database.address), self._drops, self._choose.randrange(10**6)
        )
        place = as_url(self.address, host="127.0.0.1", port=str(self.proxy.port), options="")
        environ = {
            "WEFT_SECRET_KEY": "k" * 32,
            "WEFT_LEASE_MS": str(round(LEASE_S * 1000)),
            "WEFT_FUNCTIONS": "tests.fleet.steps:step",
        }
        workers, servers = self._counts
        ports = [free_port(self._choose) for _ in range(servers)]
        for n, port in enumerate(ports):
            log = self._folder / f"server-{n}.log"
            self._add(n, f"server {n}", ("serve", "--no-worker"), place, port, log, **environ)
        for n in range(workers):
            log = self._folder / f"worker-{n}.log"
            self._add(n, f"worker {n}", ("worker",), place, ports[0], log, **environ)
        older = [each for each in self.members if each.is_older]
        self._begin(older)
        for each in older:
            async with asyncio.timeout(OLDER_S):
                await each.is_ready.wait()
        self._begin([each for each in self.members if not each.is_older])

    def _add(
        self, n: int, name: str, command: tuple[str, ...], place: str, port: int, log: Path, **environ: str
    ) -> None:
        root = self._older if self._older is not None and n % 2 else ROOT
        self.members.append(Member(name, command, place, port, log, root, **environ))

    def _begin(self, members: list[Member]) -> None:
        self._tasks += [asyncio.create_task(each.run_for_ever(self.ends), name=each.name) for each in members]

    @property
    def urls(self) -> list[str]:
        return [each.url for each in self.members if each.name.startswith("server")]

    def check(self) -> None:
        for task in self._tasks:
            if task.done():
                task.result()

    async def stop(self) -> dict[str, int]:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for member in self.members:
            member.signal(signal.SIGTERM)
        for member in self.members:
            if member.process is not None and member.process.exit_code is None:
                with suppress(TimeoutError):
                    await member.process.stop(DRAIN_S)
            await member.end()
        return await self.proxy.stop()

    # --- what is done to it

    async def trouble(self) -> None:
        """Until it is cancelled; then everything that was held is let go."""
        everything: list[tuple[float, float, Callable[[], Awaitable[Any]]]] = [
            (5, 40, self._crash_the_database),
            (0.5, 1.5, self._end_a_session),
            (12, 25, self._be_silent),
            (15, 25, self._kill_a_worker),
            (20, 40, self._freeze_a_worker),
            (30, 50, self._drain_a_worker),
            (40, 80, self._kill_a_server),
            (45, 75, self._kill_all_workers),
            (5, 20, self._hold_old_rows),
        ]
        tasks = [asyncio.create_task(self._again_and_again(*each)) for each in everything]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.proxy.say("heard")
            for member in self.members:
                member.signal(signal.SIGCONT)
            if self.database.pid is None:
                await asyncio.to_thread(self.database.start)

    async def _again_and_again(self, least_s: float, most_s: float, what: Callable[[], Awaitable[Any]]) -> None:
        while True:
            await asyncio.sleep(self._choose.uniform(least_s, most_s))
            await what()
            self.troubles[what.__name__.strip("_").replace("_", " ")] += 1

    def _a(self, kind: str) -> Member:
        """One that can be started again."""
        return self._choose.choice([e for e in self.members if e.name.startswith(kind) and not e.is_older])

    async def _crash_the_database(self) -> None:
        await asyncio.to_thread(self.database.crash)
        await asyncio.sleep(self._choose.uniform(0, 2))
        await asyncio.to_thread(self.database.start)

    async def _end_a_session(self) -> None:
        with suppress(psycopg.OperationalError):
            async with await psycopg.AsyncConnection.connect(self.address, autocommit=True) as session:
                await session.execute(
                    "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1) AS one"
                )

    async def _be_silent(self) -> None:
        self.proxy.say("silent")
        try:
            await asyncio.sleep(2)
        finally:
            self.proxy.say("heard")

    async def _kill_a_worker(self) -> None:
        self._a("worker").signal(signal.SIGKILL)

    async def _kill_all_workers(self) -> None:
        """They start again at the same time, with everything that is open to claim."""
        for member in self.members:
            if member.name.startswith("worker") and not member.is_older:
                member.signal(signal.SIGKILL)

    async def _hold_old_rows(self) -> None:
        """As a long report does: what is updated meanwhile cannot be removed."""
        with suppress(psycopg.OperationalError):
            async with await psycopg.AsyncConnection.connect(self.address) as session:
                await session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                await session.execute("SELECT count(*) FROM heads")
                await asyncio.sleep(HELD_S)
                await session.execute("SELECT count(*) FROM heads")

    async def _freeze_a_worker(self) -> None:
        worker = self._choose.choice([each for each in self.members if each.name.startswith("worker")])
        worker.signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(FROZEN_S)
        finally:
            worker.signal(signal.SIGCONT)

    async def _drain_a_worker(self) -> None:
        self._a("worker").signal(signal.SIGTERM)

    async def _kill_a_server(self) -> None:
        self._a("server").signal(signal.SIGKILL)
