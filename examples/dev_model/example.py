"""Values that a JSON Schema allows, for a model that has no script.

Each schema has numbered variants: the first is the plainest, further ones are other enum values, longer texts, larger
numbers, other branches. The validator decides which is taken, so keywords that variants ignore (`not`, `oneOf`) are
honoured as well, as long as one of the variants fits.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from importlib import import_module
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing.exceptions import Unresolvable

VARIANTS: Final = 24  # of one schema
MAKES_MAX: Final = 20_000  # of all schemas within the requested one
DEPTH_MAX: Final = 12
SHALLOW: Final = 5  # further below only what is required is made: a schema may contain itself
TEXT: Final = "example"
_TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
_FORMATS: Final = {
    "date-time": "2026-01-{day:02}T09:00:00Z",
    "date": "2026-01-{day:02}",
    "time": "09:00:{day:02}Z",
    "duration": "P{day}D",
    "email": "ada{n}@example.com",
    "idn-email": "ada{n}@example.com",
    "hostname": "www{n}.example.com",
    "idn-hostname": "www{n}.example.com",
    "ipv4": "192.0.2.{day}",
    "ipv6": "2001:db8::{day}",
    "uri": "https://example.com/{n}",
    "uri-reference": "https://example.com/{n}",
    "iri": "https://example.com/{n}",
    "iri-reference": "https://example.com/{n}",
    "uri-template": "https://example.com/{n}",
    "uuid": "00000000-0000-4000-8000-0000000000{day:02}",
    "json-pointer": "/example/{n}",
    "relative-json-pointer": "{n}/example",
    "regex": "example{n}",
}
# The type that keywords imply in a schema without one.
_ABOUT: Final = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "patternProperties", "propertyNames"),
    "array": ("items", "prefixItems", "minItems", "uniqueItems", "contains"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
# Bounds and letters of texts that are made for a regular expression.
LENGTH_MAX: Final = 10_000
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_- .,:;/!?#@%&+*=<>()[]{}|~^$\"'`\\"
_CLASSES: Final = {"CATEGORY_DIGIT": "0123456789", "CATEGORY_SPACE": " ", "CATEGORY_WORD": _LETTERS[:63]}
Schema = Mapping[str, Any]


def example(schema: Any) -> Any:
    """A value that the schema allows; the plainest one when none was found."""
    return _Maker(schema).fitting(schema, 0)


class _Maker:
    """Makes the values of one schema and of those within it."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._validator = Draft202012Validator(root, format_checker=Draft202012Validator.FORMAT_CHECKER)
        self._made = 0
        # By the identity of a schema, which is kept so that its id is not used again.
        self._fitting: dict[tuple[int, int, bool], tuple[Any, Any]] = {}

    def fitting(self, schema: Any, n: int, depth: int = 0) -> Any:
        """The first variant from `n` on that the schema allows."""
        key = (id(schema), n, depth > SHALLOW)
        if key not in self._fitting:
            self._fitting[key] = schema, self._find(schema, n, depth)
        return self._fitting[key][1]

    def _find(self, schema: Any, n: int, depth: int) -> Any:
        first = self._make(schema, n, depth)
        if depth > DEPTH_MAX or self._allows(schema, first):
            return first
        for other in range(n + 1, n + VARIANTS):
            if self._made > MAKES_MAX:
                break
            value = self._make(schema, other, depth)
            if self._allows(schema, value):
                return value
        return first

    def _allows(self, schema: Any, value: Any) -> bool:
        try:
            return self._validator.evolve(schema=schema).is_valid(value)
        except (SchemaError, Unresolvable, TypeError, ValueError, AttributeError):
            return True  # it is no schema: nothing fits better

    def _make(self, schema: Any, n: int, depth: int) -> Any:
        self._made += 1
        if not isinstance(schema, Mapping):
            return (TEXT, n, None, {})[n % 4]
        for keyword in ("const", "default"):
            if keyword in schema and n == 0:
                return schema[keyword]
        if isinstance(enum := schema.get("enum"), list) and enum:
            return enum[n % len(enum)]
        if "const" in schema:
            return schema["const"]
        if isinstance(schema.get("$ref"), str):
            beside = {name: value for name, value in schema.items() if name != "$ref"}
            target = self._target(schema["$ref"])
            return self.fitting(_joined(beside, target) if beside else target, n, depth + 1)
        for branch, others in _branches(schema, n):
            return self.fitting(branch, others, depth + 1)
        return self._of_type(schema, _type(schema, n), n, depth)

    def _target(self, reference: str) -> Any:
        """Return the schema at `#/$defs/name`, or True, which allows anything, for other references."""
        found: Any = self._root
        for part in reference.removeprefix("#").split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, Mapping) else None
        return found if reference.startswith("#") and found is not None else True

    def _of_type(self, schema: Schema, kind: str, n: int, depth: int) -> Any:
        match kind:
            case "object":
                return self._object(schema, n, depth)
            case "array":
                return self._array(schema, n, depth)
            case "integer" | "number":
                return _number(schema, n, whole=kind == "integer")
            case "boolean":
                return n % 2 == 1
            case "null":
                return None
            case _:
                return _text(schema, n)

    def _object(self, schema: Schema, n: int, depth: int) -> dict[str, Any]:
        inner = _mapping(schema.get("properties"))
        required = [name for name in _list(schema.get("required")) if isinstance(name, str)]
        most = schema.get("maxProperties", math.inf)
        # Other variants have other optional properties: all, only the required ones.
        names = list(dict.fromkeys([*(() if depth > SHALLOW or n % 3 == 2 else inner), *required]))
        optional = [name for name in names if name not in required]
        while len(names) > most and optional:
            names.remove(optional.pop())
        made = {name: self._property(schema, name, n, depth) for name in names if inner.get(name) is not False}
        for name in self._further_names(schema, n, depth):
            if len(made) >= _whole(schema.get("minProperties")):
                break
            if name not in made:
                made[name] = self._property(schema, name, n, depth)
        return made

    def _property(self, schema: Schema, name: str, n: int, depth: int) -> Any:
        """Make a value for a property, from all subschemas that apply to its name."""
        found = [value for key, value in _mapping(schema.get("properties")).items() if key == name]
        for pattern, value in _mapping(schema.get("patternProperties")).items():
            if self._allows({"pattern": pattern}, name):
                found.append(value)
        if not found:
            found = [schema.get("additionalProperties", True)]
        return self.fitting(found[0] if len(found) == 1 else {"allOf": found}, n, depth + 1)

    def _further_names(self, schema: Schema, n: int, depth: int) -> Iterator[str]:
        """Yield names of properties besides the required ones, for a schema with a minimum number."""
        yield from _mapping(schema.get("properties"))
        named = schema.get("propertyNames")
        patterns = list(_mapping(schema.get("patternProperties")))
        for at in range(_whole(schema.get("minProperties")) + len(patterns)):
            if patterns and schema.get("additionalProperties") is False:
                yield text_for(patterns[at % len(patterns)], at)
            elif named is not None:
                yield str(self.fitting(_joined({"type": "string"}, named), at, depth + 1))
            else:
                yield f"{TEXT}{at + 1}"

    def _array(self, schema: Schema, n: int, depth: int) -> list[Any]:
        first = _list(schema.get("prefixItems"))
        least, most = _whole(schema.get("minItems")), schema.get("maxItems", math.inf)
        wanted = max(least, _whole(schema.get("minContains", 1)) if "contains" in schema else 0, 1 if n % 3 == 1 else 0)
        if depth > SHALLOW:
            wanted = max(least, min(wanted, 1) if "contains" in schema else 0)
        made: list[Any] = []
        shift = 0
        while len(made) < min(max(wanted, len(first) if depth <= SHALLOW else least), most):
            at = len(made)
            inner = first[at] if at < len(first) else schema.get("items", True)
            if "contains" in schema and at >= len(first):
                inner = {"allOf": [inner, schema["contains"]]}
            value = self.fitting(inner, n + shift, depth + 1)
            shift += 1
            if not schema.get("uniqueItems") or not any(_same(value, other) for other in made):
                made.append(value)
            elif shift > 8 * VARIANTS:
                break
        return made


def _branches(schema: Schema, n: int) -> Iterator[tuple[Schema, int]]:
    """Yield the schema with one of its branches chosen, and the variant of that; nothing if it has none."""
    if isinstance(schema.get("allOf"), list) and schema["allOf"]:
        rest: Any = _without(schema, "allOf")
        for part in schema["allOf"]:
            rest = _joined(rest, part)
        yield rest, n
        return
    for keyword in ("anyOf", "oneOf"):
        found = schema.get(keyword)
        if isinstance(found, list) and found:
            yield _joined(_without(schema, keyword), found[n % len(found)]), n // len(found)
            return
    if "if" in schema:
        holds, rest = n % 2 == 0, _without(schema, "if", "then", "else")
        part = _joined(schema["if"], schema.get("then", True)) if holds else schema.get("else", True)
        yield _joined(rest, part), n // 2


def _without(schema: Schema, *names: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in names}


def _joined(one: Any, other: Any) -> Any:
    """A schema that allows what both allow, as far as its keywords can be put together."""
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return False if one is False or other is False else other if one is True else one
    joined = dict(one)
    for name, value in other.items():
        if name not in joined or joined[name] == value:
            joined[name] = value
            continue
        mine = joined[name]
        match name:
            case "properties" | "patternProperties":
                both = {key: {"allOf": [mine[key], value[key]]} for key in mine.keys() & value.keys()}
                joined[name] = {**mine, **value, **both}
            case "required":
                joined[name] = list(dict.fromkeys([*mine, *value]))
            case "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" | "minContains":
                joined[name] = max(mine, value)
            case "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties":
                joined[name] = min(mine, value)
            case "type":
                ours, theirs = (each if isinstance(each, list) else [each] for each in (mine, value))
                both_types = [kind for kind in ours if kind in theirs or (kind == "integer" and "number" in theirs)]
                joined[name] = both_types or [kind for kind in theirs if kind == "integer" and "number" in ours]
            case "enum":
                joined[name] = [each for each in mine if each in value] or mine
            case "multipleOf":
                joined[name] = float(_common(mine, value)) if _common(mine, value) % 1 else int(_common(mine, value))
            case "items" | "contains" | "additionalProperties" | "propertyNames":
                joined[name] = {"allOf": [mine, value]}
            case "allOf":
                joined[name] = [*mine, *value]
            case _:  # such as two patterns: the validator chooses among the variants
                joined.setdefault("allOf", [])
                joined["allOf"] = [*joined["allOf"], {name: value}] if name in ("not", "anyOf", "oneOf") else []
                if not joined["allOf"]:
                    del joined["allOf"]
    return joined


def _common(one: float, other: float) -> Fraction:
    """The smallest number that is a multiple of both."""
    a, b = Fraction(str(one)), Fraction(str(other))
    return Fraction(math.lcm(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)


def _type(schema: Schema, n: int) -> str:
    kind = schema.get("type")
    if isinstance(kind, list) and kind:
        return str(kind[n % len(kind)])
    if isinstance(kind, str):
        return kind
    about = [kind for kind, keywords in _ABOUT.items() if any(keyword in schema for keyword in keywords)]
    return (about or ["string", "integer", "object", "null", "boolean", "array"])[n % (len(about) or 6)]


def _text(schema: Schema, n: int) -> str:
    least, most = _whole(schema.get("minLength")), schema.get("maxLength", math.inf)
    if isinstance(schema.get("pattern"), str):
        return text_for(schema["pattern"], n, least)
    if (form := _FORMATS.get(str(schema.get("format")))) is not None:
        return form.format(day=n % 27 + 1, n=n + 1)
    text = TEXT if n == 0 else f"{TEXT} {n}"
    if len(text) > most:  # the end has the number
        text = text[-int(most) :] if most else ""
    return (text * (least // max(1, len(text)) + 1))[:least] if len(text) < least else text


def _number(schema: Schema, n: int, *, whole: bool) -> int | float:
    low, high = _bound(schema, "minimum", "exclusiveMinimum"), _bound(schema, "maximum", "exclusiveMaximum")
    step = Fraction(str(schema["multipleOf"])) if schema.get("multipleOf") else None
    if whole:
        step = Fraction(1) if step is None else _common(float(step), 1)
    if step is None and low is not None and high is not None and 0 < high - low < 2:
        return _plain(low + (high - low) / 8 * (n % 9))  # there may be no whole number between the two
    step = step or Fraction(1)
    return _plain(step * _nearest(low, high, step, n))


def _nearest(low: Fraction | None, high: Fraction | None, step: Fraction, n: int) -> int:
    """Return a factor of `step`: variant 0 is the multiple in the range that is nearest to zero."""
    first = None if low is None else math.ceil(low / step)
    last = None if high is None else math.floor(high / step)
    if first is not None and last is not None:
        start = min(max(0, first), last)
        return first + (start - first + n) % max(1, last - first + 1)
    if first is not None:
        return max(0, first) + n
    if last is not None:
        return min(0, last) - n
    return n


def _bound(schema: Schema, closed: str, open: str) -> Fraction | None:
    """Return the stricter of the two bounds. The validator decides whether it is itself in the range."""
    found = [
        Fraction(str(schema[name]))
        for name in (closed, open)
        if isinstance(schema.get(name), int | float) and not isinstance(schema[name], bool)
    ]
    return (max if closed == "minimum" else min)(found) if found else None


def _plain(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


def _same(one: Any, other: Any) -> bool:
    """Compare two values as JSON: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def text_for(pattern: str, n: int = 0, least: int = 0) -> str:
    """Variant `n` of a text that matches, with at least `least` characters if the pattern permits it. Where none can be
    made, as for a look-around, it is the plainest text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the parser, about future syntax
        try:
            parts: Any = import_module("re._parser").parse(pattern)  # private, and there since Python has `re`
        except (re.error, RecursionError, OverflowError):
            return "example"
    text = ""
    for more in (0, 1, 2, 4, 8, 16, 32, 64, 128, 512, least):
        text = _Writer(n, more).text(parts)
        if len(text) >= least:
            break
    return text


class _Writer:
    """`n` chooses among what is possible, `more` is added to the repetitions."""

    def __init__(self, n: int, more: int) -> None:
        self._n = n
        self._more = more
        self._groups: dict[int, str] = {}
        self._length = 0

    def text(self, parts: Iterable[tuple[Any, Any]]) -> str:
        return "".join(self._part(str(kind), given) for kind, given in parts)

    def _part(self, kind: str, given: Any) -> str:
        match kind:
            case "LITERAL":
                return chr(given)
            case "NOT_LITERAL":
                return self._choose(lambda char: char != chr(given))
            case "ANY":
                return self._choose(lambda char: True)
            case "IN":
                return self._in(given)
            case "BRANCH":
                branches = given[1]
                return self.text(branches[self._n % len(branches)])
            case "SUBPATTERN":
                text = self.text(given[3])
                if given[0] is not None:
                    self._groups[given[0]] = text
                return text
            case "ATOMIC_GROUP":
                return self.text(given)
            case "GROUPREF":
                return self._groups.get(given, "")
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                return self._repeated(*given)
            case _:  # AT, ASSERT and what else has no text of its own
                return ""

    def _repeated(self, least: int, most: int, inner: Any) -> str:
        times = min(least + self._more + (1 if least == 0 and self._n % 2 else 0), int(most))
        found: list[str] = []
        for _ in range(times):
            if self._length > LENGTH_MAX:
                break
            found.append(self.text(inner))
            self._length += len(found[-1])
        return "".join(found)

    def _in(self, given: list[tuple[Any, Any]]) -> str:
        negated = str(given[0][0]) == "NEGATE"
        tests = [_test(str(kind), value) for kind, value in given if str(kind) != "NEGATE"]
        if negated:
            return self._choose(lambda char: not any(test(char) for test in tests))
        known = self._choose(lambda char: any(test(char) for test in tests))
        if any(test(known) for test in tests):
            return known
        kind, value = given[0]  # letters that are not in the list above
        return chr(value[0] if str(kind) == "RANGE" else value) if str(kind) in ("RANGE", "LITERAL") else known

    def _choose(self, fits: Callable[[str], bool]) -> str:
        found = [char for char in _LETTERS if fits(char)]
        return found[self._n % len(found)] if found else "a"


def _test(kind: str, value: Any) -> Callable[[str], bool]:
    match kind:
        case "LITERAL":
            return lambda char: ord(char) == value
        case "RANGE":
            return lambda char: bool(value[0] <= ord(char) <= value[1])
        case _:
            name = str(value)
            chars = _CLASSES.get(name.replace("_NOT_", "_"), "")
            return lambda char: (char in chars) != ("_NOT_" in name)
