"""Tables of parameters and fields: names, types and defaults of the signature, with the texts of docstrings, or of the
params of a block type."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import griffe

from docs.site.python_text import Docstring
from executor.blocks.types.registry import Registry


class Row(NamedTuple):
    names: list[str]
    annotation: str | griffe.Expr | None = None
    default: str | None = None
    text: str = ""


def rows_of(found: griffe.Object, value: Any) -> list[Row]:
    """Return the rows of a function's parameters, or of the fields or parameters of a class. `value`: the class at run
    time."""
    text = Docstring.read(found.docstring.value) if found.docstring else Docstring("", [], "")
    known = {row.names[0]: row for row in _known(found)}
    texts = {name: about for names, about in text.parameters for name in names}
    if isinstance(found, griffe.Class):
        fields = _fields(found)
        if fields:
            others = [Row(names, text=about) for names, about in text.parameters if not {*names} & {*fields}]
            return [row._replace(text=texts.get(name, "")) for name, row in fields.items()] + others
        texts |= _params_of(value)
        if params := [row._replace(text=texts[name]) for name, row in known.items() if name in texts]:
            return params
    return [_joined(names, known, about) for names, about in text.parameters]


def _joined(names: list[str], known: Mapping[str, Row], about: str) -> Row:
    """Return a row of several names; of one type, if they have the same."""
    types = {str(known[name].annotation): known[name].annotation for name in names if name in known}
    default = known[names[0]].default if len(names) == 1 and names[0] in known else None
    return Row(names, next(iter(types.values())) if len(types) == 1 else None, default, about)


def _known(found: griffe.Object) -> list[Row]:
    start = found.all_members.get("__init__") if isinstance(found, griffe.Class) else found
    if isinstance(start, griffe.Alias):
        start = start.final_target
    if not isinstance(start, griffe.Function):
        return []
    return [
        Row([one.name], one.annotation, None if one.default is None else str(one.default)) for one in start.parameters
    ]


def _fields(made: griffe.Class) -> dict[str, Row]:
    """Return the fields of a record, by name."""
    start = made.members.get("__init__")
    inside = range(start.lineno or 0, (start.endlineno or 0) + 1) if start is not None else range(0)
    return {
        name: Row([name], value.annotation, None if value.value is None else str(value.value))
        for name, value in made.members.items()
        if isinstance(value, griffe.Attribute) and value.annotation is not None and value.lineno not in inside
        and not name.startswith("_") and not name.isupper() and "property" not in value.labels
    }  # fmt: skip


@cache
def registry() -> Registry:
    return Registry.load()


def _params_of(value: Any) -> dict[str, str]:
    """Return the texts of the params of a class of the builder, by its arguments."""
    spec = registry().get(str(getattr(value, "type", "")))
    if spec is None:
        return {}
    properties: Mapping[str, Mapping[str, Any]] = spec.params.get("properties", {})
    renamed = {argument: param for argument, (_, param) in value.MODES.items()} | dict(value.RENAMED)
    arguments = {param: argument for argument, param in renamed.items()}
    return {
        arguments.get(name, name): str(schema.get("description") or schema.get("title") or "")
        for name, schema in properties.items()
    }
