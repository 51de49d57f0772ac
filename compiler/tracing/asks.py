"""Requests to an open run of a durable function: queries of the state that it published, and updates, which its code
answers.

    @order.query
    def eta(state: Progress, unit: str = "hours") -> float: ...

    @order.update
    def add(item: Item) -> int: ...

A query is computed from the published state, and the run is not entered. An update is a signal with an answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, Generic, ParamSpec, TypeVar

from msgspec.structs import replace

from compiler.builder.errors import DefinitionError
from compiler.signature import (
    Signature,
    SignatureUnusable,
    TypeUnknown,
    Unfit,
    read,
    schema_of,
    signature_of,
    write,
)
from compiler.tracing.body import present_body

P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)  # of who asks: the answer may be taken for more than it is

SIGNAL: Final = "weft:update:"  # the signal of an update is this and its name


class Query(Generic[P, R_co]):
    """`durable`: the name of its durable function in documents. `state`: the type of the published state."""

    def __init__(self, function: Callable[..., R_co], durable: str) -> None:
        self.name, self.durable, self.function = function.__name__, durable, function
        whole = _signature(function)
        if inspect.iscoroutinefunction(function) or not whole.parameters:
            message = f"{self.name} is a query: a plain `def` whose first parameter is the published state."
            raise DefinitionError(message, _defined(function))
        self.state = whole.parameters[0].type
        self.signature = replace(whole, parameters=whole.parameters[1:])

    def given(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """Return the arguments as JSON. Raises TypeError."""
        bound = inspect.signature(self.function).bind(None, *args, **kwargs).arguments
        return {
            one.name: _written(self.name, bound[one.name]) for one in self.signature.parameters if one.name in bound
        }

    def read(self, answer: Any) -> R_co:
        value: R_co = _read(self.name, self.signature.returns, answer)
        return value


class Update(Generic[A, R_co]):
    """An update of a durable function. `type`: of its value, None if it has none."""

    def __init__(self, function: Callable[..., R_co], durable: str) -> None:
        self.name, self.durable = function.__name__, durable
        self.signature = _signature(function)
        if len(self.signature.parameters) > 1:
            message = f"{self.name} has {len(self.signature.parameters)} parameters, and an update has at most one"
            raise DefinitionError(f"{message}: use a dataclass.", _defined(function))
        self.type = self.signature.parameters[0].type if self.signature.parameters else None

    async def next(self) -> Ask[A, R_co]:
        """Wait for the next request of this update, in the durable function. Those that came before are kept."""
        body = present_body()
        if body is None:
            message = f"{self.name}.next() works in its durable function: programs use engine.update(run, {self.name})"
            raise RuntimeError(message)
        ask: Ask[A, R_co] = await body.next_ask(self)
        return ask

    def given(self, value: Any = None) -> Any:
        """Return the value as JSON. Raises TypeError."""
        return _written(self.name, value)

    def taken(self, value: Any) -> A:
        """Return the value of a request from JSON. Raises Unfit."""
        taken: A = read(self.type, value)
        return taken

    def answered(self, answer: Any) -> Any:
        """Return an answer as JSON. Raises TypeError: it is not of the type that the update returns."""
        written = _written(self.name, answer)
        _read(self.name, self.signature.returns, written)
        return written

    def read(self, answer: Any) -> R_co:
        value: R_co = _read(self.name, self.signature.returns, answer)
        return value


class Ask(Generic[A, R]):
    """A request of an update, which the durable function answers or refuses once. `by`: who made it, if that is
    known."""

    __slots__ = ("_answered", "by", "id", "update", "value")

    def __init__(self, update: Update[A, R], id: str, value: A, by: str | None = None) -> None:
        self.update = update
        self.id = id
        self.value = value
        self.by = by
        self._answered = False

    async def answer(self, answer: R) -> None:
        """Answer it: on disk when this returns."""
        await self._end(self.update.answered(answer), None)

    async def refuse(self, reason: str) -> None:
        """Refuse it: the caller gets `weft.Refused` with this reason."""
        await self._end(None, reason)

    async def _end(self, answer: Any, refused: str | None) -> None:
        body = present_body()
        if body is None or self._answered:
            raise RuntimeError(f"request {self.id} of {self.update.name} is answered once, in its durable function")
        self._answered = True
        await body.answer(self.update.name, self.id, answer, refused)


def _signature(function: Callable[..., Any]) -> Signature:
    try:
        found = signature_of(function)
        if found.returns not in (None, Any):
            schema_of(found.returns)
        return found
    except (SignatureUnusable, TypeUnknown) as error:
        raise DefinitionError(f"{error}.", _defined(function)) from None


def _written(what: str, value: Any) -> Any:
    try:
        return write(value)
    except Unfit as error:
        raise TypeError(f"{what}: it is {error.message}") from None


def _read(what: str, type: Any, value: Any) -> Any:
    try:
        return value if type is None else read(type, value)
    except Unfit as error:
        raise TypeError(f"{what}: the answer does not fit its type: {error.message}") from None


def _defined(function: Callable[..., Any]) -> tuple[str, int]:
    code = inspect.unwrap(function).__code__
    return code.co_filename, code.co_firstlineno
