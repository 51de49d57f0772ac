"""The params of a block type as a class: its JSON Schema and form follow from the fields, and a handler reads typed
values.

    class Quote(TypedParams):
        item: str = param("Item", "Name in the catalogue.", required=True)
        amount: int = param("Amount", "How many.", default=1, minimum=1, maximum=100)
        note: str | None = param("Note", "For the invoice.", widget="longtext", rows=2, advanced=True)

    quote = Quote(ctx.params)

Params come from forms and references: a number may be given as text, and an empty text is no value. A class made of
another one has its fields, too. A field named `from_` is the param `from`. `Any` gives the value as it is.

Three keywords of params are for the editor, beside "x-ui" (see compiler.catalog):
  "x-titles"  {value: label} of an "enum": the label of a choice in the form. Every value has a label, or none
  "x-when"    {param: [values]}: the field is shown only while each named param has one of these values (its default
              counts) or is a reference; a field that has a value is never hidden
  "x-required"  {param: [values]}: the field is marked as required while the named param has one of these values; the
              `check` of the block type enforces it
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from inspect import get_annotations
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

import orjson
from msgspec import Struct

from compiler.catalog import Finding
from compiler.schema import schema_error
from compiler.signature import field_of, object_of, schema_of
from executor.errors import BlockError
from executor.kernel.values.coerce import coerce, truthy

HANDLE_PATTERN = "^[A-Za-z0-9_.-]{1,128}$"
FILLED = r"\S"  # the pattern of a text that must not be blank
SECONDS_MAX = 10 * 366 * 86_400
LISTED_MAX = 10  # names of functions in a message


class Field(Struct, frozen=True):
    """A param: the keywords of its schema, without those that follow from its annotation."""

    keywords: dict[str, Any]
    ui: dict[str, Any]
    default: Any = None
    required: bool = False


def param(
    title: str = "",
    description: str = "",
    *,
    default: Any = None,
    required: bool = False,
    order: float | None = None,
    widget: str = "",
    ui: Mapping[str, Any] | None = None,
    weft: Literal["secret", "literal", "expression", "code"] | None = None,
    url: bool = False,
    choices: Mapping[str, str] | None = None,
    titles: Mapping[str, str] | None = None,
    when: Mapping[str, Sequence[str]] | None = None,
    needed: Mapping[str, Sequence[str]] | None = None,
    rows: int | None = None,
    advanced: bool = False,
    **keywords: Any,
) -> Any:
    """Declare a param. `order`: its place in the form, by default that in the class; `ui`: more for its control;
    `weft`: what its texts may hold ("x-weft"); `choices`: its values and their labels; `titles`,
    `when`, `needed` ("x-required"): see above. Other keywords are those of JSON Schema."""
    enum = None if choices is None else list(choices)
    extra = {"enum": enum, "x-weft": weft, "x-titles": choices or titles, "x-when": when, "x-url": url or None}
    extra["x-required"] = needed
    about = {"title": title or None, "description": description or None, "default": default}
    shown = {"order": order, "widget": widget or None, "rows": rows, "advanced": advanced or None, **(ui or {})}
    return Field(_given(about | extra) | keywords, _given(shown), default, required)


def changed(field: Any, **keywords: Any) -> Any:
    """Declare a param as another one is, with these keywords instead of its own."""
    again: Field = param(**keywords)
    default = field.default if again.default is None else again.default
    return Field(field.keywords | again.keywords, field.ui | again.ui, default, field.required or again.required)


# The types of most params: one by one, schemas of them are a tenth of loading all block types.
_PLAIN: dict[Any, dict[str, Any]] = {kind: schema_of(kind) for kind in (str, int, float, bool)}


class TypedParams:
    """Base of the params of a block type, and of objects in them. Made of params, it has an attribute for each."""

    declared: ClassVar[dict[str, Field]] = {}
    json_schema: ClassVar[dict[str, Any]] = {}
    _hints: ClassVar[dict[str, Any]] = {}
    # of each field: the attribute, the param, its reader, its default, and True if it must be there
    _readers: ClassVar[list[tuple[str, str, Callable[[str, Any], Any], Any, bool]]] = []

    def __init_subclass__(
        cls,
        when: Mapping[str, Sequence[str]] | None = None,
        shift: int = 0,
        required: Sequence[str] = (),
        literal: bool = False,
    ) -> None:
        """`when`, `shift`, `required`: of the fields of other classes, which are shown only then, so many places later,
        and of which these are required. `literal`: references in its own fields are left alone."""
        more = {"x-weft": "literal"} if literal else {}
        own = {
            name: Field(more | value.keywords, value.ui, value.default, value.required)
            for name, value in vars(cls).items()
            if isinstance(value, Field)
        }
        inherited = {
            name: Field(
                field.keywords | _given({"x-when": when}),
                field.ui | {"order": field.ui["order"] + shift},
                field.default,
                field.required or name in required,
            )
            for base in cls.__bases__
            for name, field in getattr(base, "declared", {}).items()
        }
        for order, (name, field) in enumerate(own.items(), 1):
            own[name] = Field(field.keywords, {"order": order, **field.ui}, field.default, field.required)
        cls.declared = {**inherited, **own}
        # The annotations of this class alone: `get_type_hints` evaluates those of its bases again, and is dearer.
        hints = {name: hint for base in cls.__bases__ for name, hint in getattr(base, "_hints", {}).items()}
        cls._hints = hints | get_annotations(cls, eval_str=True)
        parts = {name: _Type(cls._hints[name], field) for name, field in cls.declared.items()}
        names = {name: name.rstrip("_") for name in parts}
        cls._readers = [
            (name, names[name], part.read, field.default, field.required and field.default is None)
            for (name, part), field in zip(parts.items(), cls.declared.values(), strict=True)
        ]
        needed = [names[name] for name, field in cls.declared.items() if field.required]
        cls.json_schema = object_of({names[name]: part.schema for name, part in parts.items()}, needed)

    def __init__(self, params: Mapping[str, Any]) -> None:
        """Raises BlockError(params_invalid)."""
        values = self.__dict__
        for attribute, name, read, default, needed in self._readers:
            value = params.get(name)
            values[attribute] = default if value is None and not needed else read(name, value)


class _Type:
    """The annotation of a field: its schema, and how a value is read."""

    def __init__(self, annotation: Any, field: Field) -> None:
        options = [one for one in _options(annotation) if one is not NoneType]
        kind = options[0] if len(options) == 1 else Any
        origin = get_origin(kind) or kind
        whole = get_args(kind)[0] if origin is list and get_args(kind) else kind
        self._field = field
        self._nested = whole if isinstance(whole, type) and issubclass(whole, TypedParams) else None
        if origin is Literal:
            schema: dict[str, Any] = {"enum": list(get_args(kind))}  # in the order of the form; msgspec sorts them
        else:
            schema = {} if field.keywords.keys() & {"enum", "anyOf"} else {**(_PLAIN.get(kind) or schema_of(kind))}
        self.schema = field_of(schema, field.keywords, field.ui)
        self.read = self._reader(origin)

    def _reader(self, origin: Any) -> Callable[[str, Any], Any]:
        if origin is Any:
            return self._as_it_is
        if origin is list:
            return self._list
        if origin is dict or self._nested is not None:
            return self._object
        if "enum" in self.schema:
            return self._choice
        return {str: self._text, float: self._number, int: self._number, bool: self._boolean}[origin]

    def _as_it_is(self, name: str, value: Any) -> Any:
        return self._field.default if value is None else value

    def _text(self, name: str, value: Any) -> Any:
        found = as_text(name, value)
        blank = found is None or (self.schema.get("pattern") == FILLED and not found.strip())
        return self._missing(name) if blank else found

    def _boolean(self, name: str, value: Any) -> Any:
        return self._missing(name) if value is None else truthy(coerce("boolean", value))

    def _choice(self, name: str, value: Any) -> Any:
        chosen = as_text(name, value)
        if chosen is None:
            return self._missing(name)
        choices = self.schema["enum"]
        if chosen not in choices and chosen.upper() in choices:
            return chosen.upper()
        if chosen not in choices:
            raise invalid(f"{name} must be one of {', '.join(choices)}, not {chosen[:40]!r}")
        return chosen

    def _number(self, name: str, value: Any) -> Any:
        number = coerce(self.schema["type"], value)
        if number is None or number == "":
            return self._missing(name)
        whole = self.schema["type"] == "integer"
        fits = isinstance(number, int) or (not whole and isinstance(number, float) and math.isfinite(number))
        least, most = self.schema.get("minimum", -math.inf), self.schema.get("maximum", math.inf)
        above = self.schema.get("exclusiveMinimum", -math.inf)
        if isinstance(number, bool) or not fits or not least <= number <= most or number <= above:
            raise invalid(f"{name} must be a {_range(self.schema)}, not {str(value)[:80]!r}")
        return number if whole else float(number)

    def _object(self, name: str, value: Any) -> Any:
        if value in (None, "", {}):
            return self._missing(name)
        if not isinstance(value, Mapping):
            raise invalid(f"{name} must be an object")
        return value if self._nested is None else self._nested(value)

    def _list(self, name: str, value: Any) -> Any:
        if value in (None, ""):
            return self._missing(name)
        if not isinstance(value, list):
            raise invalid(f"{name} must be a list")
        if self._nested is None:
            return value
        if not all(isinstance(item, Mapping) for item in value):
            raise invalid(f"each item of {name} must be an object")
        return [self._nested(item) for item in value]

    def _missing(self, name: str) -> Any:
        if self._field.required and self._field.default is None:
            raise invalid(f"{self.schema['title']} is required")
        return self._field.default


def _options(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _given(keywords: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in keywords.items() if value is not None}


def _range(schema: Mapping[str, Any]) -> str:
    kind = "whole number" if schema["type"] == "integer" else "number"
    least, most, above = (schema.get(name) for name in ("minimum", "maximum", "exclusiveMinimum"))
    low = f" above {above:g}" if above is not None else "" if least is None else f" from {least}"
    high = "" if most is None else f" to {most}" if least is not None else f" up to {most}"
    return f"{kind}{low}{high}"


# Params that several block types have.
FIELD_TITLES: dict[str, str] = {
    "string": "Text",
    "number": "Number",
    "integer": "Whole number",
    "boolean": "True or false",
    "object": "Object",
    "array": "List",
    "any": "Any",
}
CASE_ID: Any = param(
    "Id", "Name of the branch in connections: letters, digits, _ . and -", required=True, pattern=HANDLE_PATTERN
)
CASE_TITLE: Any = param("Title", "Shown on the connection.")
ENABLED: Any = param(
    "Enabled", "Can also be changed later without publishing a new version.", default=True, weft="literal"
)
HEADERS: Any = param("Headers", type="object", additionalProperties={"type": ["string", "number", "boolean", "null"]})
# Headers of a request, which is bound to the hosts of its secrets.
SENT_HEADERS: Any = changed(HEADERS, description="Use ${NAME} for secrets.", weft="secret")
ITEMS: Any = param(
    "Items",
    "A list, an object (read as [key, value] pairs), or a reference to one.",
    when={"mode": ["each"]},
    widget="reference",
)
RESULTS: Any = param(
    "Results include",
    default="ends",
    choices={"ends": "Lists of the last blocks", "value": "The last block", "all": "Lists of all blocks"},
    weft="literal",
)
EXPIRES_IN_S: Any = param(
    "Expires after (seconds)", "Leave empty to wait indefinitely.", order=8, exclusiveMinimum=0, maximum=SECONDS_MAX
)
REMIND_BEFORE_S: Any = param(
    "Remind before it expires (seconds)",
    "Those who were notified of the question are notified once more, this long before, if there is no answer yet.",
    order=9.5,
    exclusiveMinimum=0,
    maximum=SECONDS_MAX,
)
EXPIRE_TITLES = {"fail": "Fail the block", "continue": "Continue with null", "skip": "Skip the block"}


class Expiring(TypedParams):
    """Params of a block that waits, perhaps not for ever."""

    expires_in_s: float | None = EXPIRES_IN_S
    on_expire: str = param(
        "When it expires",
        "What happens when no answer arrives in time.",
        default="fail",
        order=9,
        type="string",
        choices=EXPIRE_TITLES,
    )


def shape(**fields: Any) -> dict[str, Any]:
    """Return the JSON Schema of an object with these fields; the name of a type, or a list of names, is a schema."""
    named = {name: {"type": one} if isinstance(one, str | list) else one for name, one in fields.items()}
    return {"type": "object", "properties": named}


def invalid(message: str, hint: str = "") -> BlockError:
    """Return the error of an invalid param. Trying again would not change that."""
    return BlockError(message, code="params_invalid", retryable=False, hint=hint)


def text(params: Mapping[str, Any], name: str) -> str | None:
    """Return the param as text, or None if it is missing, null or empty. Numbers and booleans are written as JSON."""
    return as_text(name, params.get(name))


def as_text(name: str, value: Any) -> str | None:
    """`text` of a value. `name`: of its param, for messages."""
    if isinstance(value, str):
        return value or None
    if value is None:
        return None
    if isinstance(value, dict | list):
        raise invalid(f"{name} must be text, not {'an object' if isinstance(value, dict) else 'a list'}")
    return str(coerce("string", value))


def expiry_ms(expires_in_s: float | None, now_ms: int) -> int | None:
    """Return when a wait expires (Unix ms), or None if it never does."""
    return None if expires_in_s is None else now_ms + round(expires_in_s * 1000)


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
    if (problem := schema_problem(schema)) is not None:
        raise invalid(f"fields is not a JSON Schema: {problem}")
    return schema


def schema_problem(schema: Any) -> str | None:
    """Return why an object is not a JSON Schema, or None. Nothing is wrong with other values: a schema checks them."""
    problem = schema_error(orjson.dumps(schema)) if isinstance(schema, dict) and schema else None
    return None if problem is None else problem[:300]


def function_params(names: Iterable[str], about: str) -> dict[str, Any]:
    """Return the schema of params with the name of one of these functions, and its arguments. `about` describes the
    functions."""
    function = {"enum": sorted(names), "title": "Function", "description": about}
    arguments = {"type": "object", "title": "Arguments", "description": "Arguments of the function, by name."}
    shown = {
        "function": {**function, "x-ui": {"order": 1, "widget": "select"}},
        "arguments": {**arguments, "x-ui": {"order": 2, "widget": "keyvalues"}},
    }
    return {"type": "object", "required": ["function"], "additionalProperties": False, "properties": shown}


def lacking_function(kind: str, params: Mapping[str, Any], names: Collection[str]) -> str | None:
    """Return what `Block.lacks` says of params that name a function which is not among these. The name may be a
    reference, which is not known yet."""
    name = params.get("function")
    if not isinstance(name, str) or "<" in name or name in names:
        return None
    if not names:
        return f"{kind} {name!r} (this process has no functions)"
    if not names:
        return f"{kind} {name!r} (this process has no functions)"
    first, rest = sorted(names)[:LISTED_MAX], len(names) - LISTED_MAX
    return f"{kind} {name!r} (this process has {', '.join(first)}{f' and {rest} more' if rest > 0 else ''})"


def listed(value: Any) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the objects of a list that an author wrote, with their positions; other values are left out."""
    return [(at, item) for at, item in enumerate(value if isinstance(value, list) else ()) if isinstance(item, dict)]


def repeated(params: Mapping[str, Any], items: str, name: str, what: str) -> list[Finding]:
    """Find the items of a list whose `name` an earlier one has, too."""
    found: list[Finding] = []
    seen: set[str] = set()
    for at, item in listed(params.get(items)):
        text = item.get(name)
        if isinstance(text, str) and text in seen:
            message = f'The {what} "{text[:80]}" is listed twice.'
            found.append(Finding("param_invalid", f"/{items}/{at}/{name}", message))
        elif isinstance(text, str):
            seen.add(text)
    return found


def web_address(url: str, name: str) -> str:
    """Raises BlockError(params_invalid): better at once than in a message that never arrives."""
    if not url.strip().lower().startswith(("http://", "https://")):
        raise invalid(f"{name} must start with http:// or https://, it is {url.strip()[:20]!r}")
    return url.strip()
