"""The generated views: `out_<workflow>_<block>` has a row for each time a block succeeded, and a column for each
property of its output schema. They are made from the active version of each stored workflow."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

import orjson
from msgspec import Struct

from compiler.catalog import BlockSpec, Catalog
from executor.kernel.journal.projection import BLOCK_OUTPUT, CONTAINER_OUTPUT
from executor.kernel.run.imports import as_ours
from executor.kernel.store.reading import Reading

VIEWS_MAX = 500
COLUMNS_MAX = 100  # per view

FIXED = ("run_id", "version", "path", "attempt", "seq", "at_ms", "output")
_ACTIVE = """
SELECT w.name, w.document FROM active_versions AS a JOIN workflows AS w ON w.name = a.workflow AND w.version = a.version
 ORDER BY w.name"""


class View(Struct, frozen=True):
    """One generated view. `columns` are those besides the fixed ones; `sql` is its select."""

    name: str
    workflow: str
    block: str
    columns: tuple[str, ...]
    sql: str


class Outputs(Protocol):
    """Selects the outputs of nodes in the SQL of one database."""

    def select(self, workflow: str, node: str, type: str, parts: Sequence[str] = ()) -> str:
        """Return a query with a row for each output of the node; `parts` are further columns."""

    def property(self, key: str, schema: Any) -> str:
        """Select a property of an output, as the kind of value in its schema."""


def generated_views(db: Reading, outputs: Outputs, catalog: Catalog, env_names: Sequence[str] = ()) -> Iterator[View]:
    """Yield a view for each block of each stored workflow whose output has known properties; at most VIEWS_MAX."""
    names: set[str] = set()
    for workflow, data in db.rows(_ACTIVE):
        document = as_ours(orjson.loads(data), env_names, catalog).document
        for id, block in document.get("blocks", {}).items():
            if not isinstance(block, dict):
                continue
            spec = catalog.get(str(block.get("type")))
            properties = _properties(block, spec)
            if spec is None or not properties:
                continue
            if len(names) == VIEWS_MAX:
                return
            name = view_name(workflow, id, names)
            names.add(name.lower())
            yield _view(outputs, name, workflow, id, spec, properties)


def _properties(block: Mapping[str, Any], spec: BlockSpec | None) -> dict[str, Any]:
    """Return the properties in the block's own schema, else in that of its type."""
    schema = block.get("output_schema")
    if schema is None and spec is not None:
        schema = spec.output
        if spec.output_from is not None:
            schema = spec.output_from(block.get("params") or {})
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def view_name(workflow: str, block: str, used: Collection[str] = ()) -> str:
    """Names that are used already are in small letters."""
    base = "out_" + re.sub(r"[^A-Za-z0-9]+", "_", workflow) + "_" + re.sub(r"[^A-Za-z0-9]+", "_", block)
    name, n = base, 2
    while name.lower() in used:
        name, n = f"{base}_{n}", n + 1
    return name


def _view(
    outputs: Outputs, name: str, workflow: str, block: str, spec: BlockSpec, properties: Mapping[str, Any]
) -> View:
    # SQLite quotes the path of a property, and has no way to write a quotation mark inside the quotes.
    wanted = [key for key in properties if '"' not in key][:COLUMNS_MAX]
    columns: list[str] = []
    parts = []
    for key in wanted:
        column = key
        while column.lower() in (*FIXED, *(other.lower() for other in columns)):
            column += "_"
        columns.append(column)
        parts.append(f"{outputs.property(key, properties[key])} AS {quoted(column)}")
    node, type = (f"{block}:end", CONTAINER_OUTPUT) if spec.container else (block, BLOCK_OUTPUT)
    return View(name, workflow, block, tuple(columns), outputs.select(workflow, node, type, parts))


def literal(value: str) -> str:
    """Quote a constant for a statement."""
    return "'" + value.replace("'", "''").replace("\0", "") + "'"


def quoted(value: str) -> str:
    """Quote the name of a table or column."""
    return '"' + value.replace('"', '""').replace("\0", "") + '"'
