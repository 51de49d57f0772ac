"""One session that only reads, for what looks at a whole database: `weft doctor`, `export`, `sql`, `migrate-store`.

Statements are in the text that all databases share (`statements.py`). `service/upkeep/sql` opens one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from msgspec import Struct

from executor.kernel.store.statements import Row, Values

Kind = Literal["SQLite", "PostgreSQL"]
# A statement is cut off when it has read for so long.
READING_MAX_S = 3600


class Column(Struct, frozen=True):
    """One that may hold text. `has` is the condition that a row has some bytes in it, which stand for `{}`."""

    name: str
    has: str


class Reading(Protocol):
    """A reader of a database, for one thread. Its methods raise StoreError if the database cannot be read, on SQLite
    sqlite3.Error.

    name  of the database, for people; never a password
    """

    kind: Kind
    name: str

    def rows(self, sql: str, values: Values = ()) -> list[Row]: ...

    def each(self, sql: str, values: Values = ()) -> Iterator[Row]:
        """The same, as they are read; meanwhile there may be other statements."""

    def snapshot(self) -> AbstractContextManager[None]:
        """All that is read inside is of one moment. A caller who has one already stays in it."""

    def schema(self) -> tuple[int, int]:
        """Return the number of the database's schema, and of the newest that this code supports. Raises
        ForeignDatabase, SchemaUnreleased."""

    def identity(self) -> str:
        """Tells this database from a copy of it."""

    def unsound(self, limit: int) -> Iterator[str]:
        """Yield what the database finds when it checks itself, at most `limit` of each kind."""

    def damage(self, error: Exception) -> str | None:
        """Return the message of an error of `rows` if it is that a part of the database is damaged, else None."""

    def tables(self) -> dict[str, list[str]]:
        """Return all tables and their columns."""

    def texts(self, table: str) -> list[Column]: ...

    def clock_ms(self) -> int:
        """Return the time where the database is."""

    def close(self) -> None: ...
