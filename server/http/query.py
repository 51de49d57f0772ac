"""Query parameters as structs: one struct is the parser of a request and the description in OpenAPI, so every bound is
written once.

Fields are whole numbers, numbers, texts, flags, or one of several texts; `| None` for those without a default. `Meta`
gives bounds, `description`, and for a number `extra={"cut_at": n}`: larger values count as n.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, get_args

import msgspec
from msgspec import Struct, inspect
from starlette.datastructures import QueryParams

from executor.errors import BadRequest

T = TypeVar("T", bound=Struct)
INTEGER_MAX = 2**53  # the largest whole number that every JSON reader can represent
FLAGS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class Parameter(Struct, frozen=True):
    """One field of a query struct. `parse` raises BadRequest. `schema` is JSON Schema without the description."""

    field: str
    name: str
    required: bool
    description: str
    schema: dict[str, Any]
    hint: str  # for a required parameter that is missing
    parse: Callable[[str], Any]


def read_query(query: QueryParams, type: type[T]) -> T:
    """The query as `type`. An empty parameter counts as absent, an unknown one is ignored. Raises BadRequest (400)."""
    found: dict[str, Any] = {}
    for parameter in parameters_of(type):
        if text := query.get(parameter.name):
            found[parameter.field] = parameter.parse(text)
        elif parameter.required:
            raise BadRequest(f"The query parameter {parameter.name} is missing.", hint=parameter.hint)
    return type(**found)


@cache
def parameters_of(type: type[Struct]) -> tuple[Parameter, ...]:
    """In the order of the fields. Raises TypeError for a field that a query cannot hold."""
    info = inspect.type_info(type)
    assert isinstance(info, inspect.StructType)
    written = (field.type for field in msgspec.structs.fields(type))
    return tuple(_parameter(field, one) for field, one in zip(info.fields, written, strict=True))


def _parameter(field: inspect.Field, written: Any) -> Parameter:
    type = field.type
    described: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    while isinstance(type, (inspect.Metadata, inspect.UnionType)):
        if isinstance(type, inspect.Metadata):
            described |= type.extra_json_schema or {}
            extra |= type.extra or {}
            type = type.type
        else:
            (type,) = (one for one in type.types if not isinstance(one, inspect.NoneType))
    description = described.pop("description", "")
    schema, parse = _kind(field.encode_name, type, extra, written)
    return Parameter(
        field=field.name,
        name=field.encode_name,
        required=field.required,
        description=description,
        schema={**schema, **described},
        hint=extra.get("hint", ""),
        parse=parse,
    )


def _kind(
    name: str, type: inspect.Type, extra: Mapping[str, Any], written: Any
) -> tuple[dict[str, Any], Callable[[str], Any]]:
    match type:
        case inspect.IntType(ge=minimum, le=maximum):
            low, high = minimum or 0, INTEGER_MAX if maximum is None else maximum
            return {"type": "integer", "minimum": low, "maximum": high}, lambda text: _integer(name, text, low, high)
        case inspect.FloatType(ge=minimum):
            assert minimum == 0, "numbers in queries are lengths of time"
            cut_at = float(extra["cut_at"])
            return {"type": "number", "minimum": 0}, lambda text: _seconds(name, text, cut_at)
        case inspect.BoolType():
            return {"enum": list(FLAGS)}, lambda text: _flag(name, text)
        case inspect.LiteralType():
            allowed = _literals(written)
            return {"enum": allowed}, lambda text: _one_of(name, text, allowed)
        case inspect.StrType():
            return {"type": "string"}, str
        case _:
            raise TypeError(f"the query parameter {name} cannot be of type {type}")


def _literals(written: Any) -> list[str]:
    """The texts in the order in which they are written; msgspec sorts them."""
    found = [one for part in get_args(written) for one in ([part] if isinstance(part, str) else _literals(part))]
    return list(dict.fromkeys(found))


def _integer(name: str, text: str, minimum: int, maximum: int) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 16 or not minimum <= int(text) <= maximum:
        raise BadRequest(f"The query parameter {name} must be a whole number from {minimum} to {maximum}.")
    return int(text)


def _seconds(name: str, text: str, maximum: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:  # also NaN
        raise BadRequest(f"The query parameter {name} must be a number of seconds from 0 to {maximum:g}.")
    return min(value, maximum)


def _flag(name: str, text: str) -> bool:
    value = FLAGS.get(text.lower())
    if value is None:
        raise BadRequest(f"The query parameter {name} must be 1 or 0.")
    return value


def _one_of(name: str, text: str, allowed: list[str]) -> str:
    if text not in allowed:
        raise BadRequest(f"The query parameter {name} must be one of {', '.join(allowed)}.")
    return text
