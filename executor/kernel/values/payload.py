"""Values as bytes: what a block returned is encoded once, stored encoded, and decoded only where it is read.

Limits: a value nests at most 64 deep and takes at most 16 MiB as JSON; up to 256 KiB of it are stored beside the
record, more than that goes to a blob named by its hash.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any, Final

import orjson
from msgspec import Struct

from executor.errors import BlockError

DEPTH_MAX: Final = 64
SIZE_MAX_BYTES: Final = 16 * 1024 * 1024
INLINE_MAX_BYTES: Final = 256 * 1024

# Without these orjson writes dates and dataclasses in a form of its own: a block must choose a form instead.
_STRICT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
_SORTED = _STRICT | orjson.OPT_SORT_KEYS


class Missing:
    """The one value `MISSING`: skipped, never ran, or no such field. Text '' inside text, null as a whole value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing()


def encode(value: Any, is_sorted: bool = False) -> bytes:
    """Return compact JSON, with `is_sorted` of the same bytes for equal values. Raises BlockError(payload_invalid),
    which names the place, and BlockError(payload_too_large)."""
    data = dump(value, is_sorted)
    check(value, data)
    return data


def dump(value: Any, is_sorted: bool = False) -> bytes:
    """The first, quick half of `encode`: NaN becomes null, and any depth is possible."""
    try:
        data = orjson.dumps(value, option=_SORTED if is_sorted else _STRICT)
    except (TypeError, RecursionError) as error:
        _refuse(value)
        raise BlockError(f"the value is not JSON: {error}", code="payload_invalid", retryable=False) from error
    if len(data) > SIZE_MAX_BYTES:
        raise BlockError(
            f"the value has {len(data)} bytes; the limit is {SIZE_MAX_BYTES}",
            code="payload_too_large",
            retryable=False,
            hint="store it as a file and pass that on: docs/howto/files.md",
        )
    return trimmed(data)


def check(value: Any, data: bytes) -> None:
    """The second half: looks at each item of a value with a null or many brackets, which takes 0.1 s for a million
    items."""
    # NaN is written as null and depth shows in brackets, so most values need no second look.
    if (b"null" in data or data.count(b"[") + data.count(b"{") > DEPTH_MAX) and not _is_json(value):
        _refuse(value)


def trimmed(data: bytes) -> bytes:
    """Return the bytes in memory of their own size: orjson leaves at least 4 KiB around a text that it makes."""
    return b"%b" % data


def copy(value: Any) -> Any:
    """Return a copy that may be changed freely. Texts, numbers, booleans and null are their own copies."""
    if isinstance(value, (dict, list)):
        return orjson.loads(orjson.dumps(value)) if value else type(value)()
    return value


def split(output: bytes) -> tuple[bytes | None, str | None]:
    """(inline bytes, None), or (None, sha256 of the blob) when the output is over 256 KiB."""
    if len(output) <= INLINE_MAX_BYTES:
        return output, None
    return None, hashlib.sha256(output).hexdigest()


def render(value: Any) -> str:
    """Return a value inside text: texts as they are, MISSING as '', everything else as JSON."""
    if isinstance(value, str):
        return value
    if value is MISSING:
        return ""
    return orjson.dumps(value).decode()


def _is_json(value: Any) -> bool:
    """Returns False if there may be a NaN, an infinity or too deep a place; in a tenth of the time of `_refuse`."""
    level = [value]
    for depth in range(DEPTH_MAX + 1):
        inner: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is dict or kind is list or kind is tuple:
                if depth == DEPTH_MAX:
                    return False
                inner.extend(item.values() if kind is dict else item)
            elif kind is float:
                if not math.isfinite(item):
                    return False
            elif kind is not str and kind is not int and kind is not bool and item is not None:
                return False
        level = inner
    return True


def _refuse(value: Any) -> None:
    """Raise BlockError at the first place, depth first, that JSON cannot hold; return if there is none."""
    stack: list[tuple[str, Any, int]] = [("$", value, 0)]
    while stack:
        place, item, depth = stack.pop()
        problem = None
        if isinstance(item, float) and not math.isfinite(item):
            problem = f"{item} is not a JSON number"
        elif isinstance(item, int) and not isinstance(item, bool) and not -(2**63) <= item < 2**64:
            problem = "the number does not fit in 64 bits"
        elif isinstance(item, (dict, list, tuple)):
            if depth >= DEPTH_MAX:
                problem = f"nested more than {DEPTH_MAX} levels deep"
            elif isinstance(item, dict):
                if any(not isinstance(key, str) for key in item):
                    problem = "a key is not text"
                stack.extend((f"{place}.{key}", child, depth + 1) for key, child in reversed(item.items()))
            else:
                stack.extend((f"{place}[{n}]", item[n], depth + 1) for n in range(len(item) - 1, -1, -1))
        elif item is not None and not isinstance(item, (str, int, float)):
            problem = f"{type(item).__name__} is not a JSON type"
        if problem is not None:
            raise BlockError(
                f"the value at {place[:200]} is not JSON: {problem}", code="payload_invalid", retryable=False
            )


class Bound(Struct, frozen=True):
    """`source` reads its references as `__v["..."]` (typed) or `__t["..."]` (rendered text)."""

    source: str
    values: Mapping[str, Any]
    texts: Mapping[str, str] = {}
