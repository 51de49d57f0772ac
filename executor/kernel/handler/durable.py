"""The calls that the code of a durable function makes. See `executor/kernel/run/durable.py`."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextvars import ContextVar
from typing import Any, NoReturn, Protocol

from executor.errors import BlockError
from executor.kernel.core.events import StepEffect, StepKind, StepOnLost


class Work(Protocol):
    """The work of a step, by its number. `again_ms` returns when it begins again after its failure number `times`, or
    None if that is its end. `output_schema`: of what it returns, None for anything."""

    @property
    def output_schema(self) -> Mapping[str, Any] | None: ...

    def run(self, n: int) -> Awaitable[Any]: ...

    def again_ms(self, n: int, times: int, error: BaseException) -> int | None: ...


group: ContextVar[str] = ContextVar("weft_group", default="")  # in which the code makes its calls


class ContinueAsNew(Exception):
    """The code has ended its run, which another with this `input` continues."""

    def __init__(self, input: Any) -> None:
        self.input = input


EndChild = Callable[[str], Awaitable[None]]  # gets the run


class DurableCalls(Protocol):
    """They have their numbers in the order in which they are made. Each returns a future of the lane, for the code
    alone to await. `now_ms`: the time of the last arrival. `seed`: the same in each entry. `by`: who started the run.
    `replaying`: the code does what it did before. `turns`: the number of ends that the code has received; while it is
    the same, nothing begins."""

    body: Any  # for the handler: the same in each attempt that continues in a lane

    @property
    def now_ms(self) -> int: ...

    @property
    def turns(self) -> int: ...

    @property
    def seed(self) -> str: ...

    @property
    def by(self) -> str | None: ...

    @property
    def replaying(self) -> bool: ...

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

    def wait(self, name: str, suspend: Callable[[], Awaitable[Any]], box: str | None = None) -> Future[Any]:
        """`box`: waits with the same one wait for the same. An answer to one that the code has dropped before it
        arrived goes to the next of them."""
        ...

    def opened(self, wait: Future[Any], end: EndChild | None = None) -> Future[Any]:
        """Record that `wait` is open. Returns its id (`wait`), and the `child` run. With `end`, do that to the child
        run, at least once, and return nothing."""
        ...

    def mask(self, text: str, name: str) -> None:
        """Compare and show inputs of calls with `name` in place of `text`, which other entries may have otherwise."""

    def sleep(self, due_ms: int) -> Future[Any]: ...

    def patched(self, name: str) -> bool: ...

    def refuse(self, error: BlockError) -> BaseException:
        """Return what the code cannot catch: the entry ends with `error`."""

    def publish(self, state: Any) -> None:
        """Record this JSON value as the state. Raises BlockError: it is too large."""

    def answer(self, name: str, update: str, answer: Any, refused: str | None) -> Future[Any]: ...

    def continue_as_new(self, input: Any) -> NoReturn:
        """End the code: `run` raises ContinueAsNew."""
        ...

    async def enter_shield(self) -> None:
        """Begin a part of the code during which a cancel waits."""

    def leave_shield(self) -> None: ...

    async def run(self, main: Callable[[], Coroutine[Any, Any, Any]]) -> Any: ...
