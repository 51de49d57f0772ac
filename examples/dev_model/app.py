"""The server: two wire formats, what was asked of it, and a provider of OAuth 2."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import ModuleType
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from . import anthropic, embeddings, openai
from .files import cut
from .oauth import OAuth
from .script import Answer, Asked, Failure, Player, Script

HOST: Final = "127.0.0.1"
CALLS_KEPT: Final = 1000
BODY_BYTES_MAX: Final = 20 * 1024 * 1024
_KEY_SHOWN: Final = 4
_KEYS: Final = ("authorization", "x-api-key")


def build_app(script: Script) -> Starlette:
    """`/v1/chat/completions`, `/v1/messages`, `/v1/embeddings`, `GET /calls`: the last thousand requests, and
    `/oauth/…`: a provider of tokens."""
    player = Player(script)
    calls: deque[dict[str, Any]] = deque(maxlen=CALLS_KEPT)
    numbers = itertools.count(1)

    async def listed(request: Request) -> Response:
        return JSONResponse(list(calls))

    def note(request: Request, body: Any) -> int:
        number = next(numbers)
        headers = {name: _shown(name, value) for name, value in request.headers.items()}
        calls.append({"n": number, "path": request.url.path, "headers": headers, "body": cut(body)})
        return number

    async def embedded(request: Request) -> Response:
        try:
            body = json.loads(await _body(request))
            answer = embeddings.whole(body)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return _failed(openai, Failure(400, f"this is no request: {type(error).__name__}: {error}"))
        note(request, body)
        return JSONResponse(answer)

    def speaking(format: ModuleType) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        async def reply(request: Request) -> Response:
            data = await _body(request)
            try:
                body = json.loads(data)
                asked: Asked = format.read(body)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                return _failed(format, Failure(400, f"this is no request: {type(error).__name__}: {error}"))
            answer = player.answer(asked)
            number = note(request, body)
            if isinstance(answer, Failure):
                return _failed(format, answer)
            if asked.stream:
                pieces = _paced(format.pieces(asked, answer, number), answer)
                return StreamingResponse(pieces, media_type="text/event-stream")
            if answer.rule.pause_ms:
                await asyncio.sleep(answer.rule.pause_ms / 1000)
            return JSONResponse(format.whole(asked, answer, number))

        return reply

    return Starlette(
        routes=[
            Route("/calls", listed),
            *OAuth().routes(),
            *(Route(path, embedded, methods=["POST"]) for path in embeddings.PATHS),
            *(Route(path, speaking(openai), methods=["POST"]) for path in openai.PATHS),
            *(Route(path, speaking(anthropic), methods=["POST"]) for path in anthropic.PATHS),
        ]
    )


def build_server(script: Script) -> uvicorn.Server:
    """Not started yet; the caller brings the socket, on HOST."""
    config = uvicorn.Config(
        build_app(script),
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,  # a slow reply, written to its end, would hold up a stop for minutes
    )
    return uvicorn.Server(config)


async def _body(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > BODY_BYTES_MAX:
            break  # cut, it is no JSON
    return bytes(data)


async def _paced(pieces: Iterator[bytes], answer: Answer) -> AsyncIterator[bytes]:
    for n, piece in enumerate(pieces):
        if n == answer.rule.cut_after:
            raise ConnectionAbortedError("the script cuts this reply")
        if answer.rule.pause_ms:
            await asyncio.sleep(answer.rule.pause_ms / 1000)
        yield piece


def _failed(format: ModuleType, failure: Failure) -> Response:
    headers = {} if failure.retry_after is None else {"Retry-After": f"{failure.retry_after:g}"}
    return JSONResponse(format.error(failure), failure.status, headers)


def _shown(name: str, value: str) -> str:
    """Only the end of a key."""
    return f"…{value[-_KEY_SHOWN:]}" if name in _KEYS else value
