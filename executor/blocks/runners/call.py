"""The messages to another process and back: the name of a function and JSON, and the listener to them during the
call."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Literal, Protocol

import msgspec
from msgspec import Raw, Struct

from executor.errors import BlockError, Fenced

FENCED = "fenced"


class Call(Struct, frozen=True, omit_defaults=True):
    """One attempt. `place` is `module:name`; `function` its name in documents; `arguments` a JSON object. `context`:
    the function has a parameter of this name, for the fields below."""

    place: str
    function: str
    arguments: Raw
    idempotency_key: str
    attempt: int
    context: str | None = None
    run_id: str = ""
    workflow: str = ""
    key: str = ""
    block: str = ""
    name: str = ""
    type: str = ""
    now_ms: int = 0
    last_checkpoint: Any = None


# The fields of a Call that describe the attempt, as its context has them.
ATTEMPT: Final = (
    "run_id", "workflow", "key", "block", "name", "type", "attempt", "idempotency_key", "now_ms", "last_checkpoint"
)  # fmt: skip


class Failure(Struct, frozen=True, omit_defaults=True):
    code: str
    message: str
    retryable: bool = False
    hint: str = ""
    traceback: str = ""


class Answer(Struct, frozen=True, omit_defaults=True, tag=True):
    """The result of a function, as JSON, or its failure. A child process writes an empty one when it is ready."""

    output: Raw = Raw(b"null")
    failure: Failure | None = None


class Report(Struct, frozen=True, omit_defaults=True, tag=True):
    """A message before the answer. `begun`: the function is about to be called; `value` is a text for log and emit. A
    checkpoint is answered with a Failure or null, when the value is on disk."""

    kind: Literal["begun", "log", "emit", "checkpoint"]
    value: Any = None


class Listener(Protocol):
    """The attempt, as a runner sees it: the methods of `executor.kernel.handler.base.StepContext` with these names."""

    @property
    def log(self) -> Callable[..., None]: ...

    @property
    def emit(self) -> Callable[[str], None]: ...

    @property
    def checkpoint(self) -> Callable[[Any], Awaitable[None]]: ...

    @property
    def waiting(self) -> Callable[[], AbstractContextManager[Any]]: ...


class Runner(Protocol):
    async def call(self, call: Call, listener: Listener) -> Any:
        """Call the function and return its result. Raises the function's BlockError or Fenced; Lost if it is unknown
        how far it got; and a deferred BlockError if the function was not called."""
        ...

    async def close(self) -> None: ...


encode = msgspec.json.encode
decode_call = msgspec.json.Decoder(Call).decode
decode_message = msgspec.json.Decoder(Report | Answer).decode
decode_answer = msgspec.json.Decoder(Answer).decode


def result_of(answer: Answer) -> Any:
    if answer.failure is None:
        return msgspec.json.decode(answer.output)
    raise error_of(answer.failure)


def error_of(failure: Failure) -> BlockError | Fenced:
    if failure.code == FENCED:
        return Fenced(failure.message)
    return BlockError(
        failure.message,
        code=failure.code,
        retryable=failure.retryable,
        hint=failure.hint,
        traceback=failure.traceback,
    )


def failure_of(error: BlockError | Fenced) -> Failure:
    if isinstance(error, Fenced):
        return Failure(FENCED, error.message)
    return Failure(error.code, error.message, error.retryable, error.hint, error.traceback)


def not_called(message: str) -> BlockError:
    """Return an error for what was lost and did not call the function: it is called again, at no cost."""
    return BlockError(f"{message} before the function was called", code="runner_unavailable", deferred="not_begun")


def place_of(function: Callable[..., Any]) -> str:
    """Return the `module:name` by which another process finds the function. Raises BlockError(runner_unfit)."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module and name:
        try:
            if found(f"{module}:{name}") is function:
                return f"{module}:{name}"
        except (ImportError, AttributeError):
            pass
    shown = name or type(function).__name__
    raise BlockError(
        f"{shown} cannot run in another process: it cannot be imported by a name",
        code="runner_unfit",
        retryable=False,
        hint="define it with `def` at the top level of a module, or remove policy.runner",
    )


def found(place: str) -> Any:
    module, _, path = place.partition(":")
    value: Any = importlib.import_module(module)
    for name in path.split("."):
        value = getattr(value, name)
    return value
