"""The other side: carries out a `Call` in a child process of `process.ProcessRunner`, which is set up once, or on a
worker of a cluster.

A function gets a `FarContext` as `ctx`: the identity of its attempt, and the calls that reach the server.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import threading
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from executor.blocks.runners.call import Answer, Call, Failure, Report, decode_call, encode, error_of, failure_of, found
from executor.blocks.runners.itself import end_with_parent
from executor.errors import BlockError, Fenced
from executor.kernel.process.observe import inside
from executor.kernel.process.tracebacks import traceback_of
from executor.kernel.values.payload import encode as encode_payload


class Voice(Protocol):
    """The way of messages from a function to the server."""

    def report(self, report: Report) -> None: ...

    def ask(self, report: Report) -> None:
        """Returns when it has had its effect. Raises BlockError, Fenced."""
        ...


class FarContext:
    """The part of `executor.kernel.handler.base.Context` that exists in another process, with the same meaning."""

    def __init__(self, call: Call, voice: Voice) -> None:
        self.run_id = call.run_id
        self.workflow = call.workflow
        self.key = call.key
        self.block = call.block
        self.name = call.name
        self.type = call.type
        self.attempt = call.attempt
        self.idempotency_key = call.idempotency_key
        self.now_ms = call.now_ms
        self.last_checkpoint = call.last_checkpoint
        self._voice = voice
        self.has_said = False

    def log(self, *values: object) -> None:
        self.has_said = True
        self._voice.report(Report("log", " ".join(map(str, values))))

    def emit(self, text: str) -> None:
        self.has_said = True
        self._voice.report(Report("emit", text))

    async def checkpoint(self, value: Any) -> None:
        await asyncio.to_thread(self.checkpoint_from_thread, value)

    def checkpoint_from_thread(self, value: Any) -> None:
        self._voice.ask(Report("checkpoint", Raw(encode_payload(value))))

    def __getattr__(self, name: str) -> Any:
        if name in ("heartbeat", "cancelled", "http"):
            message = f"ctx.{name} is not available in another process, which is ended when its time is over"
            raise BlockError(message, code="not_available", retryable=False)
        if name in ("step", "wait", "step_from_thread", "wait_from_thread"):
            message = f"ctx.{name} is not available in another process: remove policy.runner, or use ctx.checkpoint"
            raise BlockError(message, code="steps_not_available", retryable=False)
        raise AttributeError(f"ctx.{name} is not available in another process: pass what is needed as an argument")


def carry_out(data: bytes, voice: Voice) -> bytes:
    """Call the function of an encoded `Call`; an encoded `Answer`. Raises nothing that a function can raise."""
    call = decode_call(data)
    try:
        output = encode_payload(_call(call, voice))
    except (BlockError, Fenced) as error:
        failure = failure_of(error)
        return encode(Answer(failure=replace(failure, traceback=failure.traceback or _traceback(call, error))))
    except BaseException as error:
        message = f"{call.function}: {type(error).__name__}: {error}"
        failure = Failure("function_failed", _unicode(message), True, traceback=_traceback(call, error))
        return encode(Answer(failure=failure))
    return encode(Answer(Raw(output)))


def _call(call: Call, voice: Voice) -> Any:
    try:
        function: Callable[..., Any] = found(call.place)
    except (ImportError, AttributeError) as error:
        raise BlockError(
            f"{call.function} cannot be imported where it is to run: {error}",
            code="runner_unfit",
            retryable=False,
            hint=f"install the module of {call.place} there",
        ) from error
    arguments: dict[str, Any] = msgspec.json.decode(call.arguments)
    context = FarContext(call, voice)
    if call.context is not None:
        arguments[call.context] = context
    try:
        with inside(context):
            if inspect.iscoroutinefunction(function):
                return asyncio.run(function(**arguments))
            return function(**arguments)
    finally:
        if context.has_said:
            voice.ask(Report("sync"))  # earlier messages have arrived before the result does


def _traceback(call: Call, error: BaseException) -> str:
    try:
        return _unicode(traceback_of(error, found(call.place)))
    except (ImportError, AttributeError):  # there is no function to look into
        return ""


def _unicode(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


_voices: list[SocketVoice] = []  # the one of this process


def begin(connection: socket.socket) -> None:
    """Set up a child process: `connection` leads to its server."""
    end_with_parent()
    _voices[:] = [SocketVoice(connection)]


def run(call: bytes) -> bytes:
    """Carry out the call, see `carry_out`. The server is notified before the function or its module is touched: else it
    would be in doubt about a call of a lost child."""
    _voices[0].ask(Report("begun"))
    return carry_out(call, _voices[0])


class SocketVoice:
    """JSON, a line each. Threads of a function may use it side by side."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._answers = connection.makefile("rb")
        self._lock = threading.Lock()

    def report(self, report: Report) -> None:
        with self._lock:
            self._connection.sendall(encode(report) + b"\n")

    def ask(self, report: Report) -> None:
        with self._lock:
            self._connection.sendall(encode(report) + b"\n")
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
