"""A child process of `process.ProcessRunner`: set up once, then `run` is called for one attempt at a time."""

from __future__ import annotations

import os
import socket
import threading

import msgspec

from executor.blocks.runners.call import Failure, Said, encode, error_of
from executor.blocks.runners.far import carry_out
from executor.blocks.runners.itself import end_with_parent

_voices: list[SocketVoice] = []  # the one of this process


def begin(connection: socket.socket) -> None:
    """Set up a child process: `connection` leads to its server."""
    end_with_parent()
    _voices[:] = [SocketVoice(connection)]


def run(call: bytes) -> bytes:
    """Carry out the call, see `carry_out`. The server is notified before the function or its module is touched: else it
    would be in doubt about a call of a lost child."""
    _voices[0].ask(Said("begun"))
    return carry_out(call, _voices[0])


class SocketVoice:
    """JSON, a line each. Threads of a function may use it side by side."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._answers = connection.makefile("rb")
        self._lock = threading.Lock()

    def say(self, said: Said) -> None:
        with self._lock:
            self._connection.sendall(encode(said) + b"\n")

    def ask(self, said: Said) -> None:
        with self._lock:
            self._connection.sendall(encode(said) + b"\n")
            answer = self._answers.readline()
        if not answer:
            raise ConnectionError("the server has ended")
        failure = msgspec.json.decode(answer, type=Failure | None)
        if failure is not None:
            raise error_of(failure)


class Alone:
    """Replaces a lock between the children of one pool: here it has only one. Such a lock is a named semaphore, which
    stays in the system when the server is killed together with the process that would clean up."""

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        return True

    def release(self) -> None:
        pass


def pid() -> int:
    """Return the process id, which shows that the process exists."""
    return os.getpid()
