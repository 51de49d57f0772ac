"""The asynchronous client: each call is awaited.

async with AsyncClient("http://127.0.0.1:8765") as weft:
    started = await weft.start("expense-approval", {"amount": 120})
    async for event in weft.follow(started["run"]):
        print(event.seq, event.type, event.key)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Self, TypeVar, overload

import httpx

from executor.live import Live, Reading
from server.client.api import Api, Asked, address, querying, until_answered, until_standing
from server.client.call import Call, Document
from server.client.errors import ApiError, ServerUnreachable, refusal, unreachable
from server.client.exchange import PATIENCE_S, Exchange, Server
from server.client.files import Download, Upload
from server.client.stream import Event, Following

if TYPE_CHECKING:
    from server.client.answers import FileValue, RunDetail

T = TypeVar("T")


class AsyncClient(Api):
    """A client for asyncio. `url` and `token` default to WEFT_URL and WEFT_TOKEN, as for commands; the token "" is no
    token. `patience_s` is how long in all a call is retried while the server is away or refuses it for now. `transport`
    is for tests. A client belongs to one event loop."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        patience_s: float = PATIENCE_S,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url, token = address(url, token)
        self._server = Server(self.url, patience_s)
        # trust_env off: a proxy for the web must not see local traffic and its token.
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            transport=transport,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def run(
        self,
        workflow: str | Document,
        input: Any = None,
        *,
        timeout_s: float | None = None,
        trigger: str | None = None,
        version: int | None = None,
        idempotency_key: str | None = None,
    ) -> RunDetail:
        """Start a run, as `start` does, and wait for it, as `wait_for` does."""
        started = await self.start(workflow, input, trigger=trigger, version=version, idempotency_key=idempotency_key)
        return await self.wait_for(started["run"], timeout_s=timeout_s)

    async def wait_for(self, run: str, *, timeout_s: float | None = None) -> RunDetail:
        """Return the run once it has succeeded, or only an answer or a signal can move it (its `waits` have the links),
        or after `timeout_s`: `status` shows which. Raises RunFailed if it failed or was cancelled."""
        return await self._driven(until_standing(run, timeout_s))

    async def update(
        self,
        run: str,
        update: str | Asked,
        value: Any = None,
        *,
        id: str | None = None,
        by: str | None = None,
        seconds: float | None = None,
    ) -> Any:
        """Send a request to a durable function, and return its answer: `update(run, order.add, item)`, or the name of
        the update. The same `id` again is the same request. Raises ApiError 409, with the code `update_refused` or
        `run_ended`, and TimeoutError after `seconds`: the request is kept, and answered later."""
        return await self._driven(until_answered(run, update, value, id, by, seconds))

    async def query(self, query: str | Asked, run: str, /, *args: Any, **arguments: Any) -> Any:
        """Return the answer of a query, `query(order.eta, run)`, computed from the state that the run published last.
        Raises ApiError 404: there is no such query; 409: nothing was published yet."""
        return await self._driven(querying(query, run, args, arguments))

    @overload
    def follow(
        self, run: str, after: int = 0, *, text: Literal[False] = False, patience_s: float | None = None
    ) -> AsyncGenerator[Event, None]: ...

    @overload
    def follow(
        self, run: str, after: int = 0, *, text: Literal[True], patience_s: float | None = None
    ) -> AsyncGenerator[Live, None]: ...

    def follow(
        self, run: str, after: int = 0, *, text: bool = False, patience_s: float | None = None
    ) -> AsyncGenerator[Any, None]:
        """Iterate over the events after seq `after`, then live, each once and in order, until the run has ended. With
        `text` over what a program shows of it: text of models while it is written, calls of tools, and waits.

        A lost connection is resumed at the last event (Last-Event-ID). Raises ServerUnreachable after `patience_s`
        seconds without a connection, ApiError if the server refuses.
        """
        events = self._events(run, after, text, patience_s)
        return _live(events) if text else events

    async def _events(self, run: str, after: int, text: bool, patience_s: float | None) -> AsyncGenerator[Event, None]:
        following = Following(run, after, self._server.patience_s if patience_s is None else patience_s, text)
        while not following.has_ended():
            lost: ServerUnreachable | ApiError | None = None
            try:
                response = await self._http.send(following.request(self._http), stream=True)
                self._server.has_answered = True
                try:
                    if response.status_code >= 400:
                        await response.aread()
                        lost = refusal(response)
                    elif following.opened(response.status_code):
                        async for chunk in response.aiter_bytes():
                            for event in following.feed(chunk):
                                yield event
                            if following.has_ended():
                                return
                finally:
                    await response.aclose()
            except httpx.TransportError as error:
                lost = unreachable(self.url, error)
            if not following.has_ended():
                await asyncio.sleep(following.pause_s(lost))

    async def upload(
        self, source: str | Path | bytes, *, name: str | None = None, media_type: str | None = None
    ) -> FileValue:
        """Store a file, or bytes, and get the value that an input, an answer or a signal names it by. Without a name
        it has that of the file on this machine. Raises OSError, and as other calls do."""
        upload = Upload(source, name, media_type)
        stored: FileValue = await self._drive(
            self._server.exchange(lambda: upload.request(self._http, upload.pieces_async()), upload.call)
        )
        return stored

    async def download(self, file: str, target: str | Path | BinaryIO) -> int:
        """Write the file with this id to a path or an open file; how many bytes it has. After a lost connection the
        rest is asked for. Raises OSError, and as other calls do."""
        with Download(file, target, self._server) as download:
            while True:
                lost: httpx.TransportError | ApiError
                try:
                    response = await self._http.send(download.request(self._http), stream=True)
                    try:
                        if response.status_code < 400:
                            download.begin(response.status_code)
                            async for piece in response.aiter_bytes():
                                download.write(piece)
                            return download.size
                        await response.aread()
                        lost = refusal(response)
                    finally:
                        await response.aclose()
                except httpx.TransportError as error:
                    lost = error
                await asyncio.sleep(download.pause_s(lost))

    async def _driven(self, steps: Generator[Call[Any] | float, Any, T]) -> T:
        step = next(steps)
        try:
            while True:
                step = steps.send(await self._answered(step))
        except StopIteration as done:
            result: T = done.value
            return result

    async def _answered(self, step: Call[Any] | float) -> Any:
        if isinstance(step, Call):
            return await self._awaiting(step)
        await asyncio.sleep(step)
        return None

    async def _awaiting(self, call: Call[T]) -> T:
        answer: T = await self._drive(self._server.exchange(lambda: self._server.request(self._http, call), call))
        return answer

    async def _drive(self, exchange: Exchange) -> Any:
        step = next(exchange)
        try:
            while True:
                step = exchange.send(await self._sent(step))
        except StopIteration as done:
            return done.value

    async def _sent(self, step: httpx.Request | float) -> httpx.Response | httpx.TransportError | None:
        if isinstance(step, float):
            await asyncio.sleep(step)
            return None
        try:
            return await self._http.send(step)
        except httpx.TransportError as error:
            return error


async def _live(events: AsyncGenerator[Event, None]) -> AsyncGenerator[Live, None]:
    reading = Reading()
    async with aclosing(events):
        async for event in events:
            for live in reading.take(event):
                yield live
