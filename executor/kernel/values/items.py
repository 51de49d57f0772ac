"""The items that a loop or a parallel runs over: a list, an object, or the JSON text of one."""

from __future__ import annotations

from typing import Any

import orjson

from executor.errors import BlockError


def to_items(value: Any) -> list[Any]:
    """Return the items of a collection: a list as it is, an object as [key, value] pairs, a text as the JSON it holds
    (strings in it may be 'single-quoted'). Raises BlockError(loop_items) for everything else; empty text is an error,
    [] is not."""
    if isinstance(value, str):
        value = _parse(value)
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return [[key, item] for key, item in value.items()]
    if value is None:
        raise _error("the collection is null")
    raise _error(f"a {_NAMES.get(type(value), 'value')} is not a collection")


_NAMES: dict[type, str] = {str: "text", bool: "boolean", int: "number", float: "number"}


def _parse(text: str) -> Any:
    if not text.strip():
        raise _error("the collection is empty text")
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return orjson.loads(_double_quoted(text))
    except orjson.JSONDecodeError as error:
        raise _error(f"the collection's text is not JSON ({error}): {text[:80]!r}") from error


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


def _error(message: str) -> BlockError:
    return BlockError(
        message,
        code="loop_items",
        retryable=False,
        hint="Use a list, an object, JSON text of one, or a reference to one.",
    )
