"""Waits of durable functions that are open before the code awaits them: callbacks and child runs. Each is recorded as
a wait, and a step that ends when the wait is open."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator, Mapping
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, cast, overload

from compiler.builder.step import Block
from compiler.signature import schema_of
from compiler.tracing.blocks import http
from compiler.tracing.duration import Duration, seconds_of
from compiler.tracing.trace import active
from compiler.tracing.workflow import FunctionWorkflow
from executor.blocks.durable.running import present
from executor.errors import StepFailed

P = ParamSpec("P")
T = TypeVar("T")


Send = Mapping[str, Any] | None


class callback(Generic[T]):
    """Make an address for one request of another system, and wait for it:

        async with weft.callback(type=Paid, hours=2) as paid:
            await ask_the_bank(order, paid.url)
            return (await paid).amount

    type   of the body. One that does not fit is refused, and the wait stays open
    send   the request with the address: url, and perhaps method, headers and body, as in the block `callback`. With it
           no `async with` is needed, `await weft.callback(send={"url": bank})`, and it can be drawn
    title  shown in the list of waits
    days, hours, minutes, seconds  how long to wait

    `await` raises TimeoutError. At the end of the block the address is closed."""

    @overload
    def __init__(
        self: callback[Any], *, title: str = "callback", send: Send = None, **within: Unpack[Duration]
    ) -> None: ...

    @overload
    def __init__(
        self, *, type: type[T], title: str = "callback", send: Send = None, **within: Unpack[Duration]
    ) -> None: ...

    def __init__(
        self, *, type: Any = Any, title: str = "callback", send: Send = None, **within: Unpack[Duration]
    ) -> None:
        self._type = type
        self._send = send
        self._params: dict[str, Any] = {"title": title}
        if type is not Any:
            self._params["schema"] = schema_of(type)
        if (within_s := seconds_of(within)) is not None:
            self._params["expires_in_s"] = within_s
        self._answer: asyncio.Future[Any] | None = None
        self._read: Callable[[Any], T] | None = None
        self.url = ""

    async def __aenter__(self) -> callback[T]:
        self._answer, self.url, self._read = await present("callback").callback(self._params, self._type)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._answer is not None:
            self._answer.cancel()

    def __await__(self) -> Generator[Any, None, T]:
        return self._received().__await__()

    async def _received(self) -> T:
        if self._send is not None and self._answer is None:
            return await self._sent(self._send)
        if self._answer is None or self._read is None:
            raise RuntimeError("write `async with weft.callback() as c:`, and await c inside of it")
        return self._read(await self._answer)

    async def _sent(self, send: Mapping[str, Any]) -> T:
        if (trace := active()) is not None:
            block = Block("callback", params={**self._params, "send": dict(send)})
            return cast(T, await trace.record("callback", block, path=("body",), schema=self._params.get("schema")))
        async with self:
            body = send.get("body", {})
            body = {**(body if isinstance(body, Mapping) else {"data": body}), "callback_url": self.url}
            await http(**{"method": "POST", **send, "body": body})
            return await self


class Child(Generic[T]):
    """A child run that `start` has started: `await` it for its output. `run` is its id. It is cancelled with the
    function that started it, and when that ends without it."""

    def __init__(self, run: str, answer: asyncio.Future[Any], read: Callable[[Any], T]) -> None:
        self.run = run
        self._answer = answer
        self._read = read
        self._is_cancelled = False

    def __await__(self) -> Generator[Any, None, T]:
        """Raises StepFailed."""
        return self._output().__await__()

    async def _output(self) -> T:
        if self._is_cancelled:
            raise StepFailed(f"the run {self.run} was cancelled", code="child_cancelled", retryable=False)
        return self._read(await present("start").end_of(self._answer))

    async def cancel(self) -> None:
        """Cancel the run: it gets that as soon as this function waits for something."""
        if not self._answer.done():
            self._is_cancelled = True
            self._answer.cancel()


@overload
async def start(workflow: FunctionWorkflow[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Child[T]: ...


@overload
async def start(workflow: str, input: Any = None, /) -> Child[Any]: ...


async def start(workflow: str | FunctionWorkflow[..., Any], /, *args: Any, **kwargs: Any) -> Child[Any]:
    """Start a run of another workflow, drawn or durable, and return it when it exists:
    `child = await weft.start(other, 7)`, and later `await child` for its output. A stored workflow has a name and an
    input: `weft.start("other", {"n": 7})`."""
    if isinstance(workflow, str):
        return Child(*await present("start").start(workflow, *args))
    bound = inspect.signature(workflow.function).bind(*args, **kwargs)
    return Child(*await present("start").start(workflow, bound.arguments))
