"""Reading a request body: bounded in bytes and time while it streams in, then JSON, then the shape the route expects.

Nothing is parsed before its size is known to be within the bound. JSON deeper than `json_depth` is refused, because
later walks over it (rendering, schema checks) recurse, and so is JSON of more than `json_containers` arrays and
objects, because those walks take time for each. Both are counted in the bytes: a walk in Python would delay
all other requests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
import orjson
from starlette.requests import ClientDisconnect, Request

from compiler.wording import of_field
from server.http.errors import BodyInvalid, BodyTimeout, BodyTooLarge, MalformedBody
from server.http.shapes import USER_ID
from server.settings import Limits

T = TypeVar("T")
# What a text of a pattern is.
PATTERNS = {USER_ID: "1 to 100 lower-case letters, digits and . _ @ -, and begin with a letter or a digit"}
JSON_HINT = "Send one JSON value in UTF-8, without NaN, Infinity or unpaired surrogates."
SIZE_HINT = "For large data, send a URL from which a block can fetch it."
FORM_FIELDS_MAX = 1000
FORM_HINT = f"Send text in UTF-8, at most {FORM_FIELDS_MAX} fields."
_BRACKETS = b"[]{}"
_OTHERS = bytes(byte for byte in range(256) if byte not in _BRACKETS)
_AS_SQUARE = bytes.maketrans(b"{}", b"[]")
# Integers beyond 64 bits have 19 digits or more.
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_MANY = b"0" * 19
_LONG = re.compile(rb"(?<![0-9.eE+-])-?[0-9]{19,}(?![0-9.eE])")
_INTEGERS = range(-(2**63), 2**64)
WHOLE_S = 1_800  # for a whole file: its first part must still be there when the last one comes
SHAPE_HINT = "GET /openapi.json describes all request bodies."


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
        raise MalformedBody("The connection was closed before the body was complete.") from None
    return b"".join(chunks)


async def stream_of(request: Request, idle_s: float) -> AsyncIterator[bytes]:
    """Yield the body piece by piece. Raises BodyTimeout if nothing arrives for `idle_s`, or not all within WHOLE_S, and
    MalformedBody."""
    stream = request.stream()
    until = asyncio.get_running_loop().time() + WHOLE_S
    try:
        while True:
            try:
                left = until - asyncio.get_running_loop().time()
                async with asyncio.timeout(min(idle_s, left)):
                    chunk = await anext(stream)
            except StopAsyncIteration:
                return
            yield chunk
    except TimeoutError:
        raise BodyTimeout(f"Nothing of the body arrived for {idle_s:g} seconds, or it took too long.") from None
    except ClientDisconnect:
        raise MalformedBody("The connection was closed before the body was complete.") from None


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
    """The value, within the limits on depth and size, and of integers. Raises MalformedBody."""
    opened = data.count(b"{") + data.count(b"[")
    brackets = b""
    if opened > limits.json_depth:  # else it can be neither too deep nor too wide: most bodies need no further look
        brackets = _outside_texts(data).translate(_AS_SQUARE, _OTHERS)
        if brackets.count(b"[") > limits.json_containers:
            message = f"The JSON has more than {limits.json_containers} arrays and objects."
            raise MalformedBody(message, code="json_too_wide", pointer="", hint=SIZE_HINT)
    if _MANY in data.translate(_AS_ZEROS):
        _refuse_long_numbers(data)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise MalformedBody(f"The body is not JSON: {error}", pointer="", hint=JSON_HINT) from None
    if _deeper(brackets, limits.json_depth):
        message = f"The JSON is nested deeper than {limits.json_depth} levels."
        raise MalformedBody(message, code="json_too_deep", pointer="", hint="Reduce the nesting.")
    return value


def _refuse_long_numbers(data: bytes) -> None:
    """Raises MalformedBody: an integer beyond 64 bits, which would be read as a fraction, another number."""
    for match in _LONG.finditer(_outside_texts(data)):
        if len(match[0]) > 20 or int(match[0]) not in _INTEGERS:
            message = f"The JSON has the number {match[0][:40].decode()}, which does not fit in 64 bits."
            raise MalformedBody(message, code="number_too_large", pointer="", hint="Send it as text.")


def decode_form(data: bytes) -> dict[str, str]:
    """Return the fields of a form post; the last value of each input wins. Raises BodyInvalid (422)."""
    try:
        return dict(parse_qsl(data.decode("utf-8"), keep_blank_values=True, max_num_fields=FORM_FIELDS_MAX))
    except ValueError as error:
        raise BodyInvalid(f"The form cannot be read: {error}", pointer="", hint=FORM_HINT) from None


def convert(value: Any, type: type[T]) -> T:
    """The value as `type`. Raises BodyInvalid with a pointer to what does not fit."""
    try:
        return msgspec.convert(value, type)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        pointer = _pointer(path.rstrip("`"))
        name = pointer.removeprefix("/") or "The body"
        raise BodyInvalid(of_field(message, name, PATTERNS), pointer=pointer, hint=SHAPE_HINT) from None


def _outside_texts(data: bytes) -> bytes:
    """Return JSON without its strings. Once escapes are removed, every other quotation mark ends a string."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(data.split(b'"')[::2])


def _deeper(brackets: bytes, depth_max: int) -> bool:
    """Return whether brackets are nested deeper than `depth_max`. Each round removes the empty pairs: one level of the
    deepest nesting."""
    for _ in range(depth_max):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def _pointer(path: str) -> str:
    """msgspec's `.a.b[0]` as a JSON pointer."""
    return "".join(
        "/" + part.rstrip("]").replace("~", "~0").replace("/", "~1") for part in path.replace("[", ".").split(".")[1:]
    )
