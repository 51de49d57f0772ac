"""JSON of responses. Stored JSON (outputs, inputs, event data) is spliced in as the bytes it was stored as
(`orjson.Fragment`) and never parsed on the way."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson


def fragment(data: bytes | None) -> Any:
    return None if data is None else orjson.Fragment(data)


def to_json(value: Any) -> bytes:
    """JSON of structs, fragments and plain values together."""
    return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)


def previewed(name: str, data: bytes | None, preview: int | None) -> dict[str, Any]:
    """A stored JSON value as members of a response: `name`, `name_size` in bytes, `name_truncated`; over `preview`
    bytes the value is null and `name_preview` the beginning of its JSON."""
    size = None if data is None else len(data)
    if data is None or preview is None or len(data) <= preview:
        return {name: fragment(data), f"{name}_size": size, f"{name}_truncated": False}
    return {
        name: None,
        f"{name}_size": size,
        f"{name}_truncated": True,
        f"{name}_preview": beginning(data, preview),
    }


def beginning(data: bytes, length: int) -> str:
    """The first `length` characters of JSON bytes; with `...` behind them when there are more."""
    text = data[: 4 * (length + 1)].decode(errors="ignore")  # no character takes more than four bytes
    return text if len(text) <= length else text[:length] + "..."


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)
