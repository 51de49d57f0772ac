"""Reading a request body: bounded in bytes and time while it streams in, then JSON, then the shape the route expects.

Nothing is parsed before its size is known to be within the bound. JSON deeper than `json_depth` is refused, because
later walks over it (rendering, schema checks) recurse."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import msgspec
import orjson
from starlette.requests import ClientDisconnect, Request

from server.errors import BodyInvalid, BodyTimeout, BodyTooLarge, MalformedBody
from server.settings import Limits

T = TypeVar("T")
JSON_HINT = "Send one JSON value in UTF-8: no NaN or Infinity, no halves of surrogate pairs."
SIZE_HINT = "Put large data where a block can fetch it, and send its address."
SHAPE_HINT = "GET /openapi.json has the shape of every body."


async def read_bytes(request: Request, limits: Limits) -> bytes:
    """The whole body. Raises BodyTooLarge as soon as the bound is passed, BodyTimeout when it trickles."""
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.body_s):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limits.request_bytes:
                    raise BodyTooLarge(f"The body is larger than {limits.request_bytes} bytes.", hint=SIZE_HINT)
                chunks.append(chunk)
    except TimeoutError:
        raise BodyTimeout(f"The body did not arrive within {limits.body_s:g} seconds.") from None
    except ClientDisconnect:
        raise MalformedBody("The connection ended before the body did.") from None
    return b"".join(chunks)


async def read_json(request: Request, limits: Limits) -> Any:
    """The body as JSON, or None when it is empty. Raises MalformedBody (400)."""
    data = await read_bytes(request, limits)
    return parse_json(data, limits) if data.strip() else None


async def read_as(request: Request, limits: Limits, type: type[T]) -> T:
    """The body as `type`; an empty body counts as `{}`. Raises BodyInvalid (422) with the pointer of the first wrong
    member."""
    data = await read_bytes(request, limits)
    return convert(parse_json(data, limits) if data.strip() else {}, type)


def parse_json(data: bytes, limits: Limits) -> Any:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise MalformedBody(f"The body is not JSON: {error}", pointer="", hint=JSON_HINT) from None
    # Fewer brackets than the bound can not nest deeper than the bound: most bodies need no walk.
    if data.count(b"{") + data.count(b"[") > limits.json_depth and _too_deep(value, limits.json_depth):
        message = f"The JSON is nested deeper than {limits.json_depth} levels."
        raise MalformedBody(message, code="json_too_deep", pointer="", hint="Send it flatter.")
    return value


def convert(value: Any, type: type[T]) -> T:
    try:
        return msgspec.convert(value, type)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        raise BodyInvalid(message, pointer=_pointer(path.rstrip("`")), hint=SHAPE_HINT) from None


def _too_deep(value: Any, depth_max: int) -> bool:
    """Level by level instead of recursion; each container is visited once."""
    level = [value]
    for _ in range(depth_max):
        level = [child for container in level for child in _children(container)]
        if not level:
            return False
    return True


def _children(container: Any) -> list[Any]:
    values = container.values() if isinstance(container, dict) else container if isinstance(container, list) else ()
    return [child for child in values if isinstance(child, (dict, list))]


def _pointer(path: str) -> str:
    """msgspec's `.a.b[0]` as a JSON pointer."""
    return "".join(
        "/" + part.rstrip("]").replace("~", "~0").replace("/", "~1") for part in path.replace("[", ".").split(".")[1:]
    )
