"""Reading a request: its query and its body, each by the struct that describes it in OpenAPI."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Protocol, TypeVar, get_args
from urllib.parse import parse_qsl

import msgspec
import orjson
from msgspec import Struct, inspect
from starlette.requests import ClientDisconnect, Request
from starlette.types import Scope

from compiler.wording import of_field
from executor.errors import BadRequest
from server.http.errors import BodyInvalid, BodyTimeout, BodyTooLarge, MalformedBody
from server.http.response import USER_ID
from server.settings import Limits

EXCHANGE: Final = "weft.exchange"  # in the scope of a request that arrived at a server of ours: its Exchange
HEADERS: Final = "weft.headers"  # in the scope of a request: the first header of each name


class Exchange(Protocol):
    """A request and its answer without a message for each part, where nothing has to be waited for."""

    def body(self) -> bytes | None:
        """Take the body. Returns None if it has not arrived as a whole."""

    def send(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes | memoryview) -> bool:
        """Send a whole answer. Returns False, with nothing sent, if it has to be sent in messages."""


def headers_of(scope: Scope) -> Mapping[bytes, bytes]:
    found: Mapping[bytes, bytes] | None = scope.get(HEADERS)
    if found is None:
        found = scope[HEADERS] = dict(reversed(scope["headers"]))
    return found


def header(scope: Scope, name: bytes) -> str | None:
    """Return the first header of this name."""
    value = headers_of(scope).get(name)
    return None if value is None else value.decode("latin-1")


Query = TypeVar("Query", bound=Struct)
INTEGER_MAX = 2**53  # the largest whole number that every JSON reader can represent
FLAGS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class Parameter(Struct, frozen=True):
    """One field of a query struct. `parse` raises BadRequest. `schema` is JSON Schema without the description."""

    field: str
    name: str
    required: bool
    description: str
    schema: dict[str, Any]
    hint: str  # for a required parameter that is missing
    parse: Callable[[str], Any]


def query_of(scope: Scope) -> Mapping[str, str]:
    """Return the parameters of the query, the last of each name."""
    sent = scope["query_string"]
    return dict(parse_qsl(sent.decode("latin-1"), keep_blank_values=True)) if sent else {}


def read_query(query: Mapping[str, str], type: type[Query]) -> Query:
    """The query as `type`. An empty parameter counts as absent, an unknown one is ignored. Raises BadRequest (400)."""
    found: dict[str, Any] = {}
    for parameter in parameters_of(type):
        if text := query.get(parameter.name):
            found[parameter.field] = parameter.parse(text)
        elif parameter.required:
            raise BadRequest(f"The query parameter {parameter.name} is missing.", hint=parameter.hint)
    return type(**found)


@cache
def parameters_of(type: type[Struct]) -> tuple[Parameter, ...]:
    """In the order of the fields. Raises TypeError for a field that a query cannot hold."""
    info = inspect.type_info(type)
    assert isinstance(info, inspect.StructType)
    written = (field.type for field in msgspec.structs.fields(type))
    return tuple(_parameter(field, one) for field, one in zip(info.fields, written, strict=True))


def _parameter(field: inspect.Field, written: Any) -> Parameter:
    type = field.type
    described: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    while isinstance(type, (inspect.Metadata, inspect.UnionType)):
        if isinstance(type, inspect.Metadata):
            described |= type.extra_json_schema or {}
            extra |= type.extra or {}
            type = type.type
        else:
            (type,) = (one for one in type.types if not isinstance(one, inspect.NoneType))
    description = described.pop("description", "")
    schema, parse = _kind(field.encode_name, type, extra, written)
    if field.required and schema == {"type": "string"}:
        schema = {"type": "string", "minLength": 1}  # an empty one counts as absent
    return Parameter(
        field=field.name,
        name=field.encode_name,
        required=field.required,
        description=description,
        schema={**schema, **described},
        hint=extra.get("hint", ""),
        parse=parse,
    )


def _kind(
    name: str, type: inspect.Type, extra: Mapping[str, Any], written: Any
) -> tuple[dict[str, Any], Callable[[str], Any]]:
    match type:
        case inspect.IntType(ge=minimum, le=maximum):
            low, high = minimum or 0, INTEGER_MAX if maximum is None else maximum
            return {"type": "integer", "minimum": low, "maximum": high}, lambda text: _integer(name, text, low, high)
        case inspect.FloatType(ge=minimum):
            assert minimum == 0, "numbers in queries are lengths of time"
            cut_at = float(extra["cut_at"])
            return {"type": "number", "minimum": 0}, lambda text: _seconds(name, text, cut_at)
        case inspect.BoolType():
            return {"enum": list(FLAGS)}, lambda text: _flag(name, text)
        case inspect.LiteralType():
            allowed = _literals(written)
            return {"enum": allowed}, lambda text: _one_of(name, text, allowed)
        case inspect.StrType(pattern=str(pattern)):
            return {"type": "string", "pattern": pattern}, lambda text: _matching(name, text, pattern)
        case inspect.StrType():
            return {"type": "string"}, str
        case _:
            raise TypeError(f"the query parameter {name} cannot be of type {type}")


def _literals(written: Any) -> list[str]:
    """The texts in the order in which they are written; msgspec sorts them."""
    found = [one for part in get_args(written) for one in ([part] if isinstance(part, str) else _literals(part))]
    return list(dict.fromkeys(found))


def _matching(name: str, text: str, pattern: str) -> str:
    if re.fullmatch(pattern, text) is None:
        raise BadRequest(f"The query parameter {name} must match {pattern}")
    return text


def _integer(name: str, text: str, minimum: int, maximum: int) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 16 or not minimum <= int(text) <= maximum:
        raise BadRequest(f"The query parameter {name} must be a whole number from {minimum} to {maximum}.")
    return int(text)


def _seconds(name: str, text: str, maximum: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:  # also NaN
        raise BadRequest(f"The query parameter {name} must be a number of seconds from 0 to {maximum:g}.")
    return min(value, maximum)


def _flag(name: str, text: str) -> bool:
    value = FLAGS.get(text.lower())
    if value is None:
        raise BadRequest(f"The query parameter {name} must be 1 or 0.")
    return value


def _one_of(name: str, text: str, allowed: list[str]) -> str:
    if text not in allowed:
        raise BadRequest(f"The query parameter {name} must be one of {', '.join(allowed)}.")
    return text


T = TypeVar("T")
# Patterns in words, for errors.
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
    exchange: Exchange | None = request.scope.get(EXCHANGE)
    whole = exchange.body() if exchange is not None else None
    if whole is not None:
        _check_size(len(whole), limits)
        return whole
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.body_s):
            async for chunk in request.stream():
                size += len(chunk)
                _check_size(size, limits)
                chunks.append(chunk)
    except TimeoutError:
        raise BodyTimeout(f"The body did not arrive within {limits.body_s:g} seconds.") from None
    except ClientDisconnect:
        raise MalformedBody("The connection was closed before the body was complete.") from None
    return b"".join(chunks)


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.request_bytes:
        raise BodyTooLarge(f"The body is larger than {limits.request_bytes} bytes.", hint=SIZE_HINT)


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
    return "".join(
        "/" + part.rstrip("]").replace("~", "~0").replace("/", "~1") for part in path.replace("[", ".").split(".")[1:]
    )
