"""Parts that statements of several topics share, and how the functions of a topic reach the database: a transaction
for those that write, readers for those that read.

Statements are in the SQL that SQLite and PostgreSQL share, with named parameters. Where the two differ, a statement has
a piece, written `$name(arguments)`; PIECES has the text of each.

What a run is and what came of it is in `run_details`, what changes while it is executed in `heads`, which has a row as
long as the run is open; see `sql/sqlite/0001_start.sql`. `runs` is a view of both, for readers that want a whole run.

Taking a row is a write that changes nothing, but keeps other transactions from the row until this one is over. In which
order rows are taken: `kernel.store.topics`. On SQLite a transaction that writes has the whole file; the code does not
rely on that.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_type_hints

import msgspec
from msgspec import Struct

RunStatus = Literal["queued", "running", "waiting", "succeeded", "failed", "cancelled"]
COUNT_MAX: Final = 100_000  # nothing is counted further: so many means "so many or more"
TERMINAL: frozenset[str] = frozenset({"succeeded", "failed", "cancelled"})
# Conditions on a row of run_details. SQLite and PostgreSQL use the indexes of ended runs only for a condition with
# exactly the text of `ENDED`.
OPEN = "status IS NULL"
ENDED = "status IS NOT NULL"
# The row of heads of the run whose id is the parameter :id.
HEAD_OF_ID = "$head_of(:id)"
# The number of the last event of the run that a row of heads is of.
LAST_SEQ = "$last_seq"
# The head of an open run; one that has ended has only its details. In this order, as the append that ends a run does.
TAKE_HEAD = f"UPDATE heads SET seq = seq WHERE {HEAD_OF_ID}"
TAKE_ENDED = "UPDATE run_details SET request_hash = request_hash WHERE id = :id"
# Its active version stays until this transaction is over.
KEEP_WORKFLOW = "SELECT 1 FROM active_versions WHERE workflow = :name $keep_there"

_EACH = "jsonb_array_elements_text(({0})::jsonb) AS listed(value)"
# The server's clock. A session with the setting weft.time=caller (in the address: options=-c weft.time=caller) takes
# the times of its callers instead, as tests and simulations need it.
NOW_MS = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
LEASE_NOW = f"(SELECT CASE WHEN current_setting('weft.time', true) = 'caller' THEN {{0}} ELSE {NOW_MS} END)"
# The texts on SQLite and on PostgreSQL; {0} and {1} are the arguments.
PIECES: Final[dict[str, tuple[str, str]]] = {
    # Behind IN: the values of a list, a parameter that `as_list` makes.
    "texts": ("(SELECT value FROM json_each({0}))", f"(SELECT value FROM {_EACH})"),
    "numbers": ("(SELECT value FROM json_each({0}))", f"(SELECT value::bigint AS value FROM {_EACH})"),
    # Behind a column with an index, instead of IN: by which rows are found however few the planner expects. A plan of
    # PostgreSQL that was made while tables were empty would else read the whole index.
    "is_any": ("IN (SELECT value FROM json_each({0}))", f"= ANY(ARRAY(SELECT value::bigint FROM {_EACH}))"),
    # Behind IN: a list of lists. The second argument has a letter for each of their values: `n`, an integer, or `t`, a
    # text; {1} is what they are made of.
    "rows": (
        "(SELECT {1} FROM json_each({0}))",
        "(SELECT {1} FROM jsonb_array_elements(({0})::jsonb) AS listed(value))",
    ),
    # Behind the name of a table: the index that SQLite would not choose by itself.
    "index": ("INDEXED BY {0}", ""),
    # Text stored as bytes.
    "text_of": ("CAST({0} AS TEXT)", "convert_from({0}, 'UTF8')"),
    # The blocks of a document, each with a `value`.
    "blocks_of": ("json_each(CAST({0} AS TEXT), '$.blocks')", "json_each(convert_from({0}, 'UTF8')::json -> 'blocks')"),
    # After a list `v`: the last runs `r` for which a column has this value, by an index.
    "last_runs": (
        "CROSS JOIN run_details AS r ON r.n IN (SELECT n FROM run_details INDEXED BY {2} WHERE {0} = {1}"
        " ORDER BY created_at_ms DESC, id DESC LIMIT :limit)",
        "JOIN LATERAL (SELECT * FROM run_details WHERE {0} = {1}"
        " ORDER BY created_at_ms DESC, id DESC LIMIT :limit) AS r ON true",
    ),
    "has": ("instr({0}, {1})", "(strpos({0}, {1}) > 0)"),
    "events": (
        "json_each({0})",
        "LATERAL (SELECT place - 1 AS key, value"
        " FROM jsonb_array_elements(({0})::jsonb) WITH ORDINALITY AS counted(value, place))",
    ),
    # The number of the run with this id, by which its journal is found. On PostgreSQL each part of the journals would
    # be opened with a subselect (sql/postgres/0001_start.sql).
    "number_of": ("(SELECT n FROM run_details WHERE id = {0})", "number_of({0})"),
    # On PostgreSQL a run may get another number while the statement waits for its head; its id stays.
    "head_of": ("n = (SELECT n FROM run_details WHERE id = {0})", "id = {0}"),
    # On SQLite an append writes only its batch, so `seq` of a head may be too low. On PostgreSQL it is the fence.
    "last_seq": (
        "coalesce((SELECT max(batches.seq) FROM batches WHERE batches.n = heads.n), heads.seq)",
        "heads.seq",
    ),
    "database_bytes": (
        "page_count * page_size FROM pragma_page_count, pragma_page_size",
        "pg_database_size(current_database())",
    ),
    # Processes on one machine have one clock.
    "lease_now": ("{0}", LEASE_NOW),
    # A row that is deleted meanwhile would orphan what is being written; changes of it are not in the way.
    "keep_there": ("", "FOR KEY SHARE"),
    "kept_workflow": (
        "{0}",
        "coalesce((SELECT workflow FROM active_versions WHERE workflow = {0} FOR KEY SHARE), {0})",
    ),
    "take_alone": ("", "FOR UPDATE"),
    "try_lock": ("true", "pg_try_advisory_xact_lock(hashtextextended({0}, 0))"),
    # Two sessions that look for work find different rows, and none waits.
    "skip_locked": ("", "FOR NO KEY UPDATE OF {0} SKIP LOCKED"),
    "for_each": (
        "CROSS JOIN heads AS h ON h.n IN (SELECT q.n",
        "CROSS JOIN LATERAL (SELECT q.fair, q.priority, q.due_ms, q.id, q.n, q.limits, q.rates, q.cancel_n",
    ),
    "end_each": (")", "FOR NO KEY UPDATE SKIP LOCKED) AS h"),
}
_TYPES: Final = {"n": "bigint", "t": "text"}
_PIECE = re.compile(r"\$(\w+)(?:\(([^()]*)\))?")
_PARAMETER = re.compile(r"(?<!:):(\w+)")


class Texts(dict[str, str]):
    """Each statement as this database is asked it, made the first time it is asked for. There are as many as the
    topics have, with and without each of their conditions."""

    def __init__(self, database: Literal["sqlite", "postgres"]) -> None:
        super().__init__()
        self._which = ("sqlite", "postgres").index(database)

    def __missing__(self, sql: str) -> str:
        text = _PIECE.sub(self._piece, sql)
        if self._which:  # psycopg has parameters of another form
            text = _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%"))
        self[sql] = text
        return text

    def _piece(self, found: re.Match[str]) -> str:
        arguments = [] if found[2] is None else [each.strip() for each in found[2].split(",")]
        if found[1] == "rows":
            form = ("value ->> {0}", "(value ->> {0})::{1}")[self._which]
            arguments[1] = ", ".join(form.format(n, _TYPES[letter]) for n, letter in enumerate(arguments[1]))
        return PIECES[found[1]][self._which].format(*arguments)


T = TypeVar("T")
Row = tuple[Any, ...]
Values = Mapping[str, Any] | tuple[()]


class Batch(NamedTuple):
    """One row of a journal: what one append writes, or a part of it. In the order of the columns."""

    seq: int
    first_seq: int
    output_bytes: int
    checksum: int
    head: str
    payload: bytes


@cache
def _switches(kind: Any) -> tuple[int, ...]:
    return tuple(n for n, hint in enumerate(get_type_hints(kind).values()) if hint in (bool, bool | None))


def as_struct(kind: type[T], row: Row) -> T:
    """Return a row as a struct whose fields are in the order of the columns. Databases have 0 and 1 for a bool."""
    switches = _switches(kind)  # type: ignore[arg-type]  # a class is hashable
    if not switches:
        return kind(*row)
    values = list(row)
    for n in switches:
        if n < len(values) and values[n] is not None:
            values[n] = bool(values[n])
    return kind(*values)


class Tx(ABC):
    """An open transaction.

    messages  True if any inbox has one, None if not looked up yet
    done      what `do_once` has done
    """

    __slots__ = ("done", "messages")

    def __init__(self, messages: bool | None) -> None:
        self.messages = messages
        self.done: set[tuple[str, object]] = set()

    @abstractmethod
    def rows(self, sql: str, values: Values = ()) -> list[Row]: ...

    def row(self, sql: str, values: Values = ()) -> Row:
        (row,) = self.rows(sql, values)
        return row

    def fetch(self, kind: type[T], sql: str, values: Values = ()) -> list[T]:
        return [as_struct(kind, row) for row in self.rows(sql, values)]

    def fetch_one(self, kind: type[T], sql: str, values: Values = ()) -> T | None:
        found = self.rows(sql, values)
        return as_struct(kind, found[0]) if found else None

    @abstractmethod
    def run(self, sql: str, values: Values = ()) -> int:
        """Execute a statement. Returns how many rows it changed."""

    @abstractmethod
    def do(self, sql: str, values: Values = ()) -> None:
        """`run`, where it does not matter how many: a database that is asked over a network need not answer before the
        next statement."""

    @abstractmethod
    def add_rows(self, sql: str, values: Sequence[Mapping[str, Any]]) -> None:
        """`run` for each of the values, where `sql` adds one row and ends with its VALUES, in few statements: threads
        that compute get in between any two of them."""

    @abstractmethod
    def look(self, sql: str, values: Values = ()) -> Row:
        """As `row`, where it makes no difference which appends of events are written already."""

    @abstractmethod
    def lock(self, run: str) -> None:
        """Keep the head of the run from other transactions, where several write at once, until this one is over, so
        that statements after this one see what they have committed."""

    @abstractmethod
    def append_later(self, run: str, epoch: int, after: int, batches: Sequence[Batch]) -> None:
        """Append these events, after the one with the number `after`, if the run still has this epoch and that event is
        its last; else nothing of the transaction is committed. Written before anything else is looked at."""

    @abstractmethod
    def add_batches(self, run: str, number: int, batches: Sequence[Batch]) -> None:
        """Write batches after the fence of an append, or of the new run with this number."""

    @abstractmethod
    def begin_journals(self, batches: Sequence[tuple[str, Batch]]) -> None:
        """Write the only batch of each of these new runs; as `add_batches`, in few statements."""


def do_once(tx: Tx, sql: str, about: object, values: Values) -> None:
    """`do`, unless this transaction has done it before, for the same `about`: runs that begin together often have
    their document and their plan in common."""
    if (sql, about) not in tx.done:
        tx.do(sql, values)
        tx.done.add((sql, about))


class Readers(ABC):
    """Each call is one SELECT, and sees one state."""

    async def open(self) -> None:
        """Begin to read a database that has its schema. Raises DatabaseUnavailable."""
        return

    async def close(self) -> None:
        return

    @abstractmethod
    async def all(self, sql: str, values: Values = ()) -> list[Row]: ...

    async def version(self) -> int | None:
        """Return a number that is another one after each commit of any process, or None where there is none."""
        return None

    async def one(self, sql: str, values: Values = ()) -> Row | None:
        rows = await self.all(sql, values)
        assert len(rows) <= 1
        return rows[0] if rows else None

    async def fetch(self, kind: type[T], sql: str, values: Values = ()) -> list[T]:
        return [as_struct(kind, row) for row in await self.all(sql, values)]

    async def fetch_one(self, kind: type[T], sql: str, values: Values = ()) -> T | None:
        row = await self.one(sql, values)
        return None if row is None else as_struct(kind, row)

    async def value(self, kind: Callable[[Any], T], sql: str, values: Values = ()) -> T | None:
        """Return the first column of the only row, or None if there is no row, or no value."""
        row = await self.one(sql, values)
        return None if row is None or row[0] is None else kind(row[0])


def columns(kind: type[Struct], **renamed: str) -> str:
    """Return the columns of a table: the fields of the struct of its rows, in order, of which some have other names."""
    return ", ".join(renamed.get(field, field) for field in kind.__struct_fields__)


def insert(table: str, kind: type[Struct], **renamed: str) -> str:
    """Return the statement that adds a row. Its parameters are the fields."""
    values = ", ".join(f":{field}" for field in kind.__struct_fields__)
    return f"INSERT INTO {table} ({columns(kind, **renamed)}) VALUES ({values})"


def replacing(kind: type[Struct], *key: str, **renamed: str) -> str:
    """Return the clause of an INSERT by which it replaces the row that has the same key."""
    others = [renamed.get(field, field) for field in kind.__struct_fields__ if field not in key]
    return f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(f'{each} = excluded.{each}' for each in others)}"


def those_of(*conditions: tuple[str, object]) -> str:
    """Return the conditions that have a value, joined."""
    return "".join(condition for condition, value in conditions if value is not None)


def as_list(values: Sequence[str | int | Sequence[str | int]]) -> str:
    return msgspec.json.encode(values).decode()


def keep_workflow(tx: Tx, name: str) -> None:
    """Lock the workflow before inserting its run; deletion locks in the same order."""
    tx.rows(KEEP_WORKFLOW, {"name": name})


def lock_run(tx: Tx, run: str) -> bool:
    """Lock a run. Returns False if there is no such run."""
    return any(tx.run(statement, {"id": run}) == 1 for statement in (TAKE_HEAD, TAKE_ENDED))
