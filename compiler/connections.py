"""Connections that a document names: texts in params whose control is the list of connections, also in the params of
the blocks that are tools of an agent.

A name without a connection is a warning. A document can come from another server or be older than the connection, and
only a block that is reached fails.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from compiler.catalog import Catalog
from compiler.check import pointer_to
from compiler.diagnostics import Diagnostic, Report, suggest

Place = tuple[str, str]  # the pointer in the params, and the name


def missing_connections(document: Any, catalog: Catalog, known: Collection[str]) -> list[Diagnostic]:
    """Return a warning for each name that is not in `known`. `document` is of weft/1; errors in its form are
    ignored.
    """
    report = Report()
    blocks = document.get("blocks") if isinstance(document, dict) else None
    for id, block in blocks.items() if isinstance(blocks, dict) else ():
        type = block.get("type") if isinstance(block, dict) else None
        for pointer, name in _places(block.get("params"), type, catalog, True) if isinstance(type, str) else ():
            if name not in known:
                message = f'There is no connection "{name[:80]}" on this server.'
                hint = suggest(name, known) or "An administrator can add it in Settings, Connections."
                report.add("connection_unknown", f"{pointer_to(id)}/params{pointer}", message, hint=hint, block=id)
    return report.sorted()


def _places(params: Any, type: str, catalog: Catalog, tools: bool) -> Iterator[Place]:
    """`tools`: these are looked into, too."""
    spec = catalog.get(type)
    if spec is not None:
        yield from _within(params, spec.params, "", catalog, tools)


def _within(value: Any, schema: Mapping[str, Any], pointer: str, catalog: Catalog, tools: bool) -> Iterator[Place]:
    if isinstance(value, str):
        if value and (schema.get("x-ui") or {}).get("widget") == "connection":
            yield pointer, value
    elif isinstance(value, dict):
        for name, inner in (schema.get("properties") or {}).items():
            if name in value:
                yield from _within(value[name], inner, f"{pointer}/{name}", catalog, tools)
        block, params = value.get("block"), value.get("params")
        if tools and isinstance(block, str) and isinstance(params, dict):
            yield from ((f"{pointer}/params{place}", name) for place, name in _places(params, block, catalog, False))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _within(item, schema.get("items") or {}, f"{pointer}/{at}", catalog, tools)
