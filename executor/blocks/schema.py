"""What several block types say and read in the same way: refused params, numbers that came as text, expiry."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from executor.errors import BlockError
from executor.values.coerce import coerce

HANDLE_PATTERN = "^[A-Za-z0-9_.-]{1,128}$"
_TEN_YEARS_S = 10 * 366 * 86_400

EXPIRES_IN_S: dict[str, Any] = {
    "type": "number",
    "title": "Expires after (seconds)",
    "description": "Left empty: it waits for as long as the run lives.",
    "exclusiveMinimum": 0,
    "maximum": _TEN_YEARS_S,
    "x-ui": {"order": 8, "widget": "number"},
}
ON_EXPIRE: dict[str, Any] = {
    "type": "string",
    "title": "When it expires",
    "description": "fail: the block fails. continue: go on by out, the output is null. "
    "skip: passed over as skipped, goes on by out without a value.",
    "default": "fail",
    "x-ui": {"order": 9, "widget": "select"},
}


def invalid(message: str, hint: str = "") -> BlockError:
    """A param is of no use. Trying again would not change that."""
    return BlockError(message, code="params_invalid", retryable=False, hint=hint)


def seconds(params: Mapping[str, Any], name: str, default: float | None = None) -> float | None:
    """The param as seconds, 0 to ten years; `default` when it is not there. Raises BlockError(params_invalid)."""
    value = coerce("number", params.get(name))
    if value is None or value == "":
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise invalid(f"{name} must be a number of seconds, not {str(value)[:80]!r}")
    if not 0 <= value <= _TEN_YEARS_S:
        raise invalid(f"{name} must lie between 0 and {_TEN_YEARS_S} seconds, it is {value:g}")
    return float(value)


def text(params: Mapping[str, Any], name: str) -> str | None:
    """The param as text; None when it is missing, null or empty. Numbers and booleans are written as JSON."""
    value = params.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, dict | list):
        raise invalid(f"{name} must be text, not {'an object' if isinstance(value, dict) else 'a list'}")
    return str(coerce("string", value))


def expiry_ms(params: Mapping[str, Any], now_ms: int) -> int | None:
    """When a wait with this `expires_in_s` expires (Unix ms); None: never."""
    limit_s = seconds(params, "expires_in_s")
    return None if limit_s is None else now_ms + round(limit_s * 1000)
