"""Read-only SQL on a PostgreSQL database: each statement is a transaction that is READ ONLY, with a time limit of the
server's. It can read all that the account of the address may read: give people one that may only SELECT.

A transaction that only reads can make no view, nor can a standby. So the views that a statement names are put before
it, as parts of its WITH.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, cast

import orjson
import psycopg

from compiler.catalog import Catalog
from executor.errors import QueryRefused
from executor.kernel.store.migrate import packaged_migrations
from executor.kernel.store.postgres.reading import PostgresReading, open_reading
from executor.service.upkeep.sql.asking import Asking, Dialect, Query, Rows, View, as_text, literal, refused, too_long

NAME_MAX = 63  # bytes of a name; of the rest, PostgreSQL takes no notice
INT_MAX = 2**63
CANCELLED = "57014"
READ_ONLY = "25006"

_OUTPUTS = """
SELECT e.run_id, r.workflow, e.node, e.path, e.attempt, e.seq, e.at_ms, convert_from(e.output, 'UTF8') AS output
  FROM events AS e JOIN run_details AS r ON r.id = e.run_id
 WHERE e.node IS NOT NULL AND e.output IS NOT NULL"""
_NEWEST = "SELECT * FROM run_details ORDER BY created_at_ms DESC, id DESC LIMIT {limit:d}"
_LEADING = re.compile(r"(?:\s+|--[^\n]*\n|/\*.*?\*/)*", re.DOTALL)
_EXPLAIN = re.compile(r"explain\b\s*(?:\([^)]*\)\s*|(?:(?:analyze|verbose)\b\s*)*)", re.IGNORECASE)
_READS = re.compile(r"(?:select|with|table|values)\b|\(", re.IGNORECASE)
_WITH = re.compile(r"with\b\s*(?:recursive\b)?", re.IGNORECASE)
_DEFINED = r"\b{}\s*(?:\([^()]*\)\s*)?as\s*(?:not\s+)?(?:materialized\s*)?\("  # by the statement itself
_SHOWS = re.compile(r"show\b", re.IGNORECASE)


class PostgresAsking(Asking):
    def __init__(
        self, reading: PostgresReading, catalog: Catalog, env_names: Sequence[str], last: int | None = None
    ) -> None:
        super().__init__(reading, POSTGRES, catalog, env_names)
        self.views = list(_with_names_of_postgres(self.views))
        self._last = last
        self._session = reading

    def query(
        self, sql: str, parameters: Sequence[Any] = (), *, timeout_s: float = 10.0, rows_max: int = 1000
    ) -> Query:
        assert not parameters, "statements of people have none"
        rows = self._stream(self._with_views(_one_that_reads(sql)), timeout_s)
        return Query(next(rows), rows, rows_max)

    def _stream(self, sql: str, timeout_s: float) -> Rows:
        """Yield the columns, then the rows."""
        connection = self._session.connection
        try:
            with self._session.snapshot(), connection.cursor() as cursor:
                connection.execute(cast(Any, f"SET LOCAL statement_timeout = {round(timeout_s * 1000):d}"))
                rows = cursor.stream(cast(Any, sql))
                try:
                    first = next(rows, None)
                    if first is None:
                        yield _columns_of(connection, sql)
                        return
                    yield tuple(column.name for column in cursor.description or ())
                    for row in chain([first], rows):
                        yield tuple(map(_readable, row))
                finally:
                    rows.close()  # type: ignore[attr-defined]  # it is a generator, and what is left of it is cancelled
        except psycopg.Error as error:
            raise _refused(error) from error

    def _with_views(self, sql: str) -> str:
        words = set(re.findall(r"\w+", sql.lower()))
        wanted = {view.name: view.sql for view in self.views if view.name in words}
        stored = {name: text for name, text in STORED.items() if name in words}
        if stored:
            stored = {"events": STORED["events"], **stored}
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


def _property(key: str, schema: Any) -> str:
    """Select a property. A column has one type here: a value of another kind than in its schema is NULL, or text if
    that is the type. Everything else is JSON."""
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


POSTGRES: Final = Dialect(
    main="",
    each="LATERAL jsonb_array_elements(b.head::jsonb) WITH ORDINALITY AS e (value, place)",
    place="e.place - 1",
    text="convert_from({}, 'UTF8')",
    data="convert_from({}, 'UTF8')::json",
    has="strpos({}, {}) > 0",
    # No text and no jsonb of PostgreSQL has the character NUL, JSON's \u0000: it is left out before a value is read.
    value=r"""CASE WHEN strpos(output, '\u0000') = 0 THEN output::jsonb
               ELSE regexp_replace(output, '(?<!\\)((\\\\)*)\\u0000', '\1', 'g')::jsonb END""",
    column=_property,
)


def _views_of_schema() -> dict[str, str]:
    """Return the views of journals, as the schema of SQLite has them, in the SQL of PostgreSQL."""
    found = {"events": POSTGRES.events, "outputs": _OUTPUTS}
    schema = "".join(migration.sql for migration in packaged_migrations("sqlite"))
    for name in ("attempts", "nodes"):
        text = schema.rpartition(f"CREATE VIEW {name} AS")[2].partition(";")[0]  # the last one
        text = re.sub(r"iif\(([^,]+), ([^,]+), ([^,)]+)\)", r"CASE WHEN \1 THEN \2 ELSE \3 END", text)
        text = text.replace("CAST(data AS TEXT)", POSTGRES.text.format("data"))
        found[name] = re.sub(r"\bruns\b", "run_details", text)
    return {**found, "steps": POSTGRES.steps}


STORED: Final = _views_of_schema()


def _columns_of(connection: psycopg.Connection[Any], sql: str) -> tuple[str, ...]:
    connection.pgconn.prepare(b"", sql.encode())
    described = connection.pgconn.describe_prepared(b"")
    return tuple((described.fname(n) or b"").decode() for n in range(described.nfields))


def _with_names_of_postgres(views: Iterable[View]) -> Iterator[View]:
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
    """Return the statement alone. Raises QueryRefused: a transaction that only reads may have side effects, of COPY …
    TO PROGRAM or NOTIFY."""
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
            return as_text(value)
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
    changes = error.sqlstate == READ_ONLY
    return refused(str(error).strip(), changes=changes, tables="tables: SELECT tablename FROM pg_tables")
