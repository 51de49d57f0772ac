"""One call of the HTTP API as a value, and how a class gets a method that makes it.

The topics describe each call once. The class that a method is read from sends it: on a blocking client it returns the
answer, on an asynchronous client a coroutine, and type checkers see which.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from inspect import signature
from types import MethodType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeVar, overload
from urllib.parse import quote

from msgspec import Struct

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
UPLOAD = "/api/files"  # a file that no run has is deleted by itself
# Arguments whose names in the API Python or `format()` has.
_NAMES = {"first": "from", "form": "format", "start": "from"}
ANSWER_S = 60.0  # for an answer that the server sends at once


class Call(Struct, Generic[T_co], frozen=True):
    """One call. `path` is that of the route table, with `{names}`, and `parts` are their values.

    rev       sent as If-Match: the revision to change
    key       sent as Idempotency-Key: calls with the same key have one effect
    again     whether to send it again after a temporary refusal; False for calls that ask for the refusal
    wait_s    how long the server may take on purpose
    reads     the form of the answer: a JSON object, any JSON, or text
    """

    method: str
    path: str
    parts: tuple[str, ...] = ()
    params: Mapping[str, Any] = {}
    body: Any = None
    key: str | None = None
    rev: int | None = None
    again: bool = True
    wait_s: float = 0.0
    reads: Literal["object", "value", "text"] = "object"

    @property
    def url(self) -> str:
        """The path that is sent: ids and names may hold anything."""
        pieces = iter(self.parts)
        return "/".join(
            quote(next(pieces), safe="") if piece.startswith("{") else piece for piece in self.path.split("/")
        )

    @property
    def is_safe(self) -> bool:
        """True if sending it twice has the effect of sending it once."""
        return self.method in ("GET", "PUT") or self.key is not None or self.path == UPLOAD


class HasDocument(Protocol):
    """A workflow in Python: a durable or drawn function, or one of the builder."""

    def document(self) -> Any: ...


Document = Mapping[str, Any] | HasDocument


def document_of(workflow: Document) -> Any:
    return workflow if isinstance(workflow, Mapping) else workflow.document()


class Blocking(Protocol):
    """A client whose methods return answers."""

    def _blocking(self, call: Call[T]) -> T: ...


class Awaiting(Protocol):
    """A client whose methods return coroutines."""

    async def _awaiting(self, call: Call[T]) -> T: ...


class call(Generic[P, T]):
    """Makes a method out of a function that describes its call."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self.describe = describe

    @overload
    def __get__(self, client: None, owner: Any = None) -> Callable[Concatenate[Any, P], Call[T]]: ...
    @overload
    def __get__(self, client: Blocking, owner: Any = None) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Awaiting, owner: Any = None) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Any, owner: Any = None) -> Any:
        if client is None:  # read from the class: the description itself
            return self.describe
        describe = MethodType(self.describe, client)
        if hasattr(client, "_blocking"):

            @wraps(describe)
            def blocking(*args: P.args, **kwargs: P.kwargs) -> Any:
                return client._blocking(describe(*args, **kwargs))

            return blocking

        @wraps(describe)
        async def awaiting(*args: P.args, **kwargs: P.kwargs) -> Any:
            return await client._awaiting(describe(*args, **kwargs))

        return awaiting


def route(
    method: str, path: str, *, again: bool = True, reads: Literal["object", "value", "text"] = "object"
) -> Callable[[Callable[Concatenate[Any, P], Call[T]]], call[P, T]]:
    """Make a method out of a signature. The first arguments are the names in the path; the others are sent in the query
    of a GET or DELETE, else in the body, without those that are None. `spec` is the whole body, `rev` and
    `idempotency_key` are headers."""

    def of(function: Callable[Concatenate[Any, P], Call[T]]) -> call[P, T]:
        @wraps(function)
        def describe(client: Any, /, *args: P.args, **kwargs: P.kwargs) -> Call[T]:
            bound = signature(function).bind(client, *args, **kwargs)
            bound.apply_defaults()
            given = dict(list(bound.arguments.items())[1:])
            parts = tuple(given.pop(name) for name in list(given)[: path.count("{")])
            key = (given.pop("idempotency_key") or new_key()) if "idempotency_key" in given else None
            rev = given.pop("rev", None)
            sent = {_NAMES.get(name, name): _plain(value) for name, value in given.items() if value is not None}
            if method in ("GET", "DELETE"):
                return Call(method, path, parts, sent, key=key, rev=rev, again=again, reads=reads)
            return Call(method, path, parts, body=sent.get("spec", sent) if given else None, key=key, rev=rev)

        return call(describe)

    return of


def _plain(value: Any) -> Any:
    """Return an argument as JSON has it: any mapping is an object, any sequence a list."""
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else value


def present(**values: Any) -> dict[str, Any]:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def new_key() -> str:
    """An idempotency key that no other call has."""
    return uuid.uuid4().hex
