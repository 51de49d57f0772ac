"""Methods of a store, made of functions of the topics: each that writes gets a transaction from the writer, each that
reads the readers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from executor.kernel.process.acting import present_act
from executor.kernel.store.statements import Readers, Tx
from executor.kernel.store.topics import audit
from executor.kernel.store.topics.audit import has_changed

P = ParamSpec("P")
T = TypeVar("T")


class Writer(Protocol):
    def submit(
        self, write: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[T]:
        """Have it committed. The future holds what `write` returned, once that is on disk."""


class Backed:
    """The writer and the readers of a store."""

    _writer: Writer
    _readers: Readers


def write(change: Callable[Concatenate[Tx, P], T]) -> Callable[Concatenate[Backed, P], Coroutine[Any, Any, T]]:
    """Return the method that has `change` committed, with its parameters except the transaction."""
    return _method(change, is_audited=False)


def audited(change: Callable[Concatenate[Tx, P], T]) -> Callable[Concatenate[Backed, P], Coroutine[Any, Any, T]]:
    """As `write`; what is done for a person or a program (`acting`) is recorded in the same transaction."""
    return _method(change, is_audited=True)


def _method(
    change: Callable[Concatenate[Tx, P], T], is_audited: bool
) -> Callable[Concatenate[Backed, P], Coroutine[Any, Any, T]]:
    signature = inspect.signature(change)
    assert all(each.kind is each.POSITIONAL_OR_KEYWORD for each in signature.parameters.values()), change

    async def method(store: Backed, /, *args: P.args, **kwargs: P.kwargs) -> T:
        act = present_act() if is_audited else None
        if act is None and not kwargs:
            return await store._writer.submit(change, *args, **kwargs)
        bound = signature.bind(None, *args, **kwargs)  # the writer is handed positional arguments only
        bound.apply_defaults()
        if act is not None:
            result = await store._writer.submit(audit.audited, act, change, bound.args[1:])
            act.is_recorded = has_changed(result)
            return result
        return await store._writer.submit(change, *bound.args[1:])  # type: ignore[call-arg]  # bound against its signature

    method.__name__ = method.__qualname__ = change.__name__
    return method


def read(
    query: Callable[Concatenate[Readers, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Backed, P], Coroutine[Any, Any, T]]:
    """Return the method that runs `query`, with its parameters except the readers."""

    def method(store: Backed, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        return query(store._readers, *args, **kwargs)

    method.__name__ = method.__qualname__ = query.__name__
    return method
