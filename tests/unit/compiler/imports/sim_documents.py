"""Small documents of Sim, in the form that it runs, and what their import says."""

from __future__ import annotations

from typing import Any

from compiler.catalog import Catalog
from compiler.compile import DEFAULT_LIMITS, Compiled, compile_document
from compiler.imports import Imported, accept, sim
from compiler.imports.sim import convert

Json = dict[str, Any]


def block(id: str, type: str, name: str = "", **params: Any) -> Json:
    category = "triggers" if type in ("start_trigger", "schedule", "generic_webhook") else "blocks"
    return {
        "id": id,
        "config": {"tool": type, "params": params},
        "metadata": {"id": type, "name": name or id, "category": category},
        "enabled": True,
    }


def imported(*blocks: Json, wires: str = "") -> Imported:
    """Wires as `a b; c/handle d`."""
    connections = []
    for wire in filter(None, (part.strip() for part in wires.split(";"))):
        source, target = wire.split()
        name, _, handle = source.partition("/")
        connections.append({"source": name, "target": target, **({"sourceHandle": handle} if handle else {})})
    return convert({"version": "1.0", "blocks": list(blocks), "connections": connections, "loops": {}})


def compiled(document: Json, catalog: Catalog) -> Compiled:
    return compile_document(accept(document, lambda: {"sim": sim}, limits=DEFAULT_LIMITS, catalog=catalog), catalog)


def said(result: Imported) -> list[tuple[str, str]]:
    assert all(found.code == "import_lossy" and found.block for found in result.diagnostics)
    return [(found.message, found.hint) for found in result.diagnostics]
