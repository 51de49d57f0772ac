"""JSON Schemas of Python types: params, outputs and forms of functions that people write.

msgspec knows its structs, dataclasses, TypedDicts, enums, dates and plain types, with constraints in
`Annotated[int, msgspec.Meta(ge=1)]`; models of pydantic have their own schema. Values are converted in both directions:
JSON to the types (`read`), and the result of a function to JSON (`write`).

References between definitions are replaced by their targets, because forms and the checks of references read schemas in
place. A type that contains itself has no schema inside itself: any value fits there, and `read` checks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import CoroutineType
from typing import Any, Final, get_origin

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
    if not is_model(type):
        raise NotImplementedError
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
