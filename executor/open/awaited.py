"""Shortcuts of the engine as coroutines whose errors end in the caller's line."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from compiler.diagnostics import CompileError
from executor.errors import (
    BadRequest,
    Conflict,
    LimitExceeded,
    NotFound,
    StoreError,
)

# Errors of the caller, and of a database that is closed or not there.
OF_CALLERS: Final = (BadRequest, CompileError, Conflict, LimitExceeded, NotFound, StoreError)


P = ParamSpec("P")


R = TypeVar("R")


def awaited(method: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return the `async def` as a shortcut of the engine. Errors of the caller end in the caller's line, without the
    frames of weft; using the result without `await` raises an error that explains it."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        return _Awaited(method(*args, **kwargs))

    return call


class _Awaited(Coroutine[Any, Any, R]):
    __slots__ = ("_coroutine", "_driven")

    def __init__(self, coroutine: Coroutine[Any, Any, R]) -> None:
        self._coroutine = coroutine
        self._driven: Generator[Any, Any, R] | None = None

    def __await__(self) -> Generator[Any, Any, R]:
        try:
            return (yield from self._coroutine.__await__())
        except OF_CALLERS as error:
            raise error.with_traceback(None)  # noqa: B904 - it is the same error

    def send(self, value: Any) -> Any:
        self._driven = self._driven or self.__await__()
        return self._driven.send(value)

    def throw(self, *error: Any) -> Any:
        self._driven = self._driven or self.__await__()
        return self._driven.throw(*error)

    def close(self) -> None:
        if self._driven is not None:
            self._driven.close()
        self._coroutine.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("cr_", "__")):  # for the repr of tasks, and debuggers
            return getattr(self._coroutine, name)
        call = str(getattr(self._coroutine, "__qualname__", "")).rpartition(".")[2]
        raise AttributeError(f"the result of engine.{call}() is not here yet: put `await` in front of the call")
