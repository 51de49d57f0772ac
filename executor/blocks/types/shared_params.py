"""Params that several block types describe and read in the same way: rejected params, numbers given as text, expiry.

Three keywords of params are for the editor, beside "x-ui" (see compiler.catalog):
  "x-titles"  {value: label} of an "enum": the label of a choice in the form. Every value has a label, or none
  "x-when"    {param: [values]}: the field is shown only while each named param has one of these values (its default
              counts) or is a reference; a field that has a value is never hidden
  "x-required"  {param: [values]}: the field is marked as required while the named param has one of these values; the
              `check` of the block type enforces it
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import orjson

from compiler.schema import schema_error
from executor.errors import BlockError
from executor.kernel.values.coerce import coerce

FIELD_TITLES: dict[str, str] = {
    "string": "Text",
    "number": "Number",
    "integer": "Whole number",
    "boolean": "True or false",
    "object": "Object",
    "array": "List",
    "any": "Any",
}
FILLED: dict[str, Any] = {"type": "string", "pattern": r"\S"}  # a text that must not be blank
HANDLE_PATTERN = "^[A-Za-z0-9_.-]{1,128}$"
_TEN_YEARS_S = 10 * 366 * 86_400

# Params that several block types have; each adds its place in the form.
CASE_ID: dict[str, Any] = {
    "type": "string",
    "title": "Id",
    "description": "Name of the branch in connections: letters, digits, _ . and -",
    "pattern": HANDLE_PATTERN,
    "x-ui": {"order": 1, "widget": "text"},
}
CASE_TITLE: dict[str, Any] = {
    "type": "string",
    "title": "Title",
    "description": "Shown on the connection.",
    "x-ui": {"order": 2, "widget": "text"},
}
ENABLED: dict[str, Any] = {
    "type": "boolean",
    "title": "Enabled",
    "description": "Can also be changed later without publishing a new version.",
    "default": True,
    "x-weft": "literal",
}
HEADERS: dict[str, Any] = {
    "type": "object",
    "title": "Headers",
    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    "x-ui": {"order": 3, "widget": "keyvalues"},
}
SENT_HEADERS: dict[str, Any] = {
    "x-weft": "secret",
    **HEADERS,
}  # of a request, which is bound to the hosts of its secrets
ITEMS: dict[str, Any] = {
    "title": "Items",
    "description": "A list, an object (read as [key, value] pairs), or a reference to one.",
    "x-when": {"mode": ["each"]},
    "x-ui": {"order": 3, "widget": "reference"},
}
RESULTS: dict[str, Any] = {
    "enum": ["ends", "value", "all"],
    "title": "Results include",
    "default": "ends",
    "x-titles": {"ends": "Lists of the last blocks", "value": "The last block", "all": "Lists of all blocks"},
    "x-weft": "literal",
}
EXPIRES_IN_S: dict[str, Any] = {
    "type": "number",
    "title": "Expires after (seconds)",
    "description": "Leave empty to wait indefinitely.",
    "exclusiveMinimum": 0,
    "maximum": _TEN_YEARS_S,
    "x-ui": {"order": 8, "widget": "number"},
}
ON_EXPIRE: dict[str, Any] = {
    "type": "string",
    "title": "When it expires",
    "enum": ["fail", "continue", "skip"],
    "description": "What happens when no answer arrives in time.",
    "default": "fail",
    "x-titles": {"fail": "Fail the block", "continue": "Continue with null", "skip": "Skip the block"},
    "x-ui": {"order": 9, "widget": "select"},
}


def invalid(message: str, hint: str = "") -> BlockError:
    """Return the error of an invalid param. Trying again would not change that."""
    return BlockError(message, code="params_invalid", retryable=False, hint=hint)


def seconds(params: Mapping[str, Any], name: str, default: float | None = None) -> float | None:
    """Return the param as seconds, 0 to ten years; `default` when it is not there. Raises
    BlockError(params_invalid)."""
    value = coerce("number", params.get(name))
    if value is None or value == "":
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise invalid(f"{name} must be a number of seconds, not {str(value)[:80]!r}")
    if not 0 <= value <= _TEN_YEARS_S:
        raise invalid(f"{name} must be between 0 and {_TEN_YEARS_S} seconds, it is {value:g}")
    return float(value)


def text(params: Mapping[str, Any], name: str) -> str | None:
    """Return the param as text, or None if it is missing, null or empty. Numbers and booleans are written as JSON."""
    value = params.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, dict | list):
        raise invalid(f"{name} must be text, not {'an object' if isinstance(value, dict) else 'a list'}")
    return str(coerce("string", value))


def expiry_ms(params: Mapping[str, Any], now_ms: int) -> int | None:
    """Return when a wait with this `expires_in_s` expires (Unix ms), or None if it never does."""
    limit_s = seconds(params, "expires_in_s")
    return None if limit_s is None else now_ms + round(limit_s * 1000)


def form_schema(fields: Any) -> dict[str, Any] | None:
    """Return the JSON Schema of a form's fields, or None if there are none. Raises BlockError(params_invalid)."""
    if not fields:
        return None
    if not isinstance(fields, dict):
        raise invalid('fields must be a JSON Schema of type "object"')
    schema = {"type": "object", **fields}
    kinds = schema["type"]
    if "object" not in (kinds if isinstance(kinds, list) else (kinds,)):
        raise invalid(
            f'fields must be a JSON Schema of type "object", but its type is {str(kinds)[:80]!r}',
            hint='such as {"properties": {"note": {"type": "string"}}}',
        )
    problem = schema_error(orjson.dumps(schema))
    if problem is not None:
        raise invalid(f"fields is not a JSON Schema: {problem[:300]}")
    return schema


def web_address(url: str, name: str) -> str:
    """Raises BlockError(params_invalid): better at once than in a message that never arrives."""
    if not url.strip().lower().startswith(("http://", "https://")):
        raise invalid(f"{name} must start with http:// or https://, it is {url.strip()[:20]!r}")
    return url.strip()
