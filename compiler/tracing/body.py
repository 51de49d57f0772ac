"""The way from steps and workflows to the durable function whose code calls them. `executor/blocks/durable` has the
other end."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn, Protocol


class Blocks(Protocol):
    """Blocks that the code awaits."""

    def call(self, type: str, params: Mapping[str, Any], returns: Any) -> Coroutine[Any, Any, Any]: ...

    def agent(
        self, params: Mapping[str, Any], tools: Sequence[Any], output: Any, path: Sequence[str]
    ) -> Coroutine[Any, Any, Any]: ...


class Body(Protocol):
    """The code of a durable function while it runs. All that it returns is to be awaited."""

    def step(self, step: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Coroutine[Any, Any, Any]: ...

    def call(self, workflow: Any, input: Any) -> Coroutine[Any, Any, Any]: ...

    @property
    def blocks(self) -> Blocks: ...

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]: ...

    def approve(self, params: Mapping[str, Any], fields: Any) -> Coroutine[Any, Any, Any]: ...

    def next_ask(self, update: Any) -> Coroutine[Any, Any, Any]: ...

    def answer(self, update: str, id: str, answer: Any, refused: str | None) -> Coroutine[Any, Any, None]: ...

    def continue_as_new(self, input: Any) -> Coroutine[Any, Any, NoReturn]: ...


running: ContextVar[Body | None] = ContextVar("weft_durable", default=None)


def present_body() -> Body | None:
    """Return the durable function whose code calls this; None elsewhere, also in its steps."""
    return running.get()
