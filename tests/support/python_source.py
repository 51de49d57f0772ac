"""A document, printed as Python, executed, and built again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compiler.builder.source import source
from compiler.wiring import OUT


def executed(text: str) -> dict[str, Any]:
    """What the module of this source is deployed as."""
    names: dict[str, Any] = {}
    exec(compile(text, "flow.py", "exec"), names)
    made: dict[str, Any] = names["workflow"].document()
    return made


def round_trip(document: Mapping[str, Any]) -> str:
    """Asserts that the source makes the same document, and returns it."""
    text = source(document)
    made = executed(text)
    assert canonical(made) == canonical(document), text
    assert list(made["blocks"]) == list(document["blocks"]), text
    return text


def canonical(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a form that is equal for equivalent documents: connections in one order, each with its exit."""
    edges = [{**edge, "handle": edge.get("handle") or OUT} for edge in document.get("edges") or []]
    edges.sort(key=lambda edge: (edge["source"], edge["handle"], edge["target"], repr(sorted(edge.items(), key=repr))))
    return {"format": "weft/1", **document, "edges": edges}
