"""server/client/answers.py: what crosses HTTP as TypedDicts, from the schemas of openapi.json.

To write it after a change of a struct: `npm --prefix web run types`, as for the types of the editor.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from server.api import TABLE
from server.http.openapi import openapi

OUT = Path(__file__).parents[2] / "server" / "client" / "answers.py"
HEAD = '''\
"""The shapes that clients send and receive, made from openapi.json by `npm run types`: change the server's structs, not
this file. /api/openapi.json describes them.

At run time these are plain dicts. A member is NotRequired where the server leaves it out of some answers, or where a
request may leave it out.
"""

# ruff: noqa: E501, E701, E702
# fmt: off

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


'''
_REFERENCE = "#/components/schemas/"
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_WIDTH = 120


def module() -> str:
    """The whole file: one line for a class that fits into it, else as many members in a line as fit."""
    schemas = _reached(openapi(TABLE)["components"]["schemas"])
    fields = {name: _fields(name, schema) for name, schema in schemas.items()}
    bases = {name: _base(fields, name) for name in fields}
    order = TopologicalSorter({name: [base] if (base := bases[name]) else [] for name in sorted(fields)})
    return (
        HEAD
        + "\n".join(line for name in order.static_order() for line in _typed_dict(name, fields, bases[name]))
        + "\n"
    )


def _reached(schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schemas that the client names, and those in them."""
    sources = "".join(path.read_text(encoding="utf-8") for path in OUT.parent.glob("*.py") if path != OUT)
    left = [name for name in schemas if re.search(rf"\b{name}\b", sources)]
    found: dict[str, Any] = {}
    while left:
        name = left.pop()
        if name not in found:
            found[name] = schemas[name]
            left += re.findall(rf"{_REFERENCE}(\w+)", str(schemas[name]))
    return found


def _base(fields: Mapping[str, Mapping[str, str]], name: str) -> str | None:
    """Return the largest shape whose members this one has as well, if they are most of its members."""
    own = fields[name].items()
    within = [other for other in fields if other != name and own > fields[other].items()]
    base = max(within, key=lambda other: (len(fields[other]), other), default=None)
    return base if base is not None and len(own) >= 3 and len(fields[base]) * 3 >= len(own) * 2 else None


def type_of(schema: Mapping[str, Any]) -> str:
    """The type of a schema as it stands in another. Raises ValueError for one that this module cannot read."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_REFERENCE)
    if "const" in schema or "enum" in schema:
        values = schema["enum"] if "enum" in schema else [schema["const"]]
        return f"Literal[{', '.join(map(_literal, values))}]"
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(map(type_of, schema["anyOf"])))
    kind = schema.get("type")
    if kind is None:
        return "Any"
    if kind == "array":
        return f"list[{type_of(schema.get('items', {}))}]"
    if kind == "object":
        of = schema.get("additionalProperties", True)
        return f"dict[str, {type_of(of) if isinstance(of, dict) and 'properties' not in schema else 'Any'}]"
    if kind not in _PLAIN:
        raise ValueError(f"a schema of an unknown type: {schema}")
    return _PLAIN[kind]


def _fields(name: str, schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the types of the members, by name."""
    if schema.get("type") != "object":
        raise ValueError(f"{name} is not an object: {schema}")
    return {field: _member(schema, field, of) for field, of in schema.get("properties", {}).items()}


def _typed_dict(name: str, fields: Mapping[str, Mapping[str, str]], base: str | None) -> Iterator[str]:
    own = {field: of for field, of in fields[name].items() if base is None or field not in fields[base]}
    if not all(field.isidentifier() and not keyword.iskeyword(field) for field in own):
        yield f"{name} = TypedDict("
        yield f'    "{name}",'
        yield "    {"
        yield from (f'        "{field}": {of},' for field, of in own.items())
        yield "    },"
        yield ")"
        return
    members = [f"{field}: {of}" for field, of in own.items()] or ["pass"]
    head = f"class {name}({base or 'TypedDict'}):"
    line = f"{head} {'; '.join(members)}"
    if len(line) <= _WIDTH:
        yield line
        return
    yield head
    wrapped = ""
    for member in members:
        if wrapped and len(wrapped) + len(member) + 6 > _WIDTH:
            yield f"    {wrapped}"
            wrapped = ""
        wrapped += f"{'; ' if wrapped else ''}{member}"
    yield f"    {wrapped}"


def _member(schema: Mapping[str, Any], name: str, of: Mapping[str, Any]) -> str:
    return type_of(of) if name in schema.get("required", ()) else f"NotRequired[{type_of(of)}]"


def _literal(value: Any) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    OUT.write_text(module(), encoding="utf-8")
    sys.stdout.write(f"{OUT.name}: written\n")
