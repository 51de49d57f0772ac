"""Read-only SQL on a PostgreSQL database: each statement is a transaction that is READ ONLY, with a time limit of the
server's. It can read all that the account of the address may read: give people one that may only SELECT.

A transaction that only reads can make no view, nor can a standby. So the views that a statement names are put before
it, as parts of its WITH.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from typing import Any, cast

import orjson
import psycopg

from compiler.catalog import Catalog
from executor.errors import QueryRefused
from executor.kernel.store.postgres.reading import PostgresReading, open_reading
from executor.kernel.store.reading import Reading
from executor.service.upkeep.sql.asking import too_long
from executor.service.upkeep.sql.steps import ON_POSTGRES
from executor.service.upkeep.sql.views import FIXED, View, generated_views, literal

NAME_MAX = 63  # bytes of a name; of the rest, PostgreSQL takes no notice
INT_MAX = 2**63
CANCELLED = "57014"
READ_ONLY = "25006"

# Like the views on SQLite (store/sql/sqlite/0001_start.sql).
_EVENTS = """
SELECT d.id AS run_id, b.first_seq + e.place - 1 AS seq, (e.value ->> 0)::bigint AS at_ms, e.value ->> 1 AS type,
       e.value ->> 2 AS node, e.value ->> 3 AS path, (e.value ->> 4)::bigint AS attempt,
       substring(b.payload FROM (e.value ->> 5)::int + 1 FOR (e.value ->> 6)::int) AS data,
       substring(b.payload FROM (e.value ->> 5)::int + coalesce((e.value ->> 6)::int, 0) + 1
                           FOR (e.value ->> 7)::int) AS output
  FROM run_details AS d JOIN batches AS b ON b.n = d.n
 CROSS JOIN LATERAL jsonb_array_elements(b.head::jsonb) WITH ORDINALITY AS e (value, place)"""
_OUTPUTS = """
SELECT e.run_id, r.workflow, e.node, e.path, e.attempt, e.seq, e.at_ms, convert_from(e.output, 'UTF8') AS output
  FROM events AS e JOIN run_details AS r ON r.id = e.run_id
 WHERE e.node IS NOT NULL AND e.output IS NOT NULL"""
_ATTEMPTS = """
SELECT tries.run_id, r.workflow, tries.node, tries.path, tries.attempt, tries.started_at_ms,
       CASE WHEN tries.type <> 'node.started' THEN tries.at_ms END AS finished_at_ms,
       CASE tries.type WHEN 'node.failed' THEN 'failed' WHEN 'retry.scheduled' THEN 'retried'
                       WHEN 'node.skipped' THEN 'skipped' WHEN 'node.started' THEN NULL ELSE 'succeeded' END AS outcome
  FROM (SELECT run_id, node, path, attempt, type, at_ms,
               min(at_ms) FILTER (WHERE type = 'node.started')
                   OVER (PARTITION BY run_id, node, path, attempt) AS started_at_ms,
               row_number() OVER (PARTITION BY run_id, node, path, attempt
                                      ORDER BY type = 'node.started', seq DESC) AS place
          FROM events
         WHERE node IS NOT NULL AND attempt > 0
           AND type IN ('node.started', 'node.succeeded', 'node.failed', 'node.skipped', 'retry.scheduled',
                        'region.sized', 'region.exited')) AS tries
  JOIN run_details AS r ON r.id = tries.run_id
 WHERE tries.place = 1"""
_NODES = """
SELECT keys.run_id, r.workflow, keys.node, keys.path, keys.attempts, keys.started_at_ms, keys.at_ms AS changed_at_ms,
       CASE WHEN keys.type IN ('node.succeeded', 'region.sized', 'region.exited') THEN 'succeeded'
            WHEN keys.type = 'node.failed' THEN 'failed'
            WHEN keys.type = 'node.skipped' THEN 'skipped'
            WHEN r.status IS NOT NULL THEN 'cancelled' -- the run ended before the node did
            WHEN keys.type = 'retry.scheduled' THEN 'retrying'
            WHEN keys.type = 'wait.opened' THEN 'waiting'
            ELSE 'running' END AS status
  FROM (SELECT run_id, node, path, type, at_ms,
               max(attempt) OVER (PARTITION BY run_id, node, path) AS attempts,
               min(at_ms) FILTER (WHERE type = 'node.started') OVER (PARTITION BY run_id, node, path) AS started_at_ms,
               row_number() OVER (PARTITION BY run_id, node, path ORDER BY seq DESC) AS place
          FROM events
         WHERE node IS NOT NULL
           AND type IN ('node.started', 'node.succeeded', 'node.failed', 'node.skipped', 'retry.scheduled',
                        'wait.opened', 'wait.closed', 'region.sized', 'region.exited')) AS keys
  JOIN run_details AS r ON r.id = keys.run_id
 WHERE keys.place = 1"""
_NEWEST = "SELECT * FROM run_details ORDER BY created_at_ms DESC, id DESC LIMIT {limit:d}"
STORED = {"events": _EVENTS, "outputs": _OUTPUTS, "attempts": _ATTEMPTS, "nodes": _NODES, "steps": ON_POSTGRES}

# A batch that does not have the text of the node at all is not taken apart. No text and no jsonb of PostgreSQL has the
# character NUL, which JSON writes as \u0000: it is left out before a value is looked into.
_SELECT = """SELECT {columns}
  FROM (SELECT run_id, version, path, attempt, seq, at_ms, output,
               CASE WHEN strpos(output, '\\u0000') = 0 THEN output::jsonb
                    ELSE regexp_replace(output, '(?<!\\\\)((\\\\\\\\)*)\\\\u0000', '\\1', 'g')::jsonb END AS value
          FROM (SELECT run_id, version, path, attempt, seq, at_ms, convert_from(coalesce(output, (
                           SELECT bytes FROM blobs
                            WHERE hash = substring(convert_from(data, 'UTF8') FROM '"blob" *: *"([0-9a-f]+)"')
                       )), 'UTF8') AS output
                  FROM (SELECT d.id AS run_id, d.version, e.value ->> 3 AS path, (e.value ->> 4)::bigint AS attempt,
                               b.first_seq + e.place - 1 AS seq, (e.value ->> 0)::bigint AS at_ms,
                               substring(b.payload FROM (e.value ->> 5)::int + 1 FOR (e.value ->> 6)::int) AS data,
                               substring(b.payload FROM (e.value ->> 5)::int + coalesce((e.value ->> 6)::int, 0) + 1
                                                   FOR (e.value ->> 7)::int) AS output
                          FROM run_details AS d JOIN batches AS b ON b.n = d.n
                         CROSS JOIN LATERAL jsonb_array_elements(b.head::jsonb) WITH ORDINALITY AS e (value, place)
                         WHERE d.workflow = {workflow} AND strpos(b.head, {text_of_node}) > 0
                           AND e.value ->> 2 = {node} AND e.value ->> 1 = {type}) AS found) AS texts) AS outputs"""

_LEADING = re.compile(r"(?:\s+|--[^\n]*\n|/\*.*?\*/)*", re.DOTALL)
_EXPLAIN = re.compile(r"explain\b\s*(?:\([^)]*\)\s*|(?:(?:analyze|verbose)\b\s*)*)", re.IGNORECASE)
_READS = re.compile(r"(?:select|with|table|values)\b|\(", re.IGNORECASE)
_WITH = re.compile(r"with\b\s*(?:recursive\b)?", re.IGNORECASE)
_DEFINED = r"\b{}\s*(?:\([^()]*\)\s*)?as\s*(?:not\s+)?(?:materialized\s*)?\("  # by the statement itself
_SHOWS = re.compile(r"show\b", re.IGNORECASE)


class PostgresQuery:
    """See `asking.Query`."""

    def __init__(self, session: PostgresReading, sql: str, timeout_s: float, rows_max: int) -> None:
        self.columns: tuple[str, ...] = ()
        self.more = False
        self._session = session
        self._rows_max = rows_max
        self._rows = self._stream(sql, timeout_s)
        first = next(self._rows, None)
        self._found = chain([] if first is None else [first], self._rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        try:
            for n, row in enumerate(self._found):
                if n == self._rows_max:
                    self.more = True
                    return
                yield tuple(_readable(value) for value in row)
        finally:
            self._rows.close()

    def _stream(self, sql: str, timeout_s: float) -> Generator[tuple[Any, ...], None, None]:
        connection = self._session.connection
        try:
            with self._session.snapshot(), connection.cursor() as cursor:
                connection.execute(cast(Any, f"SET LOCAL statement_timeout = {round(timeout_s * 1000):d}"))
                rows = cursor.stream(cast(Any, sql))
                try:
                    for row in rows:
                        self.columns = tuple(column.name for column in cursor.description or ())
                        yield row
                    if not self.columns:
                        self.columns = _columns_of(connection, sql)
                finally:
                    rows.close()  # type: ignore[attr-defined]  # it is a generator, and what is left of it is cancelled
        except psycopg.Error as error:
            raise _refused(error) from error


class PostgresAsking:
    """See `asking.Asking`."""

    def __init__(
        self, reading: PostgresReading, catalog: Catalog, env_names: Sequence[str], last: int | None = None
    ) -> None:
        self.reading: Reading = reading
        self._last = last
        self._session = reading
        self._outputs = PostgresOutputs()
        found = generated_views(reading, self._outputs, catalog, env_names)
        self.views = list(_with_names_of_postgres(found))

    def query(
        self, sql: str, parameters: Sequence[Any] = (), *, timeout_s: float = 10.0, rows_max: int = 1000
    ) -> PostgresQuery:
        assert not parameters, "statements of people have none"
        return PostgresQuery(self._session, self._with_views(_one_that_reads(sql)), timeout_s, rows_max)

    def select(self, workflow: str, node: str, type: str) -> str:
        return self._outputs.select(workflow, node, type)

    def close(self) -> None:
        self.reading.close()

    def _with_views(self, sql: str) -> str:
        """Put the views whose names are in the statement before it."""
        words = set(re.findall(r"\w+", sql.lower()))
        wanted = {view.name: view.sql for view in self.views if view.name in words}
        stored = {name: text for name, text in STORED.items() if name in words}
        if stored:
            stored = {"events": _EVENTS, **stored}
        if stored and self._last is not None:
            stored = {name: re.sub(r"\brun_details\b", "newest_runs", text) for name, text in stored.items()}
            stored = {"newest_runs": _NEWEST.format(limit=self._last), **stored}
        wanted = {**stored, **wanted}
        explain = _EXPLAIN.match(sql)
        asked = sql[explain.end() :] if explain else sql
        if not wanted or not _READS.match(asked.lstrip()):
            return sql
        parts = ",\n".join(
            f"{name} AS {'' if name == 'newest_runs' else 'NOT '}MATERIALIZED ({text})"
            for name, text in wanted.items()
            if not re.search(_DEFINED.format(name), asked, re.IGNORECASE)
        )
        before = explain[0] if explain else ""
        own = _WITH.match(asked)
        if own is None:
            return f"{before} WITH {parts}\n({asked}\n)"
        return f"{before} {own[0]} {parts}{',' if parts else ''}\n{asked[own.end() :]}"


def open_asking(
    address: str, catalog: Catalog, env_names: Sequence[str] = (), last: int | None = None
) -> PostgresAsking:
    """Raises StoreError."""
    reading = open_reading(address)
    try:
        return PostgresAsking(reading, catalog, env_names, last)
    except BaseException:
        reading.close()
        raise


class PostgresOutputs:
    """See `views.Outputs`."""

    def select(self, workflow: str, node: str, type: str, parts: Sequence[str] = ()) -> str:
        return _SELECT.format(
            columns=", ".join([*FIXED[:-1], *parts, "output"]),
            workflow=literal(workflow),
            text_of_node=literal(orjson.dumps(node).decode()),
            node=literal(node),
            type=literal(type),
        )

    def property(self, key: str, schema: Any) -> str:
        """A column has one type here: a value of another kind is NULL if the type in the schema is a number or a
        boolean, and text if it is text. Everything else is JSON."""
        value = f"(value -> {literal(key)})"
        kind = schema.get("type") if isinstance(schema, dict) else None
        if kind == "integer":  # 3.0 is an integer in JSON Schema
            return f"CASE jsonb_typeof{value} WHEN 'number' THEN trunc({value}::numeric) END"
        if kind == "number":
            fits = f"abs({value}::numeric) < 1e308"
            return f"CASE jsonb_typeof{value} WHEN 'number' THEN CASE WHEN {fits} THEN {value}::float8 END END"
        if kind == "boolean":
            return f"CASE jsonb_typeof{value} WHEN 'boolean' THEN {value}::boolean::int END"
        return f"(value ->> {literal(key)})" if kind == "string" else value


def _columns_of(connection: psycopg.Connection[Any], sql: str) -> tuple[str, ...]:
    """Return the columns of a statement that has no rows."""
    connection.pgconn.prepare(b"", sql.encode())
    described = connection.pgconn.describe_prepared(b"")
    return tuple((described.fname(n) or b"").decode() for n in range(described.nfields))


def _with_names_of_postgres(views: Iterator[View]) -> Iterator[View]:
    """Names without quotation marks are in small letters there, and as long as they may be."""
    used: set[str] = set()
    for view in views:
        name, n = view.name.lower()[:NAME_MAX], 2
        while name in used:
            end = f"_{n}"
            name, n = name[: NAME_MAX - len(end)] + end, n + 1
        used.add(name)
        yield View(name, view.workflow, view.block, view.columns, view.sql)


def _one_that_reads(sql: str) -> str:
    """Return the statement without the text before and after it. Raises QueryRefused for statements of another kind: a
    transaction that only reads may have side effects, of COPY … TO PROGRAM or NOTIFY."""
    sql = sql[_LEADING.match(sql).end() :].rstrip()  # type: ignore[union-attr]  # it matches the empty text too
    sql = sql.removesuffix(";")
    explain = _EXPLAIN.match(sql)
    asked = sql[explain.end() :].lstrip() if explain else sql
    if not (_READS.match(asked) or _SHOWS.match(sql)):
        word = sql.split(maxsplit=1)[0][:40] if sql else "an empty statement"
        raise QueryRefused(
            f"only reading is allowed here, not {word}",
            hint="one SELECT, WITH … SELECT, VALUES, TABLE, SHOW or EXPLAIN",
        )
    return sql


def _readable(value: Any) -> Any:
    """Stored JSON is bytes: shown as the text it is. Everything else as a text or a number that SQLite has too."""
    match value:
        case bool():
            return int(value)
        case None | str() | int() | float():
            return value
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return f"x'{value.hex()}'"
        case decimal.Decimal():
            whole = value.is_finite() and value == value.to_integral_value() and abs(value) < INT_MAX
            return int(value) if whole else float(value)
        case dict() | list():
            return orjson.dumps(value, default=str).decode()
        case datetime.datetime() | datetime.date():
            return value.isoformat()
        case _:
            return str(value)


def _refused(error: psycopg.Error) -> QueryRefused:
    if error.sqlstate == CANCELLED:
        return too_long()
    text = str(error).strip()
    if error.sqlstate == READ_ONLY:
        return QueryRefused(f"only reading is allowed here: {text}", hint="one SELECT, WITH … SELECT or EXPLAIN")
    return QueryRefused(
        text, hint="weft sql --views lists the generated views; tables: SELECT tablename FROM pg_tables"
    )
