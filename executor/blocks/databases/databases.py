"""Chooses the database of a query, and limits how many queries run at the same time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, Final

from executor.blocks.databases import refusals
from executor.blocks.databases.files import Folders
from executor.blocks.databases.rows import Answer, Login, Query
from executor.blocks.databases.sqlite import SqliteFiles
from executor.blocks.databases.statement import names
from executor.blocks.http.binding import opened
from executor.blocks.http.client import GuardedClient
from executor.blocks.http.handles import has_handle
from executor.errors import BlockError
from executor.kernel.process.extras import install

CONNECTIONS_MAX: Final = 20
POSTGRES: Final = ("postgresql://", "postgres://")
SQLITE: Final = "sqlite:"
_DRIVER: Final = "executor.blocks.databases.postgres"


class Databases:
    """Shared by the `sql` blocks of a process; belongs to the event loop of its first query.

    http      its rules decide which addresses may be dialled
    folders   those that hold the SQLite files of queries
    own       the database file of weft, which queries cannot open
    """

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

    async def ask(
        self,
        database: str,
        query: Query,
        *,
        run: str,
        login: Login | None = None,
        waiting: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> Answer:
        """Run a query. `login` signs in to PostgreSQL, in place of the address's user and password. `waiting` is
        entered while all connections are in use, or all processes for SQLite files, in which `run`s take turns. Raises
        BlockError: sql_failed, sql_refused, sql_timeout, sql_no_file, sql_too_large, sql_login, address_refused,
        params_invalid, not_installed; retryable: sql_busy, sql_connection, sql_crashed. Raises Lost if it is unknown
        whether a change was committed."""
        if missing := [name for name in names(query.text) if name not in query.parameters]:
            raise refusals.bad_parameter(missing[0], "the query uses it, and it has no value")
        plain = opened(database)
        if plain.lower().startswith(POSTGRES):
            with waiting() if self._room.locked() else nullcontext():
                await self._room.acquire()
            try:
                return await self._ask_postgres(database, query, login)
            finally:
                self._room.release()
        if "://" in plain:
            scheme = "" if has_handle(database) else f", not {database.partition('://')[0][:40]}://"
            message = f"a database is postgresql:// or a SQLite file{scheme}"
            raise BlockError(message, code="params_invalid", retryable=False)
        if login is not None:
            message = "a connection signs in to PostgreSQL, and a SQLite file has no users"
            raise BlockError(message, code="params_invalid", retryable=False)
        if has_handle(database):
            message = "a secret cannot be the name of a SQLite file"
            raise BlockError(message, code="secret_misplaced", retryable=False)
        name = database.removeprefix(SQLITE)
        path = await asyncio.to_thread(self._folders.find, name, create=not query.read_only)
        return await self._sqlite.ask(path, query, run=run, waiting=waiting)

    async def close(self) -> None:
        """End the processes for SQLite files."""
        await self._sqlite.close()

    async def _ask_postgres(self, address: str, query: Query, login: Login | None) -> Answer:
        if _DRIVER not in sys.modules:
            try:
                await asyncio.to_thread(import_module, _DRIVER)
            except ImportError as error:
                message = f"PostgreSQL needs psycopg: {install('postgres')} ({error})"
                raise BlockError(message, code="not_installed", retryable=False) from None
        from executor.blocks.databases.postgres import ask

        return await ask(address, query, self._http.addresses, login)
