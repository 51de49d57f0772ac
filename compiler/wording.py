"""Errors in params, in the words of the form: `URL is required.` instead of the validator's message."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

FILLED: Final = r"\S"  # the `pattern` of a text that must not be blank
SHOWN_MAX: Final = 80
OPTIONS_SHOWN_MAX: Final = 12

# Types as JSON Schema and as msgspec name them.
_KINDS: Final = {
    **dict.fromkeys(("string", "str"), "text"),
    **dict.fromkeys(("number", "float"), "a number"),
    **dict.fromkeys(("integer", "int"), "a whole number"),
    **dict.fromkeys(("boolean", "bool"), "true or false"),
    "object": "an object",
    "array": "a list",
    "null": "null",
}
# The keyword that a value breaks -> the text after the name of the param.
_RULES: Final[dict[str, Callable[[Any], str]]] = {
    "minimum": lambda limit: f"must be at least {limit:,}",
    "maximum": lambda limit: f"must be at most {limit:,}",
    "exclusiveMinimum": lambda limit: f"must be greater than {limit:,}",
    "exclusiveMaximum": lambda limit: f"must be less than {limit:,}",
    "minLength": lambda limit: "cannot be empty" if limit == 1 else f"must have at least {limit:,} characters",
    "maxLength": lambda limit: f"can have at most {limit:,} characters",
    "minItems": lambda limit: "cannot be empty" if limit == 1 else f"must have at least {limit:,} items",
    "maxItems": lambda limit: f"can have at most {limit:,} items",
    "minProperties": lambda limit: "cannot be empty" if limit == 1 else f"must have at least {limit:,} fields",
    "uniqueItems": lambda _: "has the same item twice",
}
_OTHER_TYPE: Final = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_BOUND: Final = re.compile(r"Expected `(\w+)` (of length )?([<>]=?) ([\d.e+-]+)")
_PATTERN: Final = re.compile(r"Expected `str` matching regex '(.*)'")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`")
_NOT_ONE_OF: Final = re.compile(r"Invalid enum value (.*)")
_LACKS: Final = re.compile(r"Object missing required field `(.*)`")
_BOUNDS: Final = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_PARTS: Final = {"str": "characters", "array": "items", "object": "fields"}


def of_field(said: str, name: str, patterns: Mapping[str, str]) -> str:
    """Return msgspec's message about the field `name` as a sentence. `patterns` has the description of each pattern."""
    if match := _OTHER_TYPE.fullmatch(said):
        wanted, got = ([_KINDS.get(kind, kind) for kind in side.split(" | ")] for side in match.groups())
        return f"{name} must be {' or '.join(kind for kind in wanted if kind != 'null') or 'null'}, not {got[0]}."
    if match := _BOUND.fullmatch(said):
        kind, length, rule, limit = match.groups()
        if length and (rule, limit) == (">=", "1"):
            return f"{name} cannot be empty."
        bound = f"{_BOUNDS[rule]} {float(limit):,g}" if "." in limit else f"{_BOUNDS[rule]} {int(limit):,}"
        return f"{name} must have {bound} {_PARTS.get(kind, '')}." if length else f"{name} must be {bound}."
    if match := _PATTERN.fullmatch(said):
        pattern = match[1].replace("\\\\", "\\")
        return f"{name} must be {patterns.get(pattern) or f'text that matches {pattern}'}."
    if match := _LACKS.fullmatch(said):
        return f"{name} needs the field {match[1]}."
    if match := _UNKNOWN.fullmatch(said):
        return f"{name} has an unknown field `{match[1]}`."
    if match := _NOT_ONE_OF.fullmatch(said):
        return f"{name} cannot be {match[1]}."
    return f"{name}: {said}."


def lacking(said: str) -> str | None:
    """Return the name of the field that msgspec misses."""
    match = _LACKS.fullmatch(said)
    return match and match[1]


def title_of(schema: Mapping[str, Any], name: str) -> str:
    properties = schema.get("properties")
    param = properties.get(name) if isinstance(properties, Mapping) else None
    title = param.get("title") if isinstance(param, Mapping) else None
    return title if isinstance(title, str) and title else name[:SHOWN_MAX]


def is_blank(value: Any) -> bool:
    """Return whether a required param with this value counts as missing."""
    return value is None or value in ("", [], {}) or (isinstance(value, str) and not value.strip())


def place(schema: Mapping[str, Any], path: Sequence[str | int]) -> tuple[str, bool]:
    """Return the form's name for the param, such as `Id of case 2`, and whether it is required there."""
    names: list[str] = []
    required = False
    options: list[Any] = [schema]
    for part in path:
        options = [inner for option in options for inner in _alternatives(option)]
        if isinstance(part, int):
            names[-1:] = [f"{_one_of(names[-1])} {part + 1}" if names else f"item {part + 1}"]
            options = [option.get("items") for option in options]
            continue
        holders = [option for option in options if part in option.get("properties", ())]
        names.append(next((title_of(holder, part) for holder in holders), str(part)[:SHOWN_MAX]))
        required = any(part in holder.get("required", ()) for holder in holders)
        options = [holder["properties"][part] for holder in holders] or [
            option.get("additionalProperties") for option in options
        ]
    *around, last = names or [""]
    return " of ".join([last, *map(_inside, reversed(around))]), required


def _one_of(title: str) -> str:
    """Return the singular of the name of a list: `Case` of `Cases`; a name that is no plural gets `item`."""
    for end, one in (("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("s", "")):
        if title.endswith(end) and not title.endswith("ss"):
            return title.removesuffix(end) + one
    return f"{title}, item"


def _inside(title: str) -> str:
    """Return the name inside of a sentence: `tool 1`; of a group of fields, which may begin with a verb, in quotes."""
    return title[:1].lower() + title[1:] if title[-1:].isdecimal() else f'"{title}"'


def closest_errors(error: ValidationError) -> Iterator[ValidationError]:
    """Yield the errors by the first of several schemas that is for values of this type, if the value fits none."""
    kinds: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        kinds.setdefault(inner.relative_schema_path[0], []).append(inner)
    for found in kinds.values():
        if not any(inner.validator == "type" and not inner.relative_path for inner in found):
            yield from found
            return


def sentence(error: ValidationError, name: str) -> str:
    rule: Any = error.validator
    limit: Any = error.validator_value
    if rule == "pattern" and limit == FILLED:
        return f"{name} cannot be empty."
    if rule in _RULES:
        return f"{name} {_RULES[rule](limit)}."
    match rule:
        case "type":
            return f"{name} must be {_either(limit)}."
        case "enum":
            return f"{name} must be one of {', '.join(map(_shown, limit[:OPTIONS_SHOWN_MAX]))}."
        case "anyOf" | "oneOf":
            options = [option.get("type") for option in limit if isinstance(option, Mapping)]
            if options and all(isinstance(option, str) for option in options):
                return f"{name} must be {_either(options)}."
        case "pattern":
            return f"{name} has a value that is not allowed: {_shown(error.instance)}. It must match {limit}"
        case "not":
            return f"{name} cannot be {_shown(error.instance)}."
        case _:
            pass
    return f"{name}: {shortened(error.message)}."


def shortened(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:140]} ... {text[-140:]}"


def _either(kinds: Any) -> str:
    names = [_KINDS.get(kind, str(kind)) for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    words = [name for name in dict.fromkeys(names) if name != "null"] or ["null"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
    return f'"{text}"' if isinstance(value, str) and not text.isidentifier() else text


def _alternatives(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        yield schema
        for keyword in ("oneOf", "anyOf", "allOf"):
            for option in schema.get(keyword, ()):
                yield from _alternatives(option)
