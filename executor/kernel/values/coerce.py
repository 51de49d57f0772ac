"""Reading one kind of value as another: what a form, a web hook or JavaScript gives is often text where a number is
meant."""

from __future__ import annotations

import math
import re
from typing import Any, Literal

import orjson

from executor.errors import BlockError

FieldType = Literal["string", "number", "integer", "boolean", "object", "array", "any"]
FIELD_TYPES: tuple[FieldType, ...] = ("string", "number", "integer", "boolean", "object", "array", "any")

# The largest safe integer of JavaScript; beyond it a text of digits is an id, not a number.
_SAFE = 2**53 - 1
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def truthy(value: Any) -> bool:
    """JavaScript's idea of truth, on JSON values: false, null, 0 and '' are false; [] and {} are true."""
    return True if isinstance(value, (list, dict)) else bool(value)


def coerce(type: str, value: Any) -> Any:
    """Return `value` as `type` where that is plainly possible, else unchanged, for the schema to refuse."""
    if value is None:
        return None
    match type:
        case "string":
            return value if isinstance(value, str) else orjson.dumps(value).decode()
        case "number" | "integer":
            number = _number(value) if isinstance(value, str) else value
            if type == "integer" and isinstance(number, float) and number.is_integer():
                return int(number)
            return value if number is None else number
        case "boolean":
            return _boolean(value)
        case "object" | "array":
            return _parsed(value, dict if type == "object" else list)
        case _:
            return value


def literal(text: str) -> Any:
    """Return an environment value as code reads it: the text of a number, `true` or `false` is that, unless the number
    would be written in another way (`007`, `1e3`, long digit strings)."""
    if text in ("true", "false"):
        return text == "true"
    number = _number(text)
    if number is None or str(number) != text or abs(number) > _SAFE:
        return text
    return number


def to_count(value: Any, what: str = "count") -> int:
    """Return a number of rounds from a whole number, or its text. Raises BlockError(loop_count)."""
    number = _number(value) if isinstance(value, str) else value
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int):
        found = "nothing" if value is None else orjson.dumps(value).decode()[:80]
        raise BlockError(f"{what} must be a whole number, not {found}", code="loop_count", retryable=False)
    if number < 0:
        raise BlockError(f"{what} must not be negative, it is {number}", code="loop_count", retryable=False)
    return number


def _number(text: str) -> int | float | None:
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        return None
    if text.lstrip("+-").isdecimal():
        return int(text) if len(text) <= 19 else None  # longer does not fit 64 bits
    number = float(text)
    return number if math.isfinite(number) else None


def _boolean(value: Any) -> Any:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("true", "1"):
            return True
        return False if word in ("false", "0") else value
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    return value


def _parsed(value: Any, kind: type) -> Any:
    if not isinstance(value, str):
        return value
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    return parsed if isinstance(parsed, kind) else value


def to_items(value: Any) -> list[Any]:
    """Return the items of a collection: a list, an object as [key, value] pairs, or the JSON text of one, in which
    strings may be 'single-quoted'. Raises BlockError(loop_items), also for empty text."""
    if isinstance(value, str):
        value = _parse_items(value)
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return [[key, item] for key, item in value.items()]
    if value is None:
        raise _items_error("the collection is null")
    raise _items_error(f"a {_NAMES.get(type(value), 'value')} is not a collection")


_NAMES: dict[type, str] = {str: "text", bool: "boolean", int: "number", float: "number"}


def _parse_items(text: str) -> Any:
    if not text.strip():
        raise _items_error("the collection is empty text")
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return orjson.loads(_double_quoted(text))
    except orjson.JSONDecodeError as error:
        raise _items_error(f"the collection's text is not JSON ({error}): {text[:80]!r}") from error


def _double_quoted(text: str) -> str:
    """JSON with 'single-quoted' strings as JSON: quotes change only where a string begins and ends."""
    parts: list[str] = []
    quote = ""
    at = 0
    while at < len(text):
        char = text[at]
        if not quote:
            quote = char if char in "'\"" else ""
            parts.append('"' if quote else char)
        elif char == "\\" and at + 1 < len(text):
            at += 1
            parts.append("'" if text[at] == "'" else "\\" + text[at])
        elif char == quote:
            quote = ""
            parts.append('"')
        else:
            parts.append('\\"' if char == '"' else char)
        at += 1
    return "".join(parts)


def _items_error(message: str) -> BlockError:
    return BlockError(
        message,
        code="loop_items",
        retryable=False,
        hint="Use a list, an object, JSON text of one, or a reference to one.",
    )
