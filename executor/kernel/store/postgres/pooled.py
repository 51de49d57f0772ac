"""Sessions of a pool that gives a server's session to another client after each transaction (pgbouncer in transaction
mode).

A statement that was prepared in one transaction may not be there in the next one. pgbouncer before 1.21, and later ones
without `max_prepared_statements`, do nothing about that: then no statement is prepared. Others rename what a client
prepares, and have it wherever the client comes next.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg
from psycopg.errors import DuplicatePreparedStatement

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
    """The same."""
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
