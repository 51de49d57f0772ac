"""The least a Starlette server on uvicorn can do: answer a POST with what it sent, and stream bytes that it has.

`PUT /stream` takes the text of an event stream, `GET /stream` sends it in the chunks that a server which joins waiting
events would send. `GET /live` sends what comes with `POST /live`, in the same chunks, until an empty one comes.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

CHUNK_BYTES = 256 * 1024
chunks: list[bytes] = []


async def echo(request: Request) -> Response:
    return Response(orjson.dumps(orjson.loads(await request.body())), media_type="application/json")


async def load(request: Request) -> Response:
    text = await request.body()
    chunks[:] = [text[start : start + CHUNK_BYTES] for start in range(0, len(text), CHUNK_BYTES)]
    return Response()


async def stream(request: Request) -> Response:
    async def send() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return StreamingResponse(send(), media_type="text/event-stream")


class Live:
    """One chunk after the other, to all who listen."""

    def __init__(self) -> None:
        self.chunk = b""
        self.changed: asyncio.Future[None] | None = None


live = Live()


async def listen(request: Request) -> Response:
    async def send() -> AsyncIterator[bytes]:
        while True:
            if live.changed is None:
                live.changed = asyncio.get_running_loop().create_future()
            await asyncio.shield(live.changed)
            if not live.chunk:
                return
            yield live.chunk

    return StreamingResponse(send(), media_type="text/event-stream")


async def tell(request: Request) -> Response:
    live.chunk = await request.body()
    changed, live.changed = live.changed, None
    if changed is not None:
        changed.set_result(None)
    return Response()


app = Starlette(
    routes=[
        Route("/", echo, methods=["POST"]),
        Route("/stream", load, methods=["PUT"]),
        Route("/stream", stream, methods=["GET"]),
        Route("/live", tell, methods=["POST"]),
        Route("/live", listen, methods=["GET"]),
    ]
)


def main() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        print(f"ready: http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
        config = uvicorn.Config(app, http="httptools", loop="uvloop", log_level="error", access_log=False)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
