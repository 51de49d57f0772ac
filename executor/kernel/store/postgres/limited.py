"""Sessions that notice a database that answers nothing (a host that is frozen or has vanished, a network that drops
packets), or that a pool gives them to others.

The limits that PostgreSQL keeps itself (`statement_timeout`) mean nothing then. TCP notices a host that acknowledges
nothing (`tcp_user_timeout`, keepalives); what acknowledges and answers nothing is noticed here.

A pool like pgbouncer in transaction mode gives a session to another client after each transaction, so a statement that
was prepared in one may not be there in the next. pgbouncer before 1.21, and later ones without
`max_prepared_statements`, do nothing about that: then no statement is prepared. Others rename what a client prepares,
and have it wherever the client comes next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from itertools import count
from typing import Any, Final, TypeVar

import psycopg
from psycopg import waiting
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import DuplicatePreparedStatement

from executor.kernel.store.statements import Row

# A pool makes up the number that it gives a client that connects.
BACKEND: Final = "SELECT pg_backend_pid()"
PROBE: Final = "SELECT 1 AS weft_probe"
# In the transaction of the probe, under the name that psycopg gave it.
PROBES: Final = r"SELECT name FROM pg_prepared_statements WHERE statement LIKE '%weft_probe%' AND name LIKE '\_pg3\_%'"
DEALLOCATE_ALL: Final = "DEALLOCATE ALL"


def prepare_where_kept(connection: psycopg.Connection[Any]) -> None:
    """Turn prepared statements off for a session that a pool may give to others, unless the pool keeps them. For a
    session that was just opened, with autocommit. Raises psycopg.Error."""
    if connection.execute(BACKEND).fetchall() == [(connection.info.backend_pid,)]:
        return
    connection.execute("BEGIN")
    try:
        connection.execute(PROBE, prepare=True)
        if connection.execute(PROBES).fetchall():
            connection.prepare_threshold = None
            connection.execute(DEALLOCATE_ALL)
    except DuplicatePreparedStatement:  # of another client
        connection.prepare_threshold = None
    connection.execute("ROLLBACK")


async def prepare_where_kept_async(connection: psycopg.AsyncConnection[Any]) -> None:
    if await (await connection.execute(BACKEND)).fetchall() == [(connection.info.backend_pid,)]:
        return
    await connection.execute("BEGIN")
    try:
        await connection.execute(PROBE, prepare=True)
        if await (await connection.execute(PROBES)).fetchall():
            connection.prepare_threshold = None
            await connection.execute(DEALLOCATE_ALL)
    except DuplicatePreparedStatement:
        connection.prepare_threshold = None
    await connection.execute("ROLLBACK")


T = TypeVar("T")

CONNECT_TIMEOUT_S: Final = 3
EACH_HOST_S: Final = 2  # of several; libpq has no less
LIMIT_S: Final = 10.0  # without an answer of any kind
LOOK_EVERY_S: Final = 0.1
LONG_S: Final = 35.0  # above `statement_timeout`: the server itself ends what takes longer
# Settings in the address take precedence.
OF_NETWORK: Final = {
    "tcp_user_timeout": 5_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


class Silent(psycopg.OperationalError):
    """The database answers nothing. The session is closed; whether a COMMIT is on disk is not known."""


def reachable(dsn: str, *, reads_only: bool = False) -> str:
    """Return the address with limits for its network. Of several hosts the one that accepts writes is used, unless the
    address names others (`target_session_attrs`). `reads_only` is True for a session that refuses to write by a setting
    of its own, which libpq takes for that of the host. Raises psycopg.Error."""
    parts = conninfo_to_dict(dsn)
    are_several = "," in str(parts.get("host") or parts.get("hostaddr") or "")
    network = OF_NETWORK | {"connect_timeout": EACH_HOST_S if are_several else CONNECT_TIMEOUT_S}
    added: dict[str, Any] = {name: value for name, value in network.items() if name not in parts}
    wanted = parts.get("target_session_attrs")
    if wanted is None and are_several:
        wanted = "read-write"
    if wanted == "read-write":
        added["target_session_attrs"] = "primary" if reads_only else wanted
    return make_conninfo(dsn, **added)


def limited(answers: Generator[T, Any, Any], is_over: Callable[[], bool]) -> Generator[T, Any, Any]:
    """`answers` of psycopg, which is continued ten times a second while nothing comes. Raises Silent."""
    try:
        state = next(answers)
        while True:
            ready = yield state
            if not ready and is_over():
                raise Silent("the database does not answer")
            state = answers.send(ready)
    except StopIteration as end:
        return end.value


class LimitedConnection(psycopg.Connection[Row]):
    """A connection with a limit on each wait for an answer: `limit_s`, or none if it is None. `prepared`: the names of
    statements that were prepared without a cursor (`batch.py`), and `numbers` for more of them."""

    limit_s: float | None = LIMIT_S

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.prepared: dict[str, bytes] = {}
        self.numbers = count(1)

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        if self.limit_s is None:
            return super().wait(gen, *args, **kwargs)
        until_s = time.monotonic() + self.limit_s
        try:
            return super().wait(limited(gen, lambda: time.monotonic() > until_s), *args, **kwargs)
        except Silent:
            self.pgconn.finish()
            raise


class LimitedAsyncConnection(psycopg.AsyncConnection[Row]):
    """The same in an event loop. `is_over` is asked ten times a second while nothing comes; if it is None, `limit_s`
    holds. A cancelled caller does not wait until the server has ended the query: the session is closed."""

    limit_s: float = LIMIT_S
    is_over: Callable[[], bool] | None = None

    async def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        until_s = time.monotonic() + self.limit_s
        is_over = self.is_over or (lambda: time.monotonic() > until_s)
        try:
            return await waiting.wait_async(limited(gen, is_over), self.pgconn.socket, interval=LOOK_EVERY_S)
        except (Silent, asyncio.CancelledError):
            self.pgconn.finish()
            raise
