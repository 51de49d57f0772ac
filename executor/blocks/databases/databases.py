"""Chooses the database of a query, and limits how many queries run at the same time.

A query may open the SQLite files inside the folders that the operator permits, and never weft's own. A path is resolved
before it is checked, so links and `..` cannot leave the folder; the resolved path is opened.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final

from executor.blocks.databases import refusals
from executor.blocks.databases.commands import Command
from executor.blocks.databases.rows import Answer, Login, Query
from executor.blocks.databases.sqlite import SqliteFiles
from executor.blocks.databases.statement import names
from executor.blocks.http.binding import opened
from executor.blocks.http.client import GuardedClient
from executor.blocks.http.handles import has_handle
from executor.errors import BlockError
from executor.kernel.process.extras import install, loaded

ENDINGS: Final = (".db", ".sqlite", ".sqlite3")
FILES_MAX: Final = 1_000  # in one folder, beyond which a query creates none
HINT: Final = "the operator permits folders with WEFT_SQLITE_FOLDERS"


class Folders:
    """`folders`: the permitted ones; a relative path is looked for in each, and created in the first. `own`: the
    database file of weft."""

    def __init__(self, folders: Sequence[str] = (), own: str | None = None) -> None:
        self._folders = tuple(folders)
        self._own = own

    def find(self, name: str, *, create: bool = False) -> Path:
        """Return the path of a file, with `create` of a new one as well. Raises BlockError(sql_refused,
        sql_no_file)."""
        if not self._folders:
            raise _refused("this server permits no SQLite files")
        if not name or any(ord(character) < 0x20 for character in name):
            raise _refused("the name of a SQLite file must be one line of text")
        inside = [path for path in (path_inside(folder, name) for folder in self._folders) if path is not None]
        if not inside:
            raise _refused(f"{name[:200]!r} is not in a folder for SQLite files")
        if self._own is not None and any(_belongs(path, self._own) for path in inside):
            raise _refused(f"{name[:200]!r} belongs to the database of weft itself")
        for path in inside:
            if os.path.lexists(path):
                return self._checked(path, name)
        if not create:
            message = f"there is no SQLite file {name[:200]!r}"
            raise BlockError(
                message, code="sql_no_file", retryable=False, hint="a block that does not only read creates it"
            )
        return _new(inside[0], name)

    def _checked(self, path: Path, name: str) -> Path:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise _refused(f"{name[:200]!r} is not a file")
        if self._own is not None and os.path.exists(self._own) and os.path.samestat(found, os.stat(self._own)):
            raise _refused(f"{name[:200]!r} is the database of weft itself")
        return path


def _belongs(path: Path, own: str) -> bool:
    """Return True for the log, the index or the lock of `own`. SQLite would make a database of an empty one."""
    file = Path(os.path.realpath(own))
    return path.parent == file.parent and path.name.lower().startswith(
        (f"{file.name}-".lower(), f"{file.name}.".lower())
    )


def path_inside(folder: str, name: str, *, root_too: bool = False) -> Path | None:
    """Return the real path of what `name` is in the folder, or None if it is outside. `root_too`: the folder itself is
    inside."""
    root = Path(os.path.realpath(folder))
    path = Path(os.path.realpath(root / name))
    return path if root in path.parents or (root_too and path == root) else None


def _new(path: Path, name: str) -> Path:
    if path.suffix not in ENDINGS:
        raise _refused(
            f"a new SQLite file must end with {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, not {name[:200]!r}"
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.scandir(path.parent) as entries:
        if sum(1 for _ in entries) >= FILES_MAX:
            raise _refused(f"the folder of {name[:200]!r} has {FILES_MAX} files already")
    return path


def _refused(message: str) -> BlockError:
    return BlockError(message, code="sql_refused", retryable=False, hint=HINT)


CONNECTIONS_MAX: Final = 20
POSTGRES: Final = ("postgresql://", "postgres://")
MYSQL: Final = ("mysql://", "mariadb://")
SQLITE: Final = "sqlite:"
REDIS: Final = ("redis://", "rediss://")
Ask = Callable[..., Awaitable[Any]]
Waiting = Callable[[], AbstractContextManager[Any]]
# The file that asks, and what it needs.
_REDIS: Final = ("executor.blocks.databases.redis", lambda: f"Redis needs redis-py: {install('redis')}")
_DRIVERS: Final = (
    (POSTGRES, "executor.blocks.databases.postgres", lambda: f"PostgreSQL needs psycopg: {install('postgres')}"),
    (MYSQL, "executor.blocks.databases.mysql", lambda: f"MySQL needs PyMySQL: {install('mysql')}"),
)


class Databases:
    """Shared by the `sql` and `redis` blocks of a process; belongs to the event loop of its first query. The rules of
    `http` decide which addresses may be dialled; `folders` and `own` are those of `Folders`."""

    def __init__(
        self,
        http: GuardedClient,
        folders: Sequence[str] = (),
        *,
        own: str | None = None,
        connections: int = CONNECTIONS_MAX,
    ) -> None:
        self._http = http
        self._folders = Folders(folders, own)
        self._room = asyncio.Semaphore(connections)
        self._sqlite = SqliteFiles()
        self._loaded: dict[str, Ask] = {}

    async def ask(
        self,
        database: str,
        query: Query,
        *,
        run: str,
        login: Login | None = None,
        waiting: Waiting = nullcontext,
    ) -> Answer:
        """Run a query. `login` signs in to a server, in place of the address's user and password. `waiting` is
        entered while all connections are in use, or all processes for SQLite files, in which `run`s take turns. Raises
        BlockError: sql_failed, sql_refused, sql_timeout, sql_no_file, sql_too_large, sql_login, address_refused,
        params_invalid, not_installed; retryable: sql_busy, sql_connection, sql_crashed. Raises Lost if it is unknown
        whether a change was committed."""
        plain = opened(database)
        known = names(query.text, mysql=plain.lower().startswith(MYSQL))
        if missing := [name for name in known if name not in query.parameters]:
            raise refusals.bad_parameter(missing[0], "the query uses it, and it has no value")
        for schemes, module, needs in _DRIVERS:
            if plain.lower().startswith(schemes):
                answer: Answer = await self._served(module, needs, waiting, database, query, login)
                return answer
        if "://" in plain:
            scheme = "" if has_handle(database) else f", not {database.partition('://')[0][:40]}://"
            message = f"a database is postgresql://, mysql:// or a SQLite file{scheme}"
            raise BlockError(message, code="params_invalid", retryable=False)
        if login is not None:
            message = "a connection signs in to a server, and a SQLite file has no users"
            raise BlockError(message, code="params_invalid", retryable=False)
        if has_handle(database):
            message = "a secret cannot be the name of a SQLite file"
            raise BlockError(message, code="secret_misplaced", retryable=False)
        name = database.removeprefix(SQLITE)
        path = await asyncio.to_thread(self._folders.find, name, create=not query.read_only)
        return await self._sqlite.ask(path, query, run=run, waiting=waiting)

    async def command(
        self, server: str, command: Command, *, login: Login | None = None, waiting: Waiting = nullcontext
    ) -> Any:
        """Send a command to a Redis server, and return its answer as JSON. `login` and `waiting` are those of `ask`.
        Raises BlockError: redis_failed, redis_timeout, redis_too_large, redis_login, address_refused, params_invalid,
        not_installed; retryable: redis_busy, redis_connection. Raises Lost if it is unknown whether the command was
        executed."""
        if not opened(server).lower().startswith(REDIS):
            raise BlockError("a Redis server is redis:// or rediss://", code="params_invalid", retryable=False)
        return await self._served(*_REDIS, waiting, server, command, login)

    async def _served(
        self, module: str, needs: Callable[[], str], waiting: Waiting, address: str, asked: Any, login: Login | None
    ) -> Any:
        with waiting() if self._room.locked() else nullcontext():
            await self._room.acquire()
        try:
            if module not in self._loaded:
                self._loaded[module] = (await loaded(module, needs)).ask
            return await self._loaded[module](address, asked, self._http.addresses, login)
        finally:
            self._room.release()

    async def close(self) -> None:
        await self._sqlite.close()
