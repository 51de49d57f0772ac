"""`policy.runner: process`: functions in child processes, one attempt at a time in each.

Each child has a pool of pebble to itself. In one pool for all children a child that is killed while it writes a result
holds the lock of the pipe, and the others wait for it. A child whose attempt was cancelled, or is over its time, is
killed at once; the next call gets a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import threading
from copy import copy
from typing import Any, Final, assert_never

from executor.blocks.runners import far
from executor.blocks.runners.call import (
    Call,
    Failure,
    Listener,
    Report,
    decode_report,
    encode,
    failure_of,
    not_called,
    result_of,
)
from executor.blocks.runners.children import IDLE_S, Children, ending
from executor.errors import BlockError, Fenced, Lost

ProcessPool = Any  # pebble.ProcessPool; imported with the first child

log = logging.getLogger("weft.runners")

LINE_BYTES_MAX: Final = 32 * 1024 * 1024  # a checkpoint as JSON is refused by its size only after it was read
KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)


class ProcessRunner:
    """`most`: children at the same time; one for each core if it is not set. Belongs to the event loop of its first
    call."""

    def __init__(self, most: int | None = None, *, idle_s: float = IDLE_S) -> None:
        self.most = most or os.cpu_count() or 1
        self._children = Children(_Child.start, self.most, idle_s=idle_s)

    async def call(self, call: Call, listener: Listener) -> Any:
        """See `blocks.runners.call.Runner`. Runs take turns. A place and a new child are waited for outside the time
        limit."""
        async with self._children.one(call.run_id, listener.waiting) as one:
            answer = await one.run(encode(call), listener)
        return result_of(answer)

    async def close(self) -> None:
        """End the children."""
        self._children.close()


class _Child:
    """A process, its pool, and the connection for messages of functions."""

    def __init__(
        self,
        pool: ProcessPool,
        pid: int,
        far_end: socket.socket,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.pid = pid
        self._pool = pool
        self._far_end = far_end  # the pool starts another child when one ends: a closed socket would end its server
        self._reader = reader
        self._writer = writer
        self._listener: Listener | None = None
        self._begun = False
        self._listening = asyncio.create_task(self._listen(), name=f"child process {pid}")

    @classmethod
    async def start(cls) -> _Child:
        """Raises BlockError, retryable: the process cannot be started."""
        ours, theirs = socket.socketpair()
        pool: ProcessPool = None
        try:
            pool = await asyncio.to_thread(_pool, theirs)
            pid = await asyncio.wrap_future(pool.schedule(far.pid))
        except BaseException as error:
            ours.close()
            if pool is None:
                theirs.close()
            else:
                _stop(pool, theirs)
            if not isinstance(error, Exception):
                raise
            raise BlockError(
                f"the child process did not start: {type(error).__name__}: {error}",
                code="runner_unavailable",
                deferred="not_begun",
                hint='a program that embeds weft must start it below `if __name__ == "__main__":`',
            ) from error
        reader, writer = await asyncio.open_connection(sock=ours, limit=LINE_BYTES_MAX)
        return cls(pool, pid, theirs, reader, writer)

    @property
    def is_ready(self) -> bool:
        return bool(self._pool.active)

    async def run(self, call: bytes, listener: Listener) -> bytes:
        """Raises Lost, and BlockError: the function was not called."""
        from pebble import ProcessExpired

        self._listener, self._begun = listener, False
        try:
            answer: bytes = await asyncio.wrap_future(self._pool.schedule(far.run, args=(call,)))
            return answer
        except ProcessExpired as error:
            listener.log(f"(the child process {self.pid} ended: {ending(error.exitcode)})")
            raise self._lost(f"the child process of the attempt ended: {ending(error.exitcode)}") from error
        except (OSError, RuntimeError) as error:  # an error of the pool: those of functions come back as an answer
            listener.log(f"(the child process {self.pid} was lost: {error})")
            raise self._lost(f"the child process of the attempt was lost: {error}") from error
        finally:
            self._listener = None

    def _lost(self, message: str) -> Lost | BlockError:
        return Lost(message) if self._begun else not_called(message)

    def kill(self) -> None:
        """End it at once, whatever it does."""
        self._listening.cancel()
        self._writer.close()
        with contextlib.suppress(OSError):
            os.kill(self.pid, KILL)
        _stop(self._pool, self._far_end)

    async def _listen(self) -> None:
        try:
            while line := await self._reader.readline():
                report = decode_report(line)
                failure = await self._received(report)
                if report.kind in _ANSWERED:
                    self._writer.write(encode(failure) + b"\n")
        except OSError:
            pass  # the pool reports that it has ended
        except ValueError as error:
            log.warning("child process %d: %s", self.pid, error)
        finally:
            self._writer.close()  # nothing there waits for an answer now

    async def _received(self, report: Report) -> Failure | None:
        """Handle a message. Returns why it has no effect, or None."""
        listener = self._listener
        if listener is None:  # from a thread that outlives its function
            return _OVER
        match report.kind:
            case "log":
                listener.log(report.value)
            case "emit":
                listener.emit(report.value)
            case "checkpoint":
                try:
                    await listener.checkpoint(report.value)
                except (BlockError, Fenced) as error:
                    return failure_of(error)
            case "begun":
                self._begun = True
            case "sync":
                pass
            case other:
                assert_never(other)
        return None


_ANSWERED: Final = frozenset({"begun", "checkpoint", "sync"})
_OVER: Final = Failure("attempt_over", "the attempt has ended: its checkpoint was not stored")


def _pool(connection: socket.socket) -> ProcessPool:
    """Return a pool whose child is being started. Not a copy of this process with its threads and locks: a fresh
    one."""
    import pebble

    methods = multiprocessing.get_all_start_methods()
    context: Any = copy(multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn"))
    context.RLock = far.Alone
    pool = pebble.ProcessPool(max_workers=1, initializer=far.begin, initargs=(connection,), context=context)
    assert pool.active  # this starts it
    return pool


def _stop(pool: ProcessPool, connection: socket.socket) -> None:
    """Stop a pool in a thread that does not delay the end of this process."""

    def stop() -> None:
        try:
            pool.stop()
            pool.join()
        except Exception as error:
            log.debug("a pool of child processes did not stop: %r", error)
        finally:
            connection.close()

    with contextlib.suppress(RuntimeError):  # no more threads: the pool ends with this process
        threading.Thread(target=stop, name="weft-child-end", daemon=True).start()
