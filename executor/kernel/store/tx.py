"""Access of the functions of a topic to the database: a transaction for those that write, readers for those that read.
Both take the text that all databases share (`statements.py`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_type_hints

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
    values = list(row)
    for n in _switches(kind):  # type: ignore[arg-type]  # a class is hashable
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
        """Write batches after the fence of an append, or of a new run. `number`: of the run."""

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
