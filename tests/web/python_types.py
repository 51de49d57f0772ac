"""server/client/answers.py: what crosses HTTP as TypedDicts, from the schemas of openapi.json.

To write it after a change of a struct: `npm --prefix web run types`, as for the types of the editor.
"""

from __future__ import annotations

import keyword
import sys
import textwrap
from collections.abc import Iterator, Mapping
from inspect import cleandoc
from pathlib import Path
from typing import Any

from server.http.openapi import openapi
from server.routes import TABLE

OUT = Path(__file__).parents[2] / "server" / "client" / "answers.py"
HEAD = '''\
"""The shapes that cross HTTP, made from openapi.json by `npm run types`: change the server's structs, not this file.

At run time these are plain dicts. A member is NotRequired where the server leaves it out of some answers, or where a
request may leave it out.
"""

# ruff: noqa: E501
# fmt: off

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


'''
_REFERENCE = "#/components/schemas/"
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_WIDTH = 120


def module() -> str:
    """The whole file."""
    schemas: dict[str, Any] = openapi(TABLE)["components"]["schemas"]
    return HEAD + "\n\n".join("\n".join(_typed_dict(name, schemas[name])) + "\n" for name in sorted(schemas))


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


def _typed_dict(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    if schema.get("type") != "object":
        raise ValueError(f"{name} is not an object: {schema}")
    fields = {field: _member(schema, field, of) for field, of in schema.get("properties", {}).items()}
    described = list(_docstring(schema))
    if not all(field.isidentifier() and not keyword.iskeyword(field) for field in fields):
        yield from (line.strip().replace('"""', "").join(("# ", "")) for line in described if line.strip('" '))
        yield f"{name} = TypedDict("
        yield f'    "{name}",'
        yield "    {"
        yield from (f'        "{field}": {of},' for field, of in fields.items())
        yield "    },"
        yield ")"
        return
    yield f"class {name}(TypedDict):"
    yield from described
    if described and fields:
        yield ""
    yield from (f"    {field}: {of}" for field, of in fields.items())
    if not described and not fields:
        yield "    pass"


def _member(schema: Mapping[str, Any], name: str, of: Mapping[str, Any]) -> str:
    return type_of(of) if name in schema.get("required", ()) else f"NotRequired[{type_of(of)}]"


def _literal(value: Any) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else repr(value)


def _docstring(schema: Mapping[str, Any]) -> Iterator[str]:
    text = cleandoc(schema.get("description", "")).replace("\\", "\\\\").replace('"""', "'''")
    if not text:
        return
    lines = [
        line
        for paragraph in text.split("\n\n")
        for line in (*textwrap.wrap(" ".join(paragraph.split()), _WIDTH - 11), "")
    ][:-1]
    yield f'    """{lines[0]}' + ('"""' if len(lines) == 1 else "")
    for line in lines[1:]:
        yield f"    {line}".rstrip() + ('"""' if line is lines[-1] else "")


if __name__ == "__main__":
    OUT.write_text(module(), encoding="utf-8")
    sys.stdout.write(f"{OUT.name}: written\n")
