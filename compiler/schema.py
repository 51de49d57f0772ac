"""Params against the JSON Schema of their block type, and the places in them that hold JavaScript.

A text with a reference in it, and `{"$ref": "$.variable"}`, fit every schema: their value is known at run time. Except
where `x-weft` is "literal": there a reference is a value like any other.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from compiler.catalog import BlockSpec
from compiler.diagnostics import Hint, suggest
from compiler.metaschema import problem_of
from compiler.references import escape, find, texts
from compiler.wording import closest_errors, is_blank, place, sentence

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

Kind = Literal["expression", "code", "python", "literal"]
_Part = tuple[str, Any, Any, Mapping[str, Any]]  # its pointer, schema and value, and the object that it is in
KEYWORD = "x-weft"
BESIDE = "x-secret-when"
URL = "x-url"
SCHEMA_BYTES_MAX = 64 * 1024
SCHEMA_PARTS_MAX = 1_000


class Problem(Struct, frozen=True):
    """`pointer` is relative to the params; `field` the name of the param."""

    code: str
    pointer: str
    message: str
    hint: Hint
    field: str | None


class Checker:
    """The compiled schema of one block type."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._marked = _marked(schema)
        properties = schema.get("properties")
        self._listed = frozenset(properties) if isinstance(properties, dict) else frozenset()
        self._closed = schema.get("additionalProperties") is False or bool(
            schema.get("additionalProperties") or schema.get("patternProperties")
        )

    @cached_property
    def _validator(self) -> Validator:
        """The validator, whose library is loaded by the first params that do not fit."""
        return _validator_class()(self._schema)

    def problems(self, params: dict[str, Any]) -> Iterator[Problem]:
        if not accepts(self._schema, params):
            for error in self._validator.iter_errors(params):
                yield from _problems(error, self._schema)
        if self._listed and not self._closed:
            for name in params.keys() - self._listed:
                message = f'There is no parameter "{name[:80]}" in the list for this block type.'
                hint = partial(suggest, name, self._listed)
                yield Problem("param_unread", f"/{escape(name)}", message, hint, name)

    def kinds(self, params: dict[str, Any]) -> dict[str, Kind]:
        """JSON pointer -> kind, of every text value that the schema marks with `x-weft`; of an object or list that it
        marks as literal, of the whole and of every text in it."""
        kinds: dict[str, Kind] = {}
        for pointer, schema, value, beside in self._marked_parts(params):
            kind = schema.get(KEYWORD)
            if kind == "literal" and isinstance(value, dict | list):
                if not is_open(value):
                    kinds[pointer] = "literal"
                    kinds |= {pointer + place: "literal" for place, _, _ in texts(value, ())}
            elif kind not in (None, "secret") and isinstance(value, str) and admits(schema, value):
                kinds.setdefault(pointer, "python" if kind == "code" and is_python(beside) else kind)
        return kinds

    def secret_places(self, params: dict[str, Any]) -> frozenset[str]:
        """JSON pointers of the texts where a secret may stand: where the schema allows it, and below."""
        places: set[str] = set()
        for pointer, schema, value, _ in self._marked_parts(params, for_secrets=True):
            if schema.get(KEYWORD) == "secret":
                places.add(pointer)
                places.update(pointer + place for place, _, _ in texts(value, ()))
        return frozenset(places)

    def urls(self, params: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the JSON pointer and the text of each URL that may contain a secret (`x-url`)."""
        for pointer, schema, value, _ in self._marked_parts(params, for_secrets=True):
            named = schema.get(URL)
            if named is True and isinstance(value, str):
                yield pointer, value
            elif isinstance(named, list) and isinstance(value, dict):
                yield from ((f"{pointer}/{key}", value[key]) for key in named if isinstance(value.get(key), str))

    def _marked_parts(self, params: dict[str, Any], for_secrets: bool = False) -> Iterator[_Part]:
        """Yield the parts that the schema marks, and those that hold such parts, the outer ones first. `for_secrets`:
        without those in which no secret may stand because of the values beside them."""
        stack: list[_Part] = [("", self._schema, params, params)]
        while stack:
            part = pointer, schema, value, beside = stack.pop()
            if id(schema) not in self._marked or (for_secrets and not _counts(schema, beside)):
                continue
            yield part
            for keyword in _OPTIONS:
                stack.extend((pointer, option, value, beside) for option in schema.get(keyword, ()))
            if isinstance(value, dict):
                listed, other = schema.get("properties", {}), schema.get("additionalProperties")
                for key, inner in value.items():
                    stack.append((f"{pointer}/{escape(key)}", listed.get(key, other), inner, value))
            elif isinstance(value, list):
                first, other = schema.get("prefixItems", ()), schema.get("items")
                for i, inner in enumerate(value):
                    stack.append((f"{pointer}/{i}", first[i] if i < len(first) else other, inner, beside))


def _counts(schema: Mapping[str, Any], beside: Mapping[str, Any]) -> bool:
    """Return whether secrets may stand in this param: `x-secret-when` lists the values of the params beside it."""
    return all(beside.get(name) in values for name, values in schema.get(BESIDE, {}).items())


def is_python(beside: Mapping[str, Any]) -> bool:
    """Return whether the code among these params is Python, by the `language` beside it."""
    return beside.get("language") == "python"


def admits(schema: Mapping[str, Any], value: Any) -> bool:
    """Return whether `type` admits the value."""
    kind = schema.get("type")
    return kind is None or any(_TYPES[name](value) for name in (kind if isinstance(kind, list) else [kind]))


def accepts(schema: Any, value: Any) -> bool:
    """A quick check. False means "ask the validator": the value does not fit, or the schema has a rare keyword.

    Most params are right, and the validator takes some 30 us for each level of an object.
    """
    if schema is True or _is_free(value, schema):
        return True
    if not isinstance(schema, dict) or not schema.keys() <= _QUICK:
        return False
    kind = schema.get("type")
    if kind is not None:
        kinds = kind if isinstance(kind, list) else [kind]
        if not any(_TYPES[name](value) for name in kinds if name in _TYPES):
            return False
    if "enum" in schema and not (isinstance(value, str) and value in schema["enum"]):
        return False
    for keyword in ("oneOf", "anyOf"):
        if keyword in schema and not any(accepts(option, value) for option in schema[keyword]):
            return False
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            return False
        return "pattern" not in schema or re.search(schema["pattern"], value) is not None
    if isinstance(value, int | float):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return False
        return "items" not in schema or all(accepts(schema["items"], item) for item in value)
    if isinstance(value, dict):
        listed = schema.get("properties", {})
        other = schema.get("additionalProperties", True)
        if len(value) < schema.get("minProperties", 0):
            return False
        return all(name in value for name in schema.get("required", ())) and all(
            accepts(listed.get(name, other), inner) for name, inner in value.items()
        )
    return True


_OPTIONS = ("oneOf", "anyOf", "allOf")
_NOTES = ("title", "description", "default", "examples", "format", "x-ui", "x-titles", "x-when", KEYWORD, BESIDE, URL)
_LIMITS = (
    "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "minProperties", "pattern", "enum",
    "required",
)  # fmt: skip
_QUICK = frozenset(["type", "oneOf", "anyOf", "items", "properties", "additionalProperties", *_LIMITS, *_NOTES])
_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _marked(schema: Any) -> frozenset[int]:
    """Return the ids of the subschemas that contain an `x-weft`. Keep the schema alive as long as the ids are used."""
    marked: set[int] = set()

    def visit(part: Any) -> bool:
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        below = [visit(item) for item in inner]  # every one of them, so no generator
        found = any(below) or (isinstance(part, dict) and KEYWORD in part)
        if found:
            marked.add(id(part))
        return found

    visit(schema)
    return frozenset(marked)


def checker_of(spec: BlockSpec) -> Checker:
    """Cached by schema: making one costs as much as checking a few hundred blocks."""
    return _checker(msgspec.json.encode(spec.params))


@functools.lru_cache(maxsize=512)
def _checker(schema: bytes) -> Checker:
    return Checker(msgspec.json.decode(schema))


@functools.lru_cache(maxsize=64)
def schema_error(schema: bytes) -> str | None:
    """Return the reason why these JSON bytes are not a usable JSON Schema, or None. References must lead to places in
    the schema itself: nothing is fetched."""
    if len(schema) > SCHEMA_BYTES_MAX:
        return f"it has {len(schema):,} bytes; the limit is {SCHEMA_BYTES_MAX:,}"
    value = msgspec.json.decode(schema)
    parts = list(_parts(value))
    if len(parts) > SCHEMA_PARTS_MAX:
        return f"it has {len(parts):,} parts; the limit is {SCHEMA_PARTS_MAX:,}"
    for target in (part.get(key) for part in parts for key in ("$ref", "$dynamicRef")):
        if isinstance(target, str) and not target.startswith("#"):
            return f"it refers to {target[:80]!r} outside the schema"
    return problem_of(value)


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    stack = [schema]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            yield part
            stack.extend(inner for key, inner in part.items() if key not in ("const", "enum", "default", "examples"))
        elif isinstance(part, list):
            stack.extend(part)


def is_open(value: Any) -> bool:
    """Return whether its value is known only at run time."""
    if isinstance(value, str):
        return ("<" in value or "${" in value) and bool(find(value))
    return isinstance(value, dict) and variable_reference(value) is not None


def _is_free(value: Any, schema: Any) -> bool:
    """Return whether it is a reference that fits any schema. It is not where references are not resolved."""
    return is_open(value) and not (isinstance(schema, Mapping) and schema.get(KEYWORD) == "literal")


def variable_reference(value: Mapping[str, Any]) -> str | None:
    """The path of `{"$ref": "$.hit.body"}`; JSON Schemas use `$ref` too, for `#/...` and addresses."""
    path = value.get("$ref") if len(value) == 1 else None
    return path if isinstance(path, str) and (path == "$" or path.startswith(("$.", "$["))) else None


@functools.cache
def _validator_class() -> type[Validator]:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    def skipping(rule: Any) -> Any:
        def checked(validator: Validator, value: Any, instance: Any, schema: Any) -> Any:
            return () if _is_free(instance, schema) else rule(validator, value, instance, schema) or ()

        return checked

    def short(rule: Any) -> Any:
        """Skip the rule for a list that is too long, which `maxItems` reports; its items do not matter then."""

        def checked(validator: Validator, value: Any, instance: Any, schema: Any) -> Any:
            too_long = isinstance(instance, list) and len(instance) > schema.get("maxItems", len(instance))
            return () if too_long else rule(validator, value, instance, schema)

        return checked

    rules = dict(Draft202012Validator.VALIDATORS)
    rules["oneOf"] = rules["anyOf"]  # an open value may fit several options
    for name in ("items", "uniqueItems"):
        rules[name] = short(rules[name])
    extended: type[Validator] = extend(  # type: ignore[no-untyped-call]  # the stubs leave its parameters out
        Draft202012Validator, {name: skipping(rule) for name, rule in rules.items()}
    )
    return extended


def _problems(error: ValidationError, schema: dict[str, Any]) -> Iterator[Problem]:
    path = list(error.absolute_path)
    pointer = "".join(f"/{escape(str(part))}" for part in path)
    field = str(path[0]) if path else None
    holder = error.instance if isinstance(error.instance, dict) else {}
    listed = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
    if error.validator == "additionalProperties" and error.validator_value is False:
        free = listed.keys() - holder.keys()
        for name in holder.keys() - listed.keys():
            message = f'There is no parameter "{name[:80]}".'
            yield Problem(
                "param_unknown", f"{pointer}/{escape(name)}", message, partial(suggest, name, free), field or name
            )
    elif error.validator == "required":
        required: Any = error.validator_value
        name = next((name for name in required if error.message.startswith(f"{name!r} ")), "")
        title = place(schema, [*path, name])[0]
        yield Problem("required", f"{pointer}/{escape(name)}", f"{title} is required.", "", field or name)
    else:
        title, needed = place(schema, path)
        if needed and is_blank(error.instance):
            yield Problem("required", pointer, f"{title} is required.", "", field)
            return
        closest = list(closest_errors(error))
        for inner in closest:
            yield from _problems(inner, schema)
        if not closest:
            yield Problem("param_invalid", pointer, sentence(error, title or "The parameters"), "", field)
