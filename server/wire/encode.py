"""JSON of responses. Stored JSON (outputs, inputs, event data) is spliced in as the bytes it was stored as
(`orjson.Fragment`) and never parsed on the way."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import orjson
from msgspec import UNSET, Meta, Struct

AnyJson = Annotated[Any, Meta(description="Any JSON.")]


def fragment(data: bytes | None) -> Any:
    """Stored JSON, spliced in as it is; None becomes null."""
    return None if data is None else orjson.Fragment(data)


def to_json(value: Any) -> bytes:
    """JSON of structs, fragments and plain values together."""
    return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)


def beginning(data: bytes, length: int) -> str:
    """The first `length` characters of JSON bytes; with `...` behind them when there are more."""
    text = data[: 4 * (length + 1)].decode(errors="ignore")  # no character takes more than four bytes
    return text if len(text) <= length else text[:length] + "..."


def _plain(value: Any) -> Any:
    """One level of a struct: large values in it are encoded where they are, not copied first."""
    if isinstance(value, Struct):
        config = value.__struct_config__
        if not config.omit_defaults and config.tag is None and not config.array_like:
            names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
            members = ((name, getattr(value, field)) for name, field in names)
            return {name: member for name, member in members if member is not UNSET}
    return msgspec.to_builtins(value, builtin_types=(orjson.Fragment,))
