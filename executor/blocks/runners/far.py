"""The other side: carries out a `Call` in a child process of `process.ProcessRunner`, or on a worker of a cluster.

A function gets a `FarContext` as `ctx`: the identity of its attempt, and the calls that reach the server.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from executor.blocks.runners import call as calls
from executor.blocks.runners.itself import end_with_parent
from executor.errors import BlockError, Fenced
from executor.kernel.process.observe import inside
from executor.kernel.process.tracebacks import traceback_of
from executor.kernel.values.payload import encode as encode_payload

is_child = threading.Event()


class Voice(Protocol):
    """The way of messages from a function to the server."""

    def report(self, report: calls.Report) -> None: ...

    def ask(self, report: calls.Report) -> None:
        """Send a checkpoint, and return when it is stored. Raises BlockError, Fenced."""
        ...


class FarContext:
    """The part of `executor.kernel.handler.base.StepContext` that exists in another process, with the same meaning."""

    def __init__(self, call: calls.Call, voice: Voice) -> None:
        for name in calls.ATTEMPT:
            setattr(self, name, getattr(call, name))
        self._voice = voice

    def log(self, *values: object) -> None:
        self._voice.report(calls.Report("log", " ".join(map(str, values))))

    def emit(self, text: str) -> None:
        self._voice.report(calls.Report("emit", text))

    async def checkpoint(self, value: Any) -> None:
        await asyncio.to_thread(self.checkpoint_from_thread, value)

    def checkpoint_from_thread(self, value: Any) -> None:
        self._voice.ask(calls.Report("checkpoint", Raw(encode_payload(value))))

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
    call = calls.decode_call(data)
    try:
        output = encode_payload(_call(call, voice))
    except (BlockError, Fenced) as error:
        failure = calls.failure_of(error)
        return calls.encode(
            calls.Answer(failure=replace(failure, traceback=failure.traceback or _traceback(call, error)))
        )
    except BaseException as error:
        message = f"{call.function}: {type(error).__name__}: {error}"
        failure = calls.Failure("function_failed", _unicode(message), True, traceback=_traceback(call, error))
        return calls.encode(calls.Answer(failure=failure))
    return calls.encode(calls.Answer(Raw(output)))


def _call(call: calls.Call, voice: Voice) -> Any:
    try:
        function: Callable[..., Any] = calls.found(call.place)
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
    with inside(context):
        if inspect.iscoroutinefunction(function):
            return asyncio.run(function(**arguments))
        return function(**arguments)


def _traceback(call: calls.Call, error: BaseException) -> str:
    try:
        return _unicode(traceback_of(error, calls.found(call.place)))
    except (ImportError, AttributeError):  # there is no function to look into
        return ""


def _unicode(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


class _Pipes:
    """The pipes to the server."""

    def __init__(self) -> None:
        self.calls, self._answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        # Functions may read and print, but not in the middle of messages.
        self._null = os.open(os.devnull, os.O_RDWR)
        os.dup2(self._null, 0)
        os.dup2(2, 1)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.close)

    def close(self) -> None:
        """Close the pipes in a fork of this process: else they would stay open when this one has ended."""
        for file in (self.calls, self._answers):
            os.dup2(self._null, file.fileno())

    def write(self, message: bytes) -> None:
        self._answers.write(message + b"\n")
        self._answers.flush()


class _PipeVoice:
    """Threads of a function may use it side by side, and may outlive the call: then nothing is sent, as another call
    has the pipes."""

    def __init__(self, pipes: _Pipes) -> None:
        self._pipes = pipes
        self._lock = threading.Lock()
        self._is_over = False

    def report(self, report: calls.Report) -> None:
        with self._lock:
            if not self._is_over:
                self._pipes.write(calls.encode(report))

    def ask(self, report: calls.Report) -> None:
        with self._lock:
            if self._is_over:
                message = "the attempt has ended: its checkpoint was not stored"
                raise BlockError(message, code="attempt_over")
            self._pipes.write(calls.encode(report))
            answer = self._pipes.calls.readline()
        if not answer:
            raise ConnectionError("the server has ended")
        failure = msgspec.json.decode(answer, type=calls.Failure | None)
        if failure is not None:
            raise calls.error_of(failure)

    def end(self, answer: bytes) -> None:
        with self._lock:
            self._is_over = True
            self._pipes.write(answer)


def main() -> None:
    """Carry out the calls on standard input, one after the other, until it ends. Argument 2 is for `spawn.prepare`:
    the main module of the server, whose functions can be called."""
    from multiprocessing import spawn

    is_child.set()
    end_with_parent()
    pipes = _Pipes()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is that of the interpreter
    spawn.prepare(json.loads(sys.argv[2]))
    pipes.write(calls.encode(calls.Answer()))
    while call := pipes.calls.readline():
        voice = _PipeVoice(pipes)
        # The server is notified before the function or its module is touched: else it would be in doubt about the call
        # of a lost child.
        voice.report(calls.Report("begun"))
        voice.end(carry_out(call, voice))
