"""Types and functions of Python as JSON Schemas: params, outputs and forms of blocks, steps and people.

msgspec knows its structs, dataclasses, TypedDicts, enums, dates and plain types, with constraints in
`Annotated[int, msgspec.Meta(ge=1)]`; models of pydantic have their own schema. Values are converted in both directions:
JSON to the types (`read`), and the result of a function to JSON (`write`).

References between definitions are replaced by their targets, because forms and the checks of references read schemas in
place. A type that contains itself has no schema inside itself: any value fits there, and `read` checks it.

    def quote(item: str, amount: Annotated[int, msgspec.Meta(ge=1)] = 1) -> Quote:
        '''Price of an item.

        Args:
            item: name in the catalogue
        '''

A parameter named `ctx` is not a param: it receives the context of the attempt. Every other parameter is one, by name.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import CoroutineType, NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

DEPTH_MAX: Final = 20  # of types in types
_DEFINITIONS: Final = "#/$defs/"


class TypeUnknown(TypeError):
    """The type has no JSON Schema."""


class Unfit(ValueError):
    """A value that is not of its type. `pointer` is its place in the value, as a JSON pointer."""

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.pointer = pointer


class Param(Struct, frozen=True, kw_only=True):
    """Options of a param, in its annotation: `Annotated[str, Param(secret=True)]`.

    title, description  of the field; without them the name, and the line of the docstring
    secret    the field may hold `${NAME}` of a stored secret, and no other field may
    literal   references in the value are left alone
    widget    control of the form if not that of the type; see compiler.catalog
    rows      lines of a `longtext`
    advanced  the field is shown with the rarely needed ones
    """

    title: str = ""
    description: str = ""
    secret: bool = False
    literal: bool = False
    widget: str = ""
    rows: int = 0
    advanced: bool = False


def schema_of(type: Any) -> dict[str, Any]:
    """{} for any value. Raises TypeUnknown."""
    try:
        (schema,), definitions = msgspec.json.schema_components(
            [type], schema_hook=_schema_of_model, ref_template=_DEFINITIONS + "{name}"
        )
    except (TypeError, NameError) as error:
        raise TypeUnknown(f"{shown(type)} has no JSON Schema: {error}") from error
    found: dict[str, Any] = _simple(_in_place(schema, definitions, ()))
    return found


def read(type: Any, value: Any) -> Any:
    """Convert a JSON value to the type. Raises Unfit."""
    try:
        return msgspec.convert(value, type, dec_hook=_read_model)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `")
        raise Unfit(message.split("\n    For further", 1)[0], _pointer(place.rstrip("`"))) from error


def write(value: Any) -> Any:
    """A value as JSON can hold it. Raises Unfit."""
    if isinstance(value, CoroutineType):
        value.close()
        raise Unfit("a coroutine: put `await` in front of the call that made it")
    try:
        return msgspec.to_builtins(value, enc_hook=_write_model, str_keys=True)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise Unfit(f"a value of type {shown(type(value))}, which cannot be written as JSON: {error}") from error


def shown(type: Any) -> str:
    """Return the type as it is written in code."""
    if get_origin(type) is None and isinstance(name := getattr(type, "__qualname__", None), str):
        return name
    return str(type).replace("typing.", "")


def is_model(type: Any) -> bool:
    """Return whether it is a model of pydantic. Decided by its methods: the library is not loaded for the question."""
    return hasattr(type, "model_json_schema") and hasattr(type, "model_validate")


def _schema_of_model(type: Any) -> dict[str, Any]:
    if isinstance(own := getattr(type, "json_schema", None), dict):
        return own
    if not is_model(type):
        raise NotImplementedError  # the hooks of msgspec refuse a type by this error
    schema: dict[str, Any] = type.model_json_schema()
    found: dict[str, Any] = _in_place(schema, schema.pop("$defs", {}), ())
    return found


def _read_model(type: Any, value: Any) -> Any:
    if not is_model(type):
        raise NotImplementedError
    return type.model_validate(value)  # its error is a ValueError: msgspec adds the place


def _write_model(value: Any) -> Any:
    if not is_model(type(value)):
        raise NotImplementedError(f"{shown(type(value))} is not supported")
    return value.model_dump(mode="json")


def _in_place(part: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    """Replace each reference by its definition. `inside` are the names of the definitions around."""
    if isinstance(part, list):
        return [_in_place(item, definitions, inside) for item in part]
    if not isinstance(part, dict):
        return part
    name = part.get("$ref")
    if not isinstance(name, str) or not name.startswith(_DEFINITIONS):
        return {key: _in_place(value, definitions, inside) for key, value in part.items()}
    name = name.removeprefix(_DEFINITIONS)
    if name in inside or len(inside) == DEPTH_MAX or name not in definitions:
        return {}
    beside = {key: value for key, value in part.items() if key != "$ref"}
    return {**_in_place(definitions[name], definitions, (*inside, name)), **beside}


def _simple(part: Any) -> Any:
    """`int | None` as `{"type": ["integer", "null"]}`, which every form can show."""
    if isinstance(part, list):
        return [_simple(item) for item in part]
    if not isinstance(part, dict):
        return part
    part = {key: value if key in ("default", "enum", "const") else _simple(value) for key, value in part.items()}
    options = part.get("anyOf")
    if isinstance(options, list) and len(options) == 2 and {"type": "null"} in options:
        one: dict[str, Any] = next((option for option in options if option != {"type": "null"}), {})
        if isinstance(one.get("type"), str) and "enum" not in one and "anyOf" not in one:
            rest = {key: value for key, value in part.items() if key != "anyOf"}
            return {**one, "type": [one["type"], "null"], **rest}
    return part


def _pointer(place: str) -> str:
    """`$.items[0].name` of msgspec as a JSON pointer; `[...]` is some item, and the pointer ends there."""
    pointer = ""
    for part in place.removeprefix("$").replace("[", ".[").split("."):
        if part.startswith("[") and part[1:-1].isdigit():
            pointer += f"/{part[1:-1]}"
        elif part.startswith("["):
            break
        elif part:
            pointer += "/" + part.replace("~", "~0").replace("/", "~1")
    return pointer


CONTEXT: Final = "ctx"
PARAMS_MAX: Final = 100

_ARGS: Final = re.compile(r"(?m)^(?:Args|Arguments|Parameters|Params|Attributes):[ \t]*$")
_ARG: Final = re.compile(r"(?:\*{0,2})(\w+)(?:\s*\([^)]*\))?:\s*(.*)")
_FIELD: Final = re.compile(r"(?m)^:param (?:[^:]* )?(\w+):[ \t]*(.*)$")
_SECTION: Final = re.compile(r"(?m)^(?:\w+:[ \t]*$|:\w+)")


class SignatureUnusable(TypeError):
    """A function or class that cannot be called with params, and why."""


class Parameter(Struct, frozen=True):
    """One param. `type` is its annotation, `Any` without one. `schema` has title, description and hints of the form."""

    name: str
    type: Any
    schema: dict[str, Any]
    required: bool


class Signature(Struct, frozen=True):
    """The params and the result of a function. `summary` is the first paragraph of the docstring; `returns` the
    annotation, or None without one; `context` is true if the function has a parameter `ctx`."""

    name: str
    title: str
    summary: str
    parameters: tuple[Parameter, ...]
    context: bool
    returns: Any = None

    @property
    def params(self) -> dict[str, Any]:
        required = [one.name for one in self.parameters if one.required]
        return object_of({one.name: one.schema for one in self.parameters}, required)

    def arguments(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return params (JSON) converted to the types; those that have a default may be missing, or null unless their
        type has a null. Raises Unfit, with a pointer into the params."""
        known = {one.name for one in self.parameters}
        for name in params:
            if name not in known:
                raise Unfit(f"{self.name} has no param {name!r}", f"/{name}")
        found: dict[str, Any] = {}
        for one in self.parameters:
            if one.name not in params:
                if one.required:
                    raise Unfit(f"{one.name} is required", f"/{one.name}")
                continue
            value = params[one.name]
            if value is None and not one.required and not _takes_null(one.type):
                continue
            try:
                found[one.name] = read(one.type, value)
            except Unfit as error:
                raise Unfit(f"{one.name}: {error.message}", f"/{one.name}{error.pointer}") from error
        return found


def signature_of(function: Callable[..., Any]) -> Signature:
    """Return the signature of a function. Raises SignatureUnusable, TypeUnknown."""
    name = function.__name__
    parameters = inspect.signature(function).parameters.values()
    for one in parameters:
        if one.kind in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL, one.VAR_KEYWORD):
            message = f"{name}: the parameter {one} has no name that a param could have; use plain parameters"
            raise SignatureUnusable(message)
    hints = _hints(function, name, [*(one.name for one in parameters), "return"])
    fields = ((one.name, hints.get(one.name, Any), one.default) for one in parameters if one.name != CONTEXT)
    return _signature(
        name, inspect.getdoc(function) or "", fields, CONTEXT in inspect.signature(function).parameters, hints
    )


def fields_of(type: type) -> Signature:
    """Return the fields of a class (a dataclass, a msgspec Struct, a model of pydantic) as params. Raises
    SignatureUnusable, TypeUnknown."""
    try:
        hints = get_type_hints(type, include_extras=True)
    except NameError as error:
        raise SignatureUnusable(f"{type.__name__}: an annotation cannot be resolved: {error}") from error
    fields = (
        (one.name, hints.get(one.name, Any), one.default)
        for one in inspect.signature(type).parameters.values()
        if one.name != CONTEXT
    )
    doc = type.__dict__.get("__doc__") or ""
    if doc.startswith(f"{type.__name__}("):  # the docstring that dataclass writes when there is none
        doc = ""
    return _signature(type.__name__, inspect.cleandoc(doc), fields, False, {})


def returns_of(function: Callable[..., Any]) -> Any:
    """Return the annotation of the result, or None without one. Raises SignatureUnusable."""
    return _hints(function, function.__qualname__, ("return",)).get("return")


def output_of(returns: Any, outcomes: tuple[type, ...] = ()) -> dict[str, Any] | None:
    """Return the schema of the result, or None if nothing is known. `outcomes` are types that are no outputs. Raises
    TypeUnknown."""
    options = get_args(returns) if get_origin(returns) in (Union, UnionType) else (returns,)
    if returns is None or returns is Any or any(option in outcomes for option in options):
        return None
    return schema_of(returns) or None


def words_of(name: str) -> str:
    """`fetch_price` and `FetchPrice` as `Fetch price`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").strip()
    return spaced[:1].upper() + spaced[1:].lower() if not spaced.isupper() else spaced


def _signature(
    name: str, doc: str, fields: Iterable[tuple[str, Any, Any]], context: bool, hints: Mapping[str, Any]
) -> Signature:
    about = dict(_described(doc))
    parameters: list[Parameter] = []
    for order, (field, type, default) in enumerate(fields, 1):
        if order > PARAMS_MAX:
            raise SignatureUnusable(f"{name}: more than {PARAMS_MAX} params")
        try:
            schema = _of_field(field, type, order, about.get(field, ""))
        except TypeUnknown as error:
            raise TypeUnknown(f"{name}: the parameter {field}: {error}") from error
        required = default is inspect.Parameter.empty
        if not required and default is not None:
            try:
                schema["default"] = write(default)
            except Unfit:
                schema.pop("default", None)  # made for each call: a factory
        parameters.append(Parameter(field, type, schema, required))
    return Signature(name, words_of(name), _summary(doc), tuple(parameters), context, hints.get("return"))


def _hints(function: Callable[..., Any], name: str, wanted: Collection[str]) -> dict[str, Any]:
    """Each by itself: that of `ctx` may be imported for the type checker alone."""
    plain = inspect.unwrap(function)
    place = getattr(plain, "__globals__", {})
    around = dict(inspect.getclosurevars(plain).nonlocals) if inspect.isfunction(plain) else {}
    hints: dict[str, Any] = {}
    for of, annotation in inspect.get_annotations(function).items():
        if of == CONTEXT or of not in wanted:
            continue
        one = SimpleNamespace(__annotations__={of: annotation})
        try:
            hints |= get_type_hints(one, globalns=place, localns=around, include_extras=True)
        except NameError as error:
            where = "the result" if of == "return" else f"the parameter {of}"
            raise SignatureUnusable(f"{name}: the annotation of {where} cannot be resolved: {error}") from error
    return hints


def _of_field(name: str, type: Any, order: int, about: str) -> dict[str, Any]:
    own = next((one for one in _extras(type) if isinstance(one, Param)), Param())
    weft = "secret" if own.secret else "literal" if own.literal else ""
    keywords = {"title": own.title or words_of(name), "description": own.description or about, "x-weft": weft}
    hints = {"order": order, "widget": own.widget, "rows": own.rows, "advanced": own.advanced}
    schema = schema_of(type)
    _titled(schema)
    return field_of(schema, _filled(keywords), _filled(hints))


def _filled(keywords: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in keywords.items() if value}


def field_of(schema: Mapping[str, Any], keywords: Mapping[str, Any], hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a type as that of a param: `keywords` go before its own, `hints` are of the form."""
    found = {**schema, **keywords}
    return {**found, "x-ui": {"widget": widget_of(found), **hints}}


def object_of(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """Return the JSON Schema of an object that has these properties alone."""
    needed = {"required": required} if required else {}
    return {"type": "object", **needed, "additionalProperties": False, "properties": properties}


def _titled(schema: dict[str, Any]) -> None:
    """Fields of objects have titles and controls, too."""
    items = schema.get("items")
    if isinstance(items, dict):
        items.pop("title", None)
        _titled(items)
    for order, (name, inner) in enumerate((schema.get("properties") or {}).items(), 1):
        if isinstance(inner, dict):
            inner["title"] = words_of(name)
            _titled(inner)
            inner.setdefault("x-ui", {"order": order, "widget": widget_of(inner)})


def widget_of(schema: Mapping[str, Any]) -> str:
    kinds = schema.get("type")
    kind = next((one for one in kinds if one != "null"), None) if isinstance(kinds, list) else kinds
    if "enum" in schema:
        return "select"
    if kind == "object":
        return "fields" if schema.get("properties") else "keyvalues"
    if kind == "array":
        return "list" if schema.get("items") else "json"
    return {"string": "text", "integer": "number", "number": "number", "boolean": "boolean"}.get(str(kind), "json")


def _extras(type: Any) -> tuple[Any, ...]:
    return type.__metadata__ if get_origin(type) is Annotated else ()


def _takes_null(type: Any) -> bool:
    if get_origin(type) is Annotated:
        return _takes_null(type.__origin__)
    return type is Any or type is None or NoneType in get_args(type)


def _summary(doc: str) -> str:
    return " ".join(doc.split("\n\n", 1)[0].split()) if not _SECTION.match(doc) else ""


def _described(doc: str) -> Iterator[tuple[str, str]]:
    """Return names of parameters and their descriptions in the docstring: below `Args:`, and `:param name:`."""
    for found in _FIELD.finditer(doc):
        yield found[1], found[2].strip()
    start = _ARGS.search(doc)
    if start is None:
        return
    lines = doc[start.end() :].lstrip("\n").split("\n")
    indent = len(lines[0]) - len(lines[0].lstrip())
    name, said = "", ""
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if line.strip() and depth < max(indent, 1):
            break
        begins = _ARG.match(line.strip()) if depth == indent else None
        if begins is not None:
            if name:
                yield name, said.strip()
            name, said = begins[1], begins[2]
        elif line.strip():
            said += f" {line.strip()}"
    if name:
        yield name, said.strip()


def is_struct(type: Any) -> bool:
    """Return whether it is a class with fields that params can fill."""
    return isinstance(type, msgspec.StructMeta) or hasattr(type, "__dataclass_fields__") or is_model(type)
