"""Statements of people on a database: one at a time, with a limit of time and rows, and none that changes anything.

Besides the tables there are the views of the schema (`events`, `outputs`, `attempts`, `nodes`), `steps`, and for each
block of the active version of a stored workflow with a known output `out_<workflow>_<block>`, with a column for each
property of its output schema. They are made for the session: nothing in the database has to follow when a workflow
changes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import orjson
from msgspec import Struct

from compiler.catalog import BlockSpec, Catalog
from executor.errors import QueryRefused
from executor.kernel.journal.projection import BLOCK_OUTPUT, CONTAINER_OUTPUT
from executor.kernel.run.imports import as_ours
from executor.kernel.store.reading import Reading

Rows: TypeAlias = Generator[tuple[Any, ...], None, None]
VIEWS_MAX: Final = 500
COLUMNS_MAX: Final = 100  # per view
FIXED: Final = ("run_id", "version", "path", "attempt", "seq", "at_ms", "output")
_ACTIVE = """
SELECT w.name, w.document FROM active_versions AS a JOIN workflows AS w ON w.name = a.workflow AND w.version = a.version
 ORDER BY w.name"""
_EVENTS = """
SELECT d.id AS run_id, {more}b.first_seq + {place} AS seq, CAST(e.value ->> 0 AS bigint) AS at_ms,
       e.value ->> 1 AS type, e.value ->> 2 AS node, e.value ->> 3 AS path, CAST(e.value ->> 4 AS bigint) AS attempt,
       substr(b.payload, CAST(e.value ->> 5 AS int) + 1, CAST(e.value ->> 6 AS int)) AS data,
       substr(b.payload, CAST(e.value ->> 5 AS int) + coalesce(CAST(e.value ->> 6 AS int), 0) + 1,
              CAST(e.value ->> 7 AS int)) AS output
  FROM {main}run_details AS d CROSS JOIN {main}batches AS b CROSS JOIN {each} WHERE b.n = d.n"""
# A batch that does not have the text of the node at all is not taken apart.
_OF_NODE = """
   AND d.workflow = {workflow} AND {has} AND e.value ->> 2 = {node} AND e.value ->> 1 = {type}"""
_OUTPUTS = """SELECT {columns}
  FROM (SELECT run_id, version, path, attempt, seq, at_ms, output, {value} AS value
          FROM (SELECT run_id, version, path, attempt, seq, at_ms, {text} AS output FROM ({found}) AS found) AS texts
       ) AS outputs"""
_STEPS = """
SELECT last.run_id, r.workflow, last.node, last.path, last.n, last.attempt, last.kind, last.name, last.effect,
       last.started_at_ms, CASE WHEN last.type = 'step.finished' THEN last.at_ms END AS finished_at_ms,
       CASE WHEN last.type = 'step.finished' THEN last.at_ms - last.started_at_ms END AS duration_ms,
       CASE WHEN last.type = 'step.lost' THEN 'lost' WHEN last.type = 'step.retrying' THEN 'retried'
            WHEN last.type = 'step.finished' AND last.error IS NULL THEN 'succeeded'
            WHEN last.type = 'step.finished' THEN 'failed' END AS outcome,
       last.usage, last.cost, last.prices
  FROM (SELECT each.*,
               max(each.at_ms) FILTER (WHERE each.type = 'step.started') OVER same AS started_at_ms,
               max(each.its_kind) OVER same AS kind, max(each.its_name) OVER same AS name,
               max(each.its_effect) OVER same AS effect,
               row_number() OVER (PARTITION BY each.run_id, each.node, each.path, each.n
                                  ORDER BY each.seq DESC) AS place
          FROM (SELECT e.run_id, e.seq, e.at_ms, e.type, e.node, e.path, e.attempt,
                       CAST({data} ->> 'n' AS bigint) AS n, {data} ->> 'kind' AS its_kind,
                       {data} ->> 'name' AS its_name, {data} ->> 'effect' AS its_effect,
                       CAST({data} -> 'error' AS text) AS error, CAST({data} -> 'usage' AS text) AS usage,
                       CAST({data} ->> 'cost' AS double precision) AS cost, {data} ->> 'prices' AS prices
                  FROM {main}events AS e
                 WHERE e.type IN ('step.started', 'step.retrying', 'step.finished', 'step.lost')) AS each
        WINDOW same AS (PARTITION BY each.run_id, each.node, each.path, each.n)) AS last
  JOIN {main}run_details AS r ON r.id = last.run_id
 WHERE last.place = 1"""


class Query:
    """An open query. Iterate over it for the rows, up to the limit; then `more` is True if there were others. Raises
    QueryRefused, also while rows are read."""

    def __init__(self, columns: tuple[str, ...], rows: Rows, rows_max: int) -> None:
        self.columns = columns
        self.more = False
        self._rows = rows
        self._rows_max = rows_max

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        try:
            for n, row in enumerate(self._rows):
                if n == self._rows_max:
                    self.more = True
                    return
                yield row
        finally:
            self._rows.close()


class Asking(ABC):
    """A session for statements of people. `views`: those that are made for it; `reading`: the same session for ours."""

    def __init__(self, reading: Reading, dialect: Dialect, catalog: Catalog, env_names: Sequence[str]) -> None:
        self.reading = reading
        self.dialect = dialect
        self.views = list(generated_views(reading, dialect, catalog, env_names))

    @abstractmethod
    def query(
        self, sql: str, parameters: Sequence[Any] = (), *, timeout_s: float = 10.0, rows_max: int = 1000
    ) -> Query:
        """Start one statement. The time runs until the last row is read. Raises QueryRefused."""

    def close(self) -> None:
        self.reading.close()


class View(Struct, frozen=True):
    """`columns` are those besides the fixed ones; `sql` is its select."""

    name: str
    workflow: str
    block: str
    columns: tuple[str, ...]
    sql: str


class Dialect(Struct, frozen=True):
    """The pieces of SQL in which databases differ.

    main      before the names of stored tables, of which the session has narrower ones
    each      the events of a batch; `place` is the place of one
    text      bytes as text; `data`, as JSON
    has       if a text has another one
    value     the output as JSON, in which `column` selects a property by its name and schema
    """

    main: str
    each: str
    place: str
    text: str
    data: str
    has: str
    value: str
    column: Callable[[str, Any], str]

    @property
    def events(self) -> str:
        return self._events("")

    def _events(self, more: str) -> str:
        return _EVENTS.format(main=self.main, each=self.each, place=self.place, more=more)

    @property
    def steps(self) -> str:
        """The steps inside blocks, their last start and their end, with usage and cost."""
        return _STEPS.format(main=self.main, data=self.data.format("e.data"))

    def outputs(self, workflow: str, node: str, type: str, parts: Sequence[str] = ()) -> str:
        """Return a query with a row for each output of the node by an event of this type; `parts` are more columns."""
        has = self.has.format("b.head", literal(orjson.dumps(node).decode()))
        of_node = _OF_NODE.format(workflow=literal(workflow), has=has, node=literal(node), type=literal(type))
        blob = f"(SELECT bytes FROM {self.main}blobs WHERE hash = {self.data.format('data')} ->> 'blob')"  # noqa: S608
        return _OUTPUTS.format(
            columns=", ".join([*FIXED[:-1], *parts, "output"]),
            value=self.value,
            text=self.text.format(f"coalesce(output, {blob})"),
            found=self._events("d.version, ") + of_node,
        )


def too_long() -> QueryRefused:
    return QueryRefused(
        "the query took too long",
        hint="narrow the query to one run, or to the newest (`weft sql --last 1000`): events, outputs, attempts, nodes "
        "and steps read the journals of all runs; or increase the time limit (--timeout)",
    )


def refused(text: str, *, changes: bool, tables: str) -> QueryRefused:
    """Return the error of the database. `changes`: the statement was not one that only reads."""
    if changes:
        return QueryRefused(f"only reading is allowed here: {text}", hint="one SELECT, WITH … SELECT or EXPLAIN")
    return QueryRefused(text, hint=f"weft sql --views lists the generated views; {tables}")


def as_text(value: bytes) -> str:
    """Return stored JSON as the text it is, and other bytes as SQLite writes them."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"x'{value.hex()}'"


# --- views of blocks


def generated_views(db: Reading, dialect: Dialect, catalog: Catalog, env_names: Sequence[str] = ()) -> Iterator[View]:
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
            yield _view(dialect, name, workflow, id, spec, properties)


def _properties(block: Mapping[str, Any], spec: BlockSpec | None) -> dict[str, Any]:
    schema = block.get("output_schema")
    if schema is None and spec is not None:
        schema = spec.output
        if spec.output_from is not None:
            schema = spec.output_from(block.get("params") or {})
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def view_name(workflow: str, block: str, used: Collection[str] = ()) -> str:
    """Return the name of a view. Names that are `used` already are in small letters."""
    base = "out_" + re.sub(r"[^A-Za-z0-9]+", "_", workflow) + "_" + re.sub(r"[^A-Za-z0-9]+", "_", block)
    name, n = base, 2
    while name.lower() in used:
        name, n = f"{base}_{n}", n + 1
    return name


def _view(
    dialect: Dialect, name: str, workflow: str, block: str, spec: BlockSpec, properties: Mapping[str, Any]
) -> View:
    columns: list[str] = []
    parts = []
    # SQLite quotes the path of a property, and has no way to write a quotation mark inside the quotes.
    for key in [key for key in properties if '"' not in key][:COLUMNS_MAX]:
        column = key
        while column.lower() in (*FIXED, *(other.lower() for other in columns)):
            column += "_"
        columns.append(column)
        parts.append(f"{dialect.column(key, properties[key])} AS {quoted(column)}")
    node, type = (f"{block}:end", CONTAINER_OUTPUT) if spec.container else (block, BLOCK_OUTPUT)
    return View(name, workflow, block, tuple(columns), dialect.outputs(workflow, node, type, parts))


def literal(value: str) -> str:
    return "'" + value.replace("'", "''").replace("\0", "") + "'"


def quoted(value: str) -> str:
    return '"' + value.replace('"', '""').replace("\0", "") + '"'
