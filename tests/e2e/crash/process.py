"""A server process that tests may kill, freeze and stop: in a process group of its own, on a port that stays the same.

`ServerProcess.start` does not wait, so that a server can be killed while it starts; `ready` does.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import sqlite3
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]
READY = b"weft is ready: "
# Below the range from which the kernel takes ports for outgoing connections (32768 and up): nobody else sits on ours
# while its server is down, and a client that calls it then cannot end up connected to itself.
PORTS = range(20_000, 32_000)


class ServerProcess:
    """`url` has no trailing slash. Everything the process says goes to `log`, which several may share."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self._process = process
        self._began = time.monotonic()
        self.url = url

    @classmethod
    async def start(
        cls, db: Path, port: int, log: Path, module: str = "server", within: Sequence[str] = (), **environ: str
    ) -> ServerProcess:
        """`module` is run as `weft`; `tests.e2e.crash.altered` is that with another clock or less patience. `within`: a
        command that runs what follows it, in its own process."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
        with log.open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                *within,
                sys.executable,
                "-m",
                module,
                "serve",
                cwd=ROOT,
                env={**own, "WEFT_DB": str(db), "WEFT_PORT": str(port), "WEFT_TOKEN": "off", **environ},
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        return cls(process, f"http://127.0.0.1:{port}")

    async def ready(self, timeout_s: float = 90) -> float:
        """Wait until it takes requests. Returns seconds since the start."""
        assert await self.started(timeout_s), f"the server did not start: exit code {self.exit_code}"
        return time.monotonic() - self._began

    async def started(self, timeout_s: float = 90) -> bool:
        """False: it has ended instead, with `exit_code`."""
        assert self._process.stdout is not None
        async with asyncio.timeout(timeout_s):
            line = await self._process.stdout.readline()
            if not line:
                await self._ended()
        assert not line or line.startswith(READY), line
        return bool(line)

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.returncode

    async def kill(self) -> None:
        """kill -9 of the process and whatever it has started."""
        assert self._process.returncode is None, f"the server ended by itself: {self._process.returncode}"
        self.signal(signal.SIGKILL)
        await self._ended()

    async def stop(self, timeout_s: float) -> int:
        """SIGTERM. Returns the exit code; raises TimeoutError."""
        self._process.terminate()
        async with asyncio.timeout(timeout_s):
            await self._ended()
        assert self._process.returncode is not None
        return self._process.returncode

    @property
    def pid(self) -> int:
        return self._process.pid

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    def signal(self, number: signal.Signals) -> None:
        os.killpg(self._process.pid, number)

    async def clean_up(self) -> None:
        """Leave nothing behind, whatever state it is in."""
        if self._process.returncode is None:
            self.signal(signal.SIGKILL)
            await self._ended()

    async def _ended(self) -> None:
        await self._process.communicate()  # to the end of its output: that closes the pipe


def free_port(choose: random.Random) -> int:
    """A port nobody listens on, which stays free while the server on it is down."""
    while True:
        port = choose.choice(PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


async def freeze_outside_a_write(server: ServerProcess, db: Path) -> None:
    """Freeze the server at a moment when it does not hold the database's write lock, as others would wait for it."""
    for _ in range(100):
        server.freeze()
        if _may_write(db):
            return
        server.thaw()
        await asyncio.sleep(0.005)
    raise AssertionError("the server holds the write lock whenever it is looked at")


def _may_write(db: Path) -> bool:
    connection = sqlite3.connect(db, isolation_level=None, timeout=0.1)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True
