"""Runs queries on SQLite files in child processes: an error in SQLite ends such a process, not the server.

The process has no variables of the environment but a few (`_KEPT`), bounds on memory, time and files, and a SQLite that
is newer than that of most Pythons. See docs/decisions/0057-sql-child.md.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson

from executor.blocks.databases import refusals
from executor.blocks.databases.rows import Answer, Asked, Query, Reply
from executor.blocks.databases.statement import names
from executor.blocks.runners.call import encode, error_of
from executor.blocks.runners.children import IDLE_S, Children, ending
from executor.errors import Lost, not_begun

CHILDREN_MAX: Final = 8
START_S: Final = 60.0
GRACE_S: Final = 6.0  # beyond the time of a query, which ends by itself
COMMIT_S: Final = 60.0
END_S: Final = 3.0  # for what a query has changed to be undone
LINE_BYTES_MAX: Final = 16 * 1024 * 1024
_KEPT: Final = frozenset(
    {"SQLITE_TMPDIR", "TMPDIR", "TMP", "TEMP", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "PYTHONHOME",
     "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}
)  # fmt: skip
_BEGIN: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from executor.blocks.databases.sqlite_child import main; main()"
)
_INT64: Final = range(-(2**63), 2**63)


class SqliteFiles:
    """Belongs to the event loop of its first query."""

    def __init__(self, *, most: int = CHILDREN_MAX, idle_s: float = IDLE_S) -> None:
        self._ends: set[asyncio.Task[None]] = set()
        self._children = Children(self._start, most, idle_s=idle_s)

    async def ask(
        self, path: Path, query: Query, *, run: str, waiting: Callable[[], AbstractContextManager[Any]]
    ) -> Answer:
        """Run a query. Runs take turns, and `run` asks. Raises BlockError, and Lost if it is unknown whether
        a change was committed."""
        bound = {name: _bound(name, query.parameters[name]) for name in names(query.text)}
        asked = Asked(str(path), msgspec.structs.replace(query, parameters=bound))
        async with self._children.one(run, waiting) as child:
            reply = await child.ask(asked)
        if reply.failure is not None:
            raise error_of(reply.failure)
        assert reply.answer is not None
        return reply.answer

    async def close(self) -> None:
        """End the child processes."""
        self._children.close()
        if self._ends:
            await asyncio.wait(self._ends)

    async def _start(self) -> _Child:
        return await _Child.start(self._ends)


class _Child:
    """A process and its two pipes. `ends` are the tasks of children that end."""

    def __init__(self, process: Process, ends: set[asyncio.Task[None]]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._to, self._from = process.stdin, process.stdout
        self._ends = ends

    @classmethod
    async def start(cls, ends: set[asyncio.Task[None]]) -> _Child:
        """Start a process. Raises BlockError if it does not start, or if its SQLite is too old."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-sP", "-X", "utf8", "-c", _BEGIN, orjson.dumps(sys.path).decode(),
                stdin=PIPE, stdout=PIPE, limit=LINE_BYTES_MAX, env=_environment(os.environ),
            )  # fmt: skip
        except OSError as error:
            raise not_begun("sql", error) from error
        child = cls(process, ends)
        try:
            async with asyncio.timeout(START_S):
                reply = await child._reply()
        except BaseException as error:
            if not isinstance(error, Exception):
                child.kill(at_once=True)
                raise
            raise refusals.not_started(await child._ended()) from error
        if reply.failure is not None:
            child.kill()
            raise error_of(reply.failure)
        return child

    @property
    def is_ready(self) -> bool:
        return self._process.returncode is None and not self._from.at_eof()

    async def ask(self, asked: Asked) -> Reply:
        """Run a query. Raises BlockError and Lost, and then the process has ended."""
        timeout_s, committing = asked.query.timeout_s, False
        try:
            async with asyncio.timeout(timeout_s + GRACE_S) as time:
                self._to.write(encode(asked) + b"\n")
                await self._to.drain()
                reply = await self._reply()
                if committing := reply.committing:
                    time.reschedule(asyncio.get_running_loop().time() + COMMIT_S)
                    reply = await self._reply()
            return reply
        except TimeoutError:
            self.kill(at_once=True)
            how, error = f"the commit took longer than {COMMIT_S:g} s", refusals.out_of_time(timeout_s)
        except ValueError as failed:  # a line that is too long, or is no reply
            self.kill(at_once=True)
            how = f"its reply is not valid: {failed}"
            error = refusals.crashed(how)
        except (OSError, EOFError):
            how = await self._ended()
            error = refusals.crashed(how)
        if committing:
            raise Lost(f"the process that ran the query was lost during the commit: {how}")
        raise error

    def kill(self, *, at_once: bool = False) -> None:
        """End the input of the process. With that it ends, as soon as the changes of a query are undone."""
        self._to.close()
        if at_once:
            self._kill()
        task = asyncio.create_task(self._gone(), name=f"end of SQLite process {self._process.pid}")
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)

    async def _ended(self) -> str:
        """Return how a process that has closed its pipes ended. It is killed only if it does not end by itself: a kill
        takes its exit code away from asyncio."""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await self._process.wait()
        self.kill(at_once=True)
        return ending(await self._process.wait())

    async def _gone(self) -> None:
        try:
            async with asyncio.timeout(END_S):
                await self._process.wait()
        except TimeoutError:
            self._kill()
            await self._process.wait()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    async def _reply(self) -> Reply:
        """Return the next reply. Raises EOFError, and ValueError if the line is no reply."""
        line = await self._from.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        return _decode(line)


_decode = msgspec.json.Decoder(Reply).decode


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if name in _KEPT}


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
