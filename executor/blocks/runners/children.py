"""Child processes: their pipes, and the pool that keeps them for the next call. There are at most so many at the same
time, and one call at a time in each. Runs take turns, so that one with many calls does not keep the others waiting.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from typing import Any, Final

import orjson


class Room:
    """A limit on calls at the same time, for one event loop. Runs that wait take turns, and the calls of one run keep
    their order, as in `executor.blocks.sandbox.workers` between threads. The cost does not depend on how many wait."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by run; the next one first

    @property
    def is_full(self) -> bool:
        return self._free == 0

    async def enter(self, run: str) -> None:
        """Returns when the caller has a place, which it has to `leave`."""
        if self._free:
            self._free -= 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(run, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():  # it had just got one
                self.leave()
            raise

    def leave(self) -> None:
        while self._waiting:
            run = next(iter(self._waiting))
            queue = self._waiting.pop(run)
            place = queue.popleft()
            while place.cancelled() and queue:
                place = queue.popleft()
            if queue:  # after all others
                self._waiting[run] = queue
            if not place.cancelled():
                place.set_result(None)
                return
        self._free += 1


IDLE_S: Final = 60.0  # then children without work end


START_S: Final = 60.0
END_S: Final = 3.0  # for a child to end by itself, once its input has ended
LINE_BYTES_MAX: Final = 32 * 1024 * 1024  # the size of a value as JSON is checked only after it was read
_BEGIN: Final = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {} import main; main()"


class Child:
    """A process with JSON lines on its input and its output. `is_patient`: its end may take END_S, else it is killed at
    once."""

    def __init__(self, process: Process, *, is_patient: bool) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.pid = process.pid
        self._process = process
        self._to, self._from = process.stdin, process.stdout
        self._is_patient = is_patient

    @classmethod
    async def of(
        cls,
        *argv: str,
        env: Mapping[str, str] | None = None,
        stderr: int | None = None,
        line_bytes: int = LINE_BYTES_MAX,
        is_patient: bool = False,
    ) -> Child:
        """Start a program; no shell. Raises OSError."""
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=PIPE, stdout=PIPE, stderr=stderr, limit=line_bytes, env=env
        )
        return cls(process, is_patient=is_patient)

    @classmethod
    async def start(
        cls, module: str, *arguments: str, env: Mapping[str, str] | None = None, is_patient: bool = False
    ) -> tuple[Child, bytes]:
        """Start `main` of a module of weft, and return the child with its first line, which it writes when it is ready.
        Raises OSError; ChildProcessError if it ended instead."""
        begin = ["-sP", "-X", "utf8", "-c", _BEGIN.format(module), orjson.dumps(sys.path).decode(), *arguments]
        child = await cls.of(sys.executable, *begin, env=env, is_patient=is_patient)
        try:
            async with asyncio.timeout(START_S):
                return child, await child.receive()
        except BaseException as error:
            if not isinstance(error, Exception):
                child.kill(at_once=True)
                raise
            raise ChildProcessError(await child.ended()) from error

    @property
    def is_ready(self) -> bool:
        return self._process.returncode is None and not self._from.at_eof()

    async def send(self, line: bytes) -> None:
        self._to.write(line + b"\n")
        await self._to.drain()

    async def receive(self) -> bytes:
        """Return the next line. Raises EOFError, OSError, and ValueError if it is too long."""
        line = await self._from.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        return line

    def kill(self, *, at_once: bool = False) -> None:
        """End its input, and with that a patient child; any other is killed."""
        self._to.close()
        if at_once or not self._is_patient:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def ended(self) -> str:
        """Return how it ended. It is killed only if it does not end by itself: a kill takes its exit code away from
        asyncio."""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await self._process.wait()
        self.kill(at_once=True)
        return ending(await self._process.wait())


class Children:
    """At most `most` children. `start` starts one. They belong to the event loop of the first call."""

    def __init__(self, start: Callable[[], Awaitable[Child]], most: int, *, idle_s: float = IDLE_S) -> None:
        self._start = start
        self._room = Room(most)
        self._idle: list[Child] = []
        self._idle_s = idle_s
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._starts: set[asyncio.Future[Child]] = set()  # those that no call waits for any more
        self._ends: set[asyncio.Task[str]] = set()

    @asynccontextmanager
    async def one(self, run: str, waiting: Callable[[], AbstractContextManager[Any]]) -> AsyncIterator[Child]:
        """Lend a child for one call. Runs take turns; `waiting` is entered while a place or a new child is not there
        yet. The child is killed when an exception leaves the block. Raises the errors of `start`."""
        with waiting() if self._room.is_full or not self._idle else nullcontext():
            await self._room.enter(run)
            try:
                one = self._pop_idle() or await self._started()
            except BaseException:
                self._room.leave()
                raise
        try:
            yield one
        except BaseException:
            self._end(one)
            raise
        else:
            self._put_back(one)
        finally:
            self._room.leave()

    async def close(self) -> None:
        """End the children. Returns when they have ended."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._end_idle()
        while pending := self._starts | self._ends:
            await asyncio.wait(pending)

    def _pop_idle(self) -> Child | None:
        while self._idle:
            one = self._idle.pop()
            if one.is_ready:
                return one
            self._end(one)  # it has ended since
        return None

    async def _started(self) -> Child:
        starting = asyncio.ensure_future(self._start())
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._starts.add(starting)
            starting.add_done_callback(self._started_late)
            raise

    def _started_late(self, starting: asyncio.Future[Child]) -> None:
        self._starts.discard(starting)
        if not starting.cancelled() and starting.exception() is None:
            self._put_back(starting.result())

    def _put_back(self, one: Child) -> None:
        if self._closed:
            self._end(one)
            return
        self._idle.append(one)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._end_idle)

    def _end_idle(self) -> None:
        while self._idle:
            self._end(self._idle.pop())

    def _end(self, one: Child) -> None:
        one.kill()
        task = asyncio.create_task(one.ended(), name=f"end of child process {one.pid}")
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)


def ending(code: int | None) -> str:
    if code is not None and code < 0 and sys.platform != "win32":
        with suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit code {code}"
