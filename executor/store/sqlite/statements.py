"""Pieces of statements that several topics share: conditions, lists as one parameter, taking the row of a run.

What a run is and what came of it is in `run_details`, what changes while it is executed in `heads`, which has a row as
long as the run is open; see `sql/sqlite/0014_heads.sql`. `runs` is a view of both, for readers that want a whole run.

Taking a row is a write that changes nothing, but keeps other transactions from the row until this one is over. In which
order rows are taken: `executor.store.rules`. On SQLite a transaction that writes has the whole file; the code does not
rely on that.
"""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from executor.store.sqlite.connection import Tx

# Of a row of run_details. `ENDED` must be, letter by letter, what the indexes of ended runs say, or they are not used.
OPEN = "status IS NULL"
ENDED = "status IS NOT NULL"
# The row of heads of the run whose id is the parameter :id.
HEAD_OF_ID = "n = (SELECT n FROM run_details WHERE id = :id)"
# The head of an open run; one that has ended has only its details. In this order, as the append that ends a run does.
TAKE_HEAD = f"UPDATE heads SET seq = seq WHERE {HEAD_OF_ID}"
TAKE_ENDED = "UPDATE run_details SET request_hash = request_hash WHERE id = :id"


def by_index(name: str) -> str:
    """Behind the name of a table: the index that SQLite would not choose by itself."""
    return f"INDEXED BY {name}"


def those_of(*conditions: tuple[str, object]) -> str:
    """The conditions that have a value, joined."""
    return "".join(condition for condition, value in conditions if value is not None)


def any_of(parameter: str) -> str:
    """What stands behind IN for a list, which is the value of `parameter` as `as_list` writes it. The only place that
    knows how this database takes a list."""
    return f"(SELECT value FROM json_each({parameter}))"


def any_row_of(parameter: str, columns: int) -> str:
    """As `any_of`, for a list of lists with so many values each."""
    row = ", ".join(f"value ->> {n}" for n in range(columns))
    return f"(SELECT {row} FROM json_each({parameter}))"


def as_list(values: Sequence[str | int | Sequence[str | int]]) -> str:
    """The value of a parameter of `any_of` or `any_row_of`."""
    return msgspec.json.encode(values).decode()


def take_run(tx: Tx, run: str) -> bool:
    """False: there is no such run."""
    return any(tx.db.execute(statement, {"id": run}).rowcount == 1 for statement in (TAKE_HEAD, TAKE_ENDED))
