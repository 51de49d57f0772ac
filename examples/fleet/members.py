"""The processes of the fleet: each is started, ended and started again from the page."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, Literal

from msgspec import Struct

from .database import Database, end_with_parent

READY: Final = b"weft is ready: "
START_S: Final = 60.0
AGAIN_S: Final = 1.0
STOP_S: Final = 25.0  # a worker gives its blocks 8 seconds
HAPPENED_SHOWN: Final = 40
State = Literal["starting", "running", "frozen", "stopping", "ended"]


class Happened(Struct, frozen=True):
    at_ms: int
    text: str


class Log:
    """Actions on the fleet, newest first."""

    def __init__(self) -> None:
        self.lines: deque[Happened] = deque(maxlen=HAPPENED_SHOWN)

    def add(self, text: str) -> None:
        self.lines.appendleft(Happened(round(time.time() * 1000), text))


class Process:
    """One `weft serve` or `weft worker`. `claims` is the number of runs that it took over since the demo began, from
    its metrics; 0 for servers."""

    def __init__(self, name: str, command: Sequence[str], environ: Mapping[str, str], log: Log) -> None:
        self.name = name
        self.state: State = "ended"
        self.starts = 0
        self.metrics_url: str | None = None
        self.claims = 0
        self._claimed_before = 0  # by its earlier processes
        self._command, self._environ, self._log = command, environ, log
        self._process: asyncio.subprocess.Process | None = None
        self._wanted = False
        self._supervising: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()  # it is ready, or has ended

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def start(self) -> None:
        """Start it and return at once; `state` is `running` once it reports that it is ready."""
        if self.state == "ended":
            self.state = "starting"
            self._wanted = True
            self._settled.clear()
            self._supervising = asyncio.create_task(self._supervise(), name=f"supervise:{self.name}")

    async def ready(self) -> None:
        """Raises RuntimeError: it did not start."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._settled.wait(), START_S)
        if self.state != "running":
            raise RuntimeError(f"{self.name} did not start")

    async def kill(self) -> None:
        """SIGKILL: it cannot hand over anything."""
        self._wanted = False
        self._send(signal.SIGKILL, "Killed")
        await self._ended()

    async def stop(self) -> None:
        """SIGTERM: it hands its runs over before it ends."""
        self._wanted = False
        self.proceed()
        if self._send(signal.SIGTERM, "Stopped"):
            self.state = "stopping"

    def freeze(self) -> None:
        """SIGSTOP: as a machine that hangs. It loses its runs to others when its lease ends."""
        if self.state == "running" and self._send(signal.SIGSTOP, "Froze"):
            self.state = "frozen"

    def proceed(self) -> None:
        if self.state == "frozen" and self._send(signal.SIGCONT, "Continued"):
            self.state = "running"

    def note_claims(self, of_process: int) -> None:
        self.claims = self._claimed_before + of_process

    async def close(self) -> None:
        """It has ended when this returns."""
        await self.stop()
        try:
            await asyncio.wait_for(self._ended(), STOP_S)
        except TimeoutError:
            await self.kill()

    def _send(self, number: signal.Signals, done: str) -> bool:
        if self.pid is None:
            return False
        os.kill(self.pid, number)
        self._log.add(f"{done} {self.name} ({number.name})")
        return True

    async def _ended(self) -> None:
        if self._supervising is not None:
            await asyncio.shield(self._supervising)

    async def _supervise(self) -> None:
        """Start it, and again when it ends by itself, as systemd would: it ends if it finds no database."""
        while self._wanted:
            self.state = "starting"
            self.starts += 1
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "server",
                *self._command,
                env=dict(self._environ),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,  # it would log each loss of the database at length
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
            code = await self._watch(self._process)
            if self._wanted:
                self._log.add(f"{self.name} ended with code {code} and is started again")
                await asyncio.sleep(AGAIN_S)
        self.state = "ended"
        self._settled.set()

    async def _watch(self, process: asyncio.subprocess.Process) -> int:
        """Wait for its end. Returns its exit code."""
        assert process.stdout is not None
        async for line in process.stdout:
            if line.startswith(READY):
                self.metrics_url = line.decode().partition("metrics on ")[2].strip() or None
                self._claimed_before = self.claims
                self.state = "running"
                self._settled.set()
                self._log.add(f"{self.name} is ready")
        return await process.wait()


class Postgres:
    """The database of the fleet, which can be killed as well."""

    def __init__(self, database: Database, log: Log) -> None:
        self.name = "database"
        self.state: State = "ended"
        self.starts = 0
        self._database, self._log = database, log
        # It lives as long as the demo: the database ends with the thread that started it.
        self._thread = ThreadPoolExecutor(1, "weft-demo-database")

    @property
    def pid(self) -> int | None:
        return self._database.pid

    async def start(self) -> None:
        """Returns when it accepts connections: after a kill it first reads its log."""
        if self.state != "ended":
            return
        self.state = "starting"
        self.starts += 1
        await asyncio.get_running_loop().run_in_executor(self._thread, self._database.start)
        self.state = "running"
        self._log.add("database is ready")

    async def kill(self) -> None:
        """Kill with SIGQUIT: PostgreSQL ends all its processes where they are. SIGKILL would leave some of them
        running."""
        if self.state != "running":
            return
        self.state = "stopping"
        await asyncio.get_running_loop().run_in_executor(self._thread, self._database.crash)
        self.state = "ended"
        self._log.add("Killed database (SIGQUIT)")

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._database.remove)
        self._thread.shutdown()


class Fleet:
    """`servers` first: they make the schema."""

    def __init__(self, database: Database, servers: int, workers: int, ports: Sequence[int], lease_ms: int) -> None:
        self.log = Log()
        self.token = secrets.token_urlsafe(24)
        own = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
        environ = own | {
            "WEFT_DB": database.address,
            "WEFT_SECRET_KEY": secrets.token_urlsafe(32),
            "WEFT_TOKEN": self.token,
            "WEFT_LEASE_MS": str(lease_ms),
            "WEFT_LOG": "error",
        }
        self.database = Postgres(database, self.log)
        self.urls = tuple(f"http://127.0.0.1:{port}" for port in ports[:servers])
        self.servers = tuple(
            Process(f"server {n}", ("serve", "--no-worker", "--port", str(port)), environ, self.log)
            for n, port in enumerate(ports[:servers], 1)
        )
        command = ("worker", "--metrics-port", "0")
        self.workers = tuple(Process(f"worker {n}", command, environ, self.log) for n in range(1, workers + 1))

    @property
    def members(self) -> tuple[Process | Postgres, ...]:
        return (self.database, *self.servers, *self.workers)

    def named(self, name: str) -> Process | Postgres | None:
        return next((each for each in self.members if each.name == name), None)

    async def start(self) -> None:
        """Start all, and return when they are ready. Raises RuntimeError with the name of the process that is not."""
        await self.database.start()
        for group in (self.servers[:1], (*self.servers[1:], *self.workers)):
            for process in group:
                await process.start()
            for process in group:
                await process.ready()

    async def close(self) -> None:
        """Processes first, then the database with all that is in it."""
        await asyncio.gather(*(each.close() for each in self._processes()))
        await self.database.close()

    def _processes(self) -> Iterator[Process]:
        yield from self.servers
        yield from self.workers
