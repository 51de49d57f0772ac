"""One database, servers on it that are certain to be gone afterwards, and a service of the test's for them to call."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.place import Place
from tests.support.server import ServerProcess, free_port
from tests.support.service import Service, serve

# For tests of the file of SQLite, and of clocks of machines.
ON_A_FILE = pytest.mark.parametrize("place", ["sqlite"], indirect=True)


class Servers:
    """All on one database and, unless another is given, on one port. A lease of a second keeps the tests short."""

    def __init__(self, db: Place, folder: Path) -> None:
        self.db = db
        self.log = folder / "log"
        self.port = free_port(random.Random())
        self.module = "server"
        self._environ = {"WEFT_LEASE_MS": "1000"}
        self._started: list[ServerProcess] = []

    @property
    def file(self) -> Path:
        """For tests that are about a file."""
        assert isinstance(self.db, Path)
        return self.db

    def alter(self, **environ: str) -> None:
        """Let the servers that start from now on have another clock, or less patience: `altered.py`."""
        self.module = "tests.e2e.crash.altered"
        self._environ |= environ

    def lease(self, ms: int) -> None:
        """Let the servers that start from now on hold their runs so long without a word."""
        self._environ["WEFT_LEASE_MS"] = str(ms)

    def allow(self, service: Service) -> None:
        """Let the servers that start from now on call the test's service."""
        self._environ["WEFT_ALLOW_PRIVATE"] = service.place

    def offer(self, *functions: str) -> None:
        """Let blocks of type `python` call these, on the servers that start from now on."""
        self._environ["WEFT_FUNCTIONS"] = ",".join(functions)

    def send_mail_through(self, port: int) -> None:
        """Let the servers that start from now on give their mails to the test's mail server."""
        self._environ |= {
            "WEFT_MAIL_TRANSPORT": "smtp",
            "WEFT_MAIL_HOST": "127.0.0.1",
            "WEFT_MAIL_PORT": str(port),
            "WEFT_MAIL_FROM": "weft@example.org",
            "WEFT_MAIL_STARTTLS": "0",
        }

    async def spawn(self, port: int | None = None, log: Path | None = None) -> ServerProcess:
        """Not ready yet."""
        server = await ServerProcess.start(self.db, port or self.port, log or self.log, self.module, **self._environ)
        self._started.append(server)
        return server

    async def start(self, port: int | None = None, log: Path | None = None) -> ServerProcess:
        server = await self.spawn(port, log)
        await server.ready()
        return server

    async def clean_up(self) -> None:
        for server in self._started:
            await server.clean_up()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.proof)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Of an empty database."""
    return tmp_path / "weft.db" if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


@pytest.fixture
async def servers(place: Place, tmp_path: Path) -> AsyncIterator[Servers]:
    made = Servers(place, tmp_path)
    yield made
    await made.clean_up()


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    async with serve() as made:
        yield made
