"""Pieces of statements that several topics share: conditions, lists as one parameter, taking the row of a run.

What a run is and what came of it is in `run_details`, what changes while it is executed in `heads`, which has a row as
long as the run is open; see `sql/sqlite/0001_start.sql`. `runs` is a view of both, for readers that want a whole run.

Taking a row is a write that changes nothing, but keeps other transactions from the row until this one is over. In which
order rows are taken: `kernel.store.topics`. On SQLite a transaction that writes has the whole file; the code does not
rely on that.
"""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from executor.kernel.store.tx import Tx

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


def by_index(name: str) -> str:
    """Behind the name of a table: the index that SQLite would not choose by itself."""
    return f"$index({name})"


def those_of(*conditions: tuple[str, object]) -> str:
    """Return the conditions that have a value, joined."""
    return "".join(condition for condition, value in conditions if value is not None)


def any_of(parameter: str) -> str:
    """Return the text after IN for a list of texts, the value of `parameter` as `as_list` writes it."""
    return f"$texts({parameter})"


def any_number_of(parameter: str) -> str:
    """As `any_of`, for a list of integers."""
    return f"$numbers({parameter})"


def is_any_number_of(parameter: str) -> str:
    """Behind a column with an index, instead of IN: by which rows are found however few the planner expects. A plan of
    PostgreSQL that was made while tables were empty would else read the whole index."""
    return f"$is_any({parameter})"


def any_row_of(parameter: str, types: str) -> str:
    """As `any_of`, for a list of lists. `types` has a letter for each of their values: `n`, an integer, or `t`, a
    text."""
    return f"$rows({parameter}, {types})"


def number_of(parameter: str) -> str:
    """The number of the run whose id is the value of `parameter`, by which its journal is found."""
    return f"$number_of({parameter})"


def as_list(values: Sequence[str | int | Sequence[str | int]]) -> str:
    """The value of a parameter of `any_of`, `any_number_of` or `any_row_of`."""
    return msgspec.json.encode(values).decode()


def keep_workflow(tx: Tx, name: str) -> None:
    """Lock the workflow before inserting its run; deletion locks in the same order."""
    tx.rows(KEEP_WORKFLOW, {"name": name})


def take_run(tx: Tx, run: str) -> bool:
    """Lock a run. Returns False if there is no such run."""
    return any(tx.run(statement, {"id": run}) == 1 for statement in (TAKE_HEAD, TAKE_ENDED))
