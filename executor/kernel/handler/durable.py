"""The calls that the code of a durable function makes. See `executor/kernel/run/durable.py`."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import Any, Protocol

from executor.errors import BlockError
from executor.kernel.core.events import StepEffect, StepKind, StepOnLost


class Work(Protocol):
    """The work of a step, by its number. `again_ms` returns when it begins again after its failure number `times`, or
    None if that is its end."""

    def run(self, n: int) -> Awaitable[Any]: ...

    def again_ms(self, n: int, times: int, error: BaseException) -> int | None: ...


group: ContextVar[str] = ContextVar("weft_group", default="")  # in which the code makes its calls


class DurableCalls(Protocol):
    """They have their numbers in the order in which they are made. Each returns a future of the lane, for the code
    alone to await. `now_ms`: the time of the last arrival. `seed`: the same in each entry."""

    @property
    def now_ms(self) -> int: ...

    @property
    def seed(self) -> str: ...

    def step(
        self,
        name: str,
        input: Any,
        work: Work,
        effect: StepEffect,
        on_lost: StepOnLost = "",
        *,
        kind: StepKind = "step",
    ) -> Future[Any]: ...

    def wait(self, name: str, suspend: Callable[[], Awaitable[Any]]) -> Future[Any]: ...

    def sleep(self, due_ms: int) -> Future[Any]: ...

    def patched(self, name: str) -> bool: ...

    def refuse(self, error: BlockError) -> BaseException:
        """Return what the code cannot catch: the entry ends with `error`."""

    async def enter_shield(self) -> None:
        """Begin a part of the code during which a cancel waits."""

    def leave_shield(self) -> None: ...

    async def run(self, main: Callable[[], Coroutine[Any, Any, Any]]) -> Any: ...
