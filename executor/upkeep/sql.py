"""Read-only SQL on a database file for people, and the views they look through.

Everything is refused but reading: the file is opened read-only, and an authorizer lets no statement attach, change,
load or set anything. A query has a time and gives so many rows at most.

Besides the tables there are the views of the schema (`outputs`, `attempts`, `nodes`) and one view per block that says
what it puts out, `out_<workflow>_<block>`: a row for each time it succeeded, a column for each property of its output
schema. They are made for the connection, from the active version of each stored workflow: nothing in the file has to
follow when a workflow changes.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from compiler.catalog import BlockSpec, Catalog
from compiler.imports import as_ours
from executor.errors import QueryRefused
from executor.journal.projection import BLOCK_OUTPUT, CONTAINER_OUTPUT
from executor.upkeep.invariants import open_read_only

VIEWS_MAX = 500
COLUMNS_MAX = 100  # of one view
VALUE_MAX_BYTES = 64 * 1024 * 1024  # no text function makes a larger value
STEPS_PER_LOOK = 10_000  # of SQLite's machine, between two looks at the clock

_FIXED = ("run_id", "version", "path", "attempt", "seq", "at_ms", "output")
_ACTIVE = """
SELECT w.name, w.document FROM active_versions AS a JOIN workflows AS w ON w.name = a.workflow AND w.version = a.version
 ORDER BY w.name"""
# In a file of before schema 11, a copy perhaps.
_NEWEST = """
SELECT name, document FROM workflows AS w
 WHERE version = (SELECT max(version) FROM workflows WHERE name = w.name) ORDER BY name"""
_HAS_ACTIVE = "SELECT 1 FROM sqlite_schema WHERE name = 'active_versions'"
_HAS_BATCHES = "SELECT 1 FROM sqlite_schema WHERE name = 'batches'"
_OUTPUTS_OF_ROWS = """
SELECT e.run_id, r.version, e.path, e.attempt, e.seq, e.at_ms, e.data, e.output
  FROM main.old_events AS e JOIN main.runs AS r ON r.id = e.run_id
 WHERE r.workflow = :workflow AND e.node = :node AND e.type = :type"""
# A batch that does not have the text of the node at all is not taken apart.
_OUTPUTS_OF_BATCHES = """
SELECT d.id, d.version, e.value ->> 3, e.value ->> 4, b.first_seq + e.key, e.value ->> 0,
       substr(b.payload, (e.value ->> 5) + 1, e.value ->> 6),
       substr(b.payload, (e.value ->> 5) + coalesce(e.value ->> 6, 0) + 1, e.value ->> 7)
  FROM main.run_details AS d CROSS JOIN main.batches AS b ON b.n = d.n CROSS JOIN json_each(b.head) AS e
 WHERE d.workflow = :workflow AND instr(b.head, :text_of_node) AND e.value ->> 2 = :node AND e.value ->> 1 = :type"""
_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
_PRAGMAS = {
    "compile_options",
    "database_list",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "page_count",
    "page_size",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
}
_TAKES_NAME = {name for name in _PRAGMAS if name.endswith(("_info", "_xinfo", "_list")) and name != "database_list"}
_FUNCTIONS_REFUSED = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"}


class View(Struct, frozen=True):
    """One generated view. `columns` without the fixed ones; `sql` is what it selects."""

    name: str
    workflow: str
    block: str
    columns: tuple[str, ...]
    sql: str


class Query:
    """An open query. Iterate over it for the rows, at most `rows_max`; `more` then says whether there were others."""

    def __init__(self, cursor: sqlite3.Cursor, rows_max: int) -> None:
        self.columns = tuple(column[0] for column in cursor.description or ())
        self.more = False
        self._cursor = cursor
        self._rows_max = rows_max

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        try:
            for n, row in enumerate(self._cursor):
                if n == self._rows_max:
                    self.more = True
                    return
                yield tuple(_readable(value) for value in row)
        except sqlite3.Error as error:
            raise _refused(error) from error


def open_for_reading(
    path: Path, catalog: Catalog, env_names: Sequence[str] = ()
) -> tuple[sqlite3.Connection, list[View]]:
    """A connection with the generated views, on which nothing but reading works. Raises sqlite3.Error when the file is
    no database of weft."""
    db = open_read_only(path)
    try:
        views = list(generated_views(db, catalog, env_names))
        db.execute("PRAGMA query_only = 0")  # views of the connection are in its own temporary database
        for view in views:
            db.execute(f"CREATE TEMP VIEW {quoted(view.name)} AS {view.sql}")
        db.execute("PRAGMA query_only = 1")
        db.text_factory = lambda data: data.decode(errors="replace")
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_MAX_BYTES)
        db.execute("SELECT 1 FROM json_each('[]')").fetchall()  # it is made at its first use, which would be refused
        db.set_authorizer(_authorize)
    except BaseException:
        db.close()
        raise
    return db, views


def query(
    db: sqlite3.Connection, sql: str, parameters: Sequence[Any] = (), *, timeout_s: float = 10.0, rows_max: int = 1000
) -> Query:
    """Start one statement. The time runs until the last row is read. Raises QueryRefused."""
    deadline = time.monotonic() + timeout_s
    db.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_PER_LOOK)
    try:
        return Query(db.execute(sql, parameters), rows_max)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise _refused(error) from error


def generated_views(db: sqlite3.Connection, catalog: Catalog, env_names: Sequence[str] = ()) -> Iterator[View]:
    """For each block of each stored workflow whose output has known properties; at most VIEWS_MAX."""
    names: set[str] = set()
    has_active = db.execute(_HAS_ACTIVE).fetchall()
    batches = has_batches(db)
    for workflow, data in db.execute(_ACTIVE if has_active else _NEWEST).fetchall():
        document = as_ours(orjson.loads(data), env_names).document
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
            yield _view(name, workflow, id, spec, properties, batches)


def has_batches(db: sqlite3.Connection) -> bool:
    return bool(db.execute(_HAS_BATCHES).fetchall())


def _properties(block: Mapping[str, Any], spec: BlockSpec | None) -> dict[str, Any]:
    """Of the schema the block has of its own, else of that of its type."""
    schema = block.get("output_schema")
    if schema is None and spec is not None:
        schema = spec.output
        if spec.output_from is not None:
            schema = spec.output_from(block.get("params") or {})
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def view_name(workflow: str, block: str, used: Collection[str] = ()) -> str:
    """Taken names are in small letters."""
    base = "out_" + re.sub(r"[^A-Za-z0-9]+", "_", workflow) + "_" + re.sub(r"[^A-Za-z0-9]+", "_", block)
    name, n = base, 2
    while name.lower() in used:
        name, n = f"{base}_{n}", n + 1
    return name


def _view(name: str, workflow: str, block: str, spec: BlockSpec, properties: Mapping[str, Any], batches: bool) -> View:
    # The path of a property is quoted, and SQLite has no way to write a quotation mark inside the quotes.
    wanted = [key for key in properties if '"' not in key][:COLUMNS_MAX]
    columns: list[str] = []
    parts = []
    for key in wanted:
        column = key
        while column.lower() in (*_FIXED, *(other.lower() for other in columns)):
            column += "_"
        columns.append(column)
        parts.append(f"{_extract(key, properties[key])} AS {quoted(column)}")
    node, type = (f"{block}:end", CONTAINER_OUTPUT) if spec.container else (block, BLOCK_OUTPUT)
    return View(name, workflow, block, tuple(columns), select(workflow, node, type, parts, batches=batches))


def select(workflow: str, node: str, type: str, parts: Sequence[str] = (), *, batches: bool = True) -> str:
    """A row for each time the node put something out; `parts` are further columns, made of `output`. Without `batches`:
    for a file of a schema that has none."""
    found = _OUTPUTS_OF_ROWS if batches else _OUTPUTS_OF_ROWS.replace("main.old_events", "main.events")
    if batches:
        found = f"{found} UNION ALL {_OUTPUTS_OF_BATCHES}"
    values = {"workflow": workflow, "type": type, "node": node, "text_of_node": orjson.dumps(node).decode()}
    found = re.sub(r":(\w+)", lambda name: _text(values[name[1]]), found)
    return f"""SELECT {", ".join([*_FIXED[:-1], *parts, "output"])}
  FROM (SELECT run_id, version, path, attempt, seq, at_ms, CAST(coalesce(output, (
                   SELECT bytes FROM main.blobs WHERE hash = json_extract(CAST(data AS TEXT), '$.blob')
               )) AS TEXT) AS output
          FROM ({found}))"""  # noqa: S608


def _extract(key: str, schema: Any) -> str:
    """The property as the kind of value its schema says; a value of another kind stays as it is."""
    path = _text(f'$."{key}"')
    value = f"json_extract(output, {path})"
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind == "integer":  # 3.0 is an integer in JSON Schema
        return f"CASE json_type(output, {path}) WHEN 'real' THEN CAST({value} AS INTEGER) ELSE {value} END"
    if kind == "number":
        return f"CASE json_type(output, {path}) WHEN 'integer' THEN CAST({value} AS REAL) ELSE {value} END"
    return value


def _text(value: str) -> str:
    return "'" + value.replace("'", "''").replace("\0", "") + "'"


def quoted(value: str) -> str:
    """As the name of a table or column."""
    return '"' + value.replace('"', '""').replace("\0", "") + '"'


def _authorize(action: int, first: str | None, second: str | None, database: str | None, source: str | None) -> int:
    match action:
        case _ if action in _READING:
            return sqlite3.SQLITE_OK
        case sqlite3.SQLITE_FUNCTION:
            return sqlite3.SQLITE_DENY if (second or "").lower() in _FUNCTIONS_REFUSED else sqlite3.SQLITE_OK
        case sqlite3.SQLITE_PRAGMA:
            name = (first or "").lower()
            only_asks = name in _PRAGMAS and (second is None or name in _TAKES_NAME)
            return sqlite3.SQLITE_OK if only_asks else sqlite3.SQLITE_DENY
        case _:
            return sqlite3.SQLITE_DENY


def _readable(value: Any) -> Any:
    """Stored JSON is bytes: shown as the text it is. Other bytes are shown as SQLite writes them."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return f"x'{value.hex()}'"
    return value


def too_long() -> QueryRefused:
    """The error of a query that has used up its time."""
    return QueryRefused(
        "the query took too long", hint="narrow the query, for example to one run, or increase the time limit"
    )


def _refused(error: Exception) -> QueryRefused:
    text = str(error)
    if text == "interrupted":
        return too_long()
    if "not authorized" in text or "prohibited" in text or text.startswith("cannot modify "):
        return QueryRefused(f"only reading is allowed here: {text}", hint="one SELECT, WITH … SELECT or EXPLAIN")
    return QueryRefused(
        text, hint="weft sql --views lists the generated views; .schema is: SELECT sql FROM sqlite_master"
    )
