"""Real server processes.

`ServerProcess` is one that asyncio tests kill, freeze and stop: in a process group of its own, on a port that stays the
same. `ServerProcess.start` does not wait, so that a server can be killed while it starts; `ready` does.
`SyncServerProcess` waits until it is ready, on a free port.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from tests.support.forked import Forked, Forks
from tests.support.place import Place

ROOT = Path(__file__).parents[2]
READY = b"weft is ready: "
# Below the range from which the kernel takes ports for outgoing connections (32768 and up): no other process uses ours
# while its server is down, and a client that calls it then cannot end up connected to itself.
PORTS = range(20_000, 32_000)
# Each process of pytest-xdist has its own share of them, and gives each port once.
_PROCESSES = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_NUMBER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _PROCESSES
_GIVEN: set[int] = set()


class ServerProcess:
    """`url` has no trailing slash. Everything the process says goes to `log`, which several may share."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self._process = process
        self._began = time.monotonic()
        self.url = url

    @classmethod
    async def start(
        cls,
        db: Place,
        port: int,
        log: Path,
        module: str = "server",
        within: Sequence[str] = (),
        command: Sequence[str] = ("serve",),
        **environ: str,
    ) -> ServerProcess:
        """`module` is run as `weft`; `tests.e2e.crash.altered` is that with another clock or less patience. `within`: a
        command that runs what follows it, in its own process. `command`: of `weft`, with its options."""
        with log.open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                *within,
                sys.executable,
                "-m",
                module,
                *command,
                cwd=ROOT,
                env=_environment(db, port, environ),
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


class SyncServerProcess:
    """`url` has no trailing slash. `kill` is kill -9, `stop` is SIGTERM and returns the exit code. `log`: a file that
    takes what the server writes to stderr. `python`: one that has weft installed, instead of this checkout. `options`
    of `weft serve`. `forks`: what starts it quickly. There is no token unless `environ` has WEFT_TOKEN."""

    def __init__(
        self,
        folder: Path,
        environ: dict[str, str],
        log: Path | None = None,
        python: Path | None = None,
        options: Sequence[str] = (),
        forks: Forks | None = None,
    ) -> None:
        environ = _environment(folder / "weft.db", 0, environ)
        self._process: subprocess.Popen[str] | Forked
        with log.open("wb") if log is not None else nullcontext() as stderr:
            if forks is not None:
                self._process = forks.start(["serve", *options], environ, stderr)
            else:
                self._process = subprocess.Popen(
                    [python or sys.executable, "-m", "server", "serve", *options],
                    cwd=folder if python else ROOT,
                    env=environ,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    text=True,
                )
        self.pid = self._process.pid
        self.folder = folder
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line.startswith(READY.decode()):
            self.kill()
            raise AssertionError(f"the server did not start: {line!r}")
        self._printed = line.removeprefix(READY.decode()).strip()
        self.url = self._printed.partition("/sign-in#")[0].rstrip("/")

    def sign_in_link(self) -> str:
        """What it printed for browsers; only a server whose token is its own (WEFT_TOKEN is empty) does."""
        assert "/sign-in#" in self._printed, self._printed
        return self._printed

    def kill(self) -> None:
        self._process.kill()
        self._end()

    def stop(self, timeout_s: float = 60) -> int:
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(timeout_s)
        self._end()
        return code

    def signal_stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def _end(self) -> None:
        self._process.wait(30)
        if self._process.stdout:
            self._process.stdout.close()

    @property
    def running(self) -> bool:
        return self._process.poll() is None


def _environment(db: Place, port: int, more: Mapping[str, str]) -> dict[str, str]:
    """That of this process, with no setting of weft but these. There is no token unless `more` has WEFT_TOKEN; with
    PostgreSQL there is a key, as servers share no file."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
    key = {} if isinstance(db, Path) else {"WEFT_SECRET_KEY": "k" * 32}
    return {**own, "WEFT_DB": str(db), "WEFT_PORT": str(port), "WEFT_TOKEN": "off", **key, **more}


def free_port(choose: random.Random) -> int:
    """A port that is not in use, which stays free while the server on it is down or not yet up."""
    while True:
        port = choose.choice(PORTS[_NUMBER::_PROCESSES])
        if port in _GIVEN:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _GIVEN.add(port)
            return port


async def freeze_outside_a_write(server: ServerProcess, db: Place) -> None:
    """Freeze the server at a moment when it does not hold the database's write lock, as others would wait for it.
    PostgreSQL has none: rows that a frozen server has are free as soon as its session has been idle for too long."""
    if not isinstance(db, Path):
        server.freeze()
        return
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
