"""What a document can have in it, taken from the code that reads documents, and what a given one has.

A part is a path such as `approval.params.notify.email`, `policy.cache.scope=run` (one of a few
texts), `settings.groups`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from compiler import document as written
from compiler.catalog import Catalog


def all_parts(catalog: Catalog) -> set[str]:
    """Of every block type and every struct of the document."""
    parts = {f"document.{name}" for name in written._ENVELOPE}
    parts |= {f"block.{name}" for name in written._BLOCK} | {f"edge.{name}" for name in written._EDGE}
    parts |= set(_of_schema("policy", *_schema_of(written.PolicyDoc)))
    parts |= set(_of_schema("settings", *_schema_of(written.SettingsDoc)))
    parts.remove("settings.limits[].of=block")  # an error that says where it goes
    for name in catalog.types():
        spec = catalog.get(name)
        assert spec is not None
        parts |= {name, *_of_schema(f"{name}.params", spec.params, {})}
        if not spec.trigger and spec.category != "annotation":
            parts.add(f"{name}.error")
    return parts


def parts_of(document: Mapping[str, Any]) -> set[str]:
    parts = {f"document.{name}" for name in document} | set(_of_value("settings", document.get("settings", {})))
    blocks = document["blocks"]
    for block in blocks.values():
        parts |= {block["type"], *(f"block.{name}" for name in block)}
        parts |= {
            *_of_value(f"{block['type']}.params", block.get("params", {})),
            *_of_value("policy", block.get("policy")),
        }
    for edge in document["edges"]:
        parts |= {f"edge.{name}" for name in edge}
        if edge.get("handle") == "error":
            parts.add(f"{blocks[edge['source']]['type']}.error")
    return parts


def _schema_of(struct: type[msgspec.Struct]) -> tuple[Any, Any]:
    _, named = msgspec.json.schema_components([struct])
    return named[struct.__name__], named


def _of_schema(path: str, schema: Any, named: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        schema = named[schema["$ref"].rpartition("/")[2]]
    for option in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _of_schema(path, option, named)
    for value in schema.get("enum", ()):
        if isinstance(value, str):
            yield f"{path}={value}"
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}.{name}"
        yield from _of_schema(f"{path}.{name}", inner, named)
    yield from _of_schema(f"{path}[]", schema.get("items"), named)


def _of_value(path: str, value: Any) -> Iterator[str]:
    match value:
        case dict():
            for name, inner in value.items():
                yield f"{path}.{name}"
                yield from _of_value(f"{path}.{name}", inner)
        case list():
            for inner in value:
                yield from _of_value(f"{path}[]", inner)
        case str():
            yield f"{path}={value}"
