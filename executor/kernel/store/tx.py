"""Access of the functions of a topic to the database: a transaction for those that write, readers for those that read.
Both take the text that all databases share (`statements.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol


class Batch(NamedTuple):
    """One row of a journal: what one append writes, or a part of it. In the order of the columns."""

    seq: int
    first_seq: int
    output_bytes: int
    checksum: int
    head: str
    payload: bytes


Row = tuple[Any, ...]
Values = Mapping[str, Any] | tuple[()]


class Tx(Protocol):
    """An open transaction.

    messages  True if any inbox has one, None if not looked up yet
    done      what `do_once` has done
    """

    messages: bool | None
    done: set[tuple[str, object]]

    def rows(self, sql: str, values: Values = ()) -> list[Row]: ...

    def row(self, sql: str, values: Values = ()) -> Row:
        """For a statement that always has one row."""

    def run(self, sql: str, values: Values = ()) -> int:
        """Execute a statement. Returns how many rows it changed."""

    def do(self, sql: str, values: Values = ()) -> None:
        """`run`, where it does not matter how many: a database that is asked over a network need not answer before the
        next statement."""

    def many(self, sql: str, values: Sequence[Mapping[str, Any]]) -> int:
        """`run` for each of the values."""

    def add_rows(self, sql: str, values: Sequence[Mapping[str, Any]]) -> None:
        """`run` for each of the values, where `sql` adds one row and ends with its VALUES, in few statements: threads
        that compute get in between any two of them."""

    def look(self, sql: str, values: Values = ()) -> Row:
        """As `row`, where it makes no difference which appends of events are written already."""

    def lock(self, run: str) -> None:
        """Keep the head of the run from other transactions, where several write at once, until this one is over, so
        that statements after this one see what they have committed."""

    def append_later(self, run: str, epoch: int, after: int, batches: Sequence[Batch]) -> None:
        """Append these events, after the one with the number `after`, if the run still has this epoch and that event is
        its last; else nothing of the transaction is committed. Written before anything else is looked at."""

    def add_batches(self, run: str, number: int, batches: Sequence[Batch]) -> None:
        """Behind the fence of an append, or of a new run. `number`: of the run."""

    def begin_journals(self, batches: Sequence[tuple[str, Batch]]) -> None:
        """The only batch of each of these new runs; as `add_batches`, in few statements."""


def do_once(tx: Tx, sql: str, about: object, values: Values) -> None:
    """`do`, unless this transaction has done it before, for the same `about`: runs that begin together often have
    their document and their plan in common."""
    if (sql, about) not in tx.done:
        tx.do(sql, values)
        tx.done.add((sql, about))


class Readers(Protocol):
    """Each call is one SELECT, and sees one state."""

    async def all(self, sql: str, parameters: Values = ()) -> list[Row]: ...

    async def one(self, sql: str, parameters: Values = ()) -> Row | None:
        """Return the only row, or None. For statements that give at most one."""
