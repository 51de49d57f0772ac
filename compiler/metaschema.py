"""Validates JSON Schemas (draft 2020-12) as the metaschema does, a hundred times as fast: a document has room for a
megabyte of schemas, and the metaschema takes half a millisecond for each object in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final

from compiler.references import escape

_parser: Final[Any] = import_module("re._parser")  # it reads a pattern without compiling it, and has no public name

_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_ID: Final = re.compile(r"[^#]*#?")
_ANCHOR: Final = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")

# Keywords whose values are schemas: one, a list or an object of them.
_ONE: Final = frozenset(
    ["additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
     "unevaluatedItems", "unevaluatedProperties"]
)  # fmt: skip
_LIST: Final = frozenset(["allOf", "anyOf", "oneOf", "prefixItems"])
_NAMED: Final = frozenset(
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]
)


def problem_of(schema: Any) -> str | None:
    """Return the first mistake and the JSON pointer to it, or None. O(size), without recursion."""
    stack: list[tuple[str, Any]] = [("", schema)]
    while stack:
        pointer, part = stack.pop()
        if isinstance(part, bool):
            continue
        if not isinstance(part, dict):
            return f"a schema is an object, true or false, not {_shown(part)} (at {pointer or '/'})"
        for keyword, value in part.items():
            wanted, inner = _of_keyword(keyword, value)
            if wanted is not None:
                return f"{keyword} must be {wanted}, not {_shown(value)} (at {pointer}/{escape(keyword)})"
            stack.extend((f"{pointer}/{escape(keyword)}{place}", below) for place, below in inner)
    return None


def _of_keyword(keyword: str, value: Any) -> tuple[str | None, Iterator[tuple[str, Any]]]:
    """Return what the value must be if it is wrong, and the schemas in it. Other keywords may have any value."""
    nothing: Iterator[tuple[str, Any]] = iter(())
    if keyword in _ONE:
        return None, iter([("", value)])
    if keyword in _LIST:
        if not isinstance(value, list) or not value:
            return "a list of schemas", nothing
        return None, ((f"/{i}", part) for i, part in enumerate(value))
    if keyword in _NAMED:
        if not isinstance(value, dict):
            return "an object of schemas", nothing
        if keyword == "patternProperties":
            wrong = next((name for name in value if not _is_pattern(name)), None)
            if wrong is not None:
                return f"named by regular expressions, and {wrong[:80]!r} is not one", nothing
        free = keyword == "dependencies"  # of an older draft: lists of names, too
        return None, ((f"/{escape(k)}", part) for k, part in value.items() if not (free and _is_names(part)))
    rule = _RULES.get(keyword)
    return (None if rule is None or rule[0](value) else rule[1]), nothing


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:76]} ..."


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_size(value: Any) -> bool:
    return _is_number(value) and value >= 0 and (isinstance(value, int) or value.is_integer())


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _is_type(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(name, str) and name in _TYPES for name in value) and _is_names(value)
    return isinstance(value, str) and value in _TYPES


def _is_pattern(value: Any) -> bool:
    """Return whether it is a regular expression. It is only parsed: compiling `[a\u0100-\uffff]` takes milliseconds,
    and a schema has room for thousands of those. Python's grammar is nearly that of JavaScript, which matches them."""
    if not isinstance(value, str):
        return False
    try:
        _parser.parse(value)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


# By keyword: what its value must be, as a check and in words.
_Rule = tuple[Callable[[Any], bool], str]
_TEXTS: Final = "$comment $recursiveRef $schema contentEncoding contentMediaType description format title"
_SIZES: Final = "maxContains maxItems maxLength maxProperties minContains minItems minLength minProperties"
_NUMBERS: Final = "exclusiveMaximum exclusiveMinimum maximum minimum"
_HERE: Final[_Rule] = (
    lambda v: isinstance(v, str) and v.startswith("#"),
    "a place in the schema itself, such as #/$defs/a",
)
_NAME: Final[_Rule] = (lambda v: isinstance(v, str) and _ANCHOR.fullmatch(v) is not None, "a name")
_RULES: Final[dict[str, _Rule]] = {
    **dict.fromkeys(_TEXTS.split(), (_is_text, "text")),
    **dict.fromkeys(_SIZES.split(), (_is_size, "a whole number from 0 on")),
    **dict.fromkeys(_NUMBERS.split(), (_is_number, "a number")),
    **dict.fromkeys(("deprecated", "readOnly", "uniqueItems", "writeOnly"), (_is_flag, "true or false")),
    **dict.fromkeys(("$anchor", "$dynamicAnchor", "$recursiveAnchor"), _NAME),
    **dict.fromkeys(("$dynamicRef", "$ref"), _HERE),
    **dict.fromkeys(("enum", "examples"), (lambda v: isinstance(v, list), "a list")),
    "$id": (lambda v: isinstance(v, str) and _ID.fullmatch(v) is not None, "an address without a fragment"),
    "$vocabulary": (lambda v: isinstance(v, dict) and all(map(_is_flag, v.values())), "an object of flags"),
    "dependentRequired": (
        lambda v: isinstance(v, dict) and all(map(_is_names, v.values())),
        "an object of lists of names",
    ),
    "multipleOf": (lambda v: _is_number(v) and v > 0, "a number above 0"),
    "pattern": (_is_pattern, "a regular expression"),
    "required": (_is_names, "a list of different names"),
    "type": (_is_type, f"one of {', '.join(_TYPES)}, or a list of them"),
}
