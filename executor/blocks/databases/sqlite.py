"""Runs queries on SQLite files in child processes: an error in SQLite ends such a process, not the server.

The process has no variables of the environment but a few (`_KEPT`), bounds on memory, time and files, and a SQLite that
is newer than that of most Pythons. See docs/decisions/0057-sql-child.md.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson

from executor.blocks.databases import refusals
from executor.blocks.databases.rows import Answer, Query, Reply
from executor.blocks.databases.statement import names
from executor.blocks.runners.call import encode, error_of
from executor.blocks.runners.children import IDLE_S, Child, Children
from executor.errors import BlockError, Lost, not_begun
from executor.kernel.process.extras import install

CHILDREN_MAX: Final = 8
GRACE_S: Final = 6.0  # beyond the time of a query, which ends by itself
COMMIT_S: Final = 60.0
_KEPT: Final = frozenset(
    {"SQLITE_TMPDIR", "TMPDIR", "TMP", "TEMP", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "PYTHONHOME",
     "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}
)  # fmt: skip
_INT64: Final = range(-(2**63), 2**63)
_decode = msgspec.json.Decoder(Reply).decode


class SqliteFiles:
    """Belongs to the event loop of its first query."""

    def __init__(self, *, most: int = CHILDREN_MAX, idle_s: float = IDLE_S) -> None:
        self._children = Children(_start, most, idle_s=idle_s)

    async def ask(
        self, path: Path, query: Query, *, run: str, waiting: Callable[[], AbstractContextManager[Any]]
    ) -> Answer:
        """Run a query. Runs take turns, and `run` asks. Raises as `Databases.ask`."""
        bound = {name: _bound(name, query.parameters[name]) for name in names(query.text)}
        asked = msgspec.structs.replace(query, parameters=bound, path=str(path))
        async with self._children.one(run, waiting) as child:
            reply = await _ask(child, asked)
        if reply.failure is not None:
            raise error_of(reply.failure)
        assert reply.answer is not None
        return reply.answer

    async def close(self) -> None:
        await self._children.close()


async def _start() -> Child:
    if find_spec("apsw") is None:
        raise BlockError(
            "queries on SQLite files need apsw", code="not_installed", retryable=False, hint=install("sql")
        )
    env = {name: value for name, value in os.environ.items() if name in _KEPT}
    try:
        child, line = await Child.start("executor.blocks.databases.sqlite_child", env=env, is_patient=True)
    except ChildProcessError as error:
        message = f"the process for queries on SQLite files did not start: {error}"
        hint = "the log of the server has the error"
        raise BlockError(message, code="sql_crashed", retryable=True, hint=hint) from error
    except OSError as error:
        raise not_begun("sql", error) from error
    reply = _decode(line)
    if reply.failure is not None:
        child.kill()
        raise error_of(reply.failure)
    return child


async def _ask(child: Child, query: Query) -> Reply:
    committing = False
    try:
        async with asyncio.timeout(query.timeout_s + GRACE_S) as time:
            await child.send(encode(query))
            reply = _decode(await child.receive())
            if committing := reply.committing:
                time.reschedule(asyncio.get_running_loop().time() + COMMIT_S)
                reply = _decode(await child.receive())
        return reply
    except TimeoutError:
        child.kill(at_once=True)
        how, error = f"the commit took longer than {COMMIT_S:g} s", refusals.out_of_time(query.timeout_s)
    except ValueError as failed:  # a line that is too long, or is no reply
        child.kill(at_once=True)
        how = f"its reply is not valid: {failed}"
        error = refusals.crashed(how)
    except (OSError, EOFError):
        how = await child.ended()
        error = refusals.crashed(how)
    if committing:
        raise Lost(f"the process that ran the query was lost during the commit: {how}")
    raise error


def _bound(name: str, value: Any) -> Any:
    match value:
        case bool():
            return int(value)
        case int() if value not in _INT64:
            raise refusals.bad_parameter(name, "a whole number has more than 64 bits")
        case str() if not _is_text(value):
            raise refusals.bad_parameter(name, "it is not valid Unicode text")
        case None | str() | int() | float():
            return value
        case _:
            return orjson.dumps(value).decode()


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
