"""Conditions of statements that several topics share.

What a run is and what came of it is in `run_details`, what changes while it is executed in `heads`, which has a row as
long as the run is open; see `sql/sqlite/0014_heads.sql`. `runs` is a view of both, for readers that want a whole run.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

# Of a row of run_details. `ENDED` must be, letter by letter, what the indexes of ended runs say, or they are not used.
OPEN = "status IS NULL"
ENDED = "status IS NOT NULL"
# The row of heads of the run whose id is the parameter :id.
HEAD_OF_ID = "n = (SELECT n FROM run_details WHERE id = :id)"


def by_index(name: str) -> str:
    """Behind the name of a table: the index that SQLite would not choose by itself."""
    return f"INDEXED BY {name}"


def those_of(*conditions: tuple[str, object]) -> str:
    """The conditions that have a value, joined."""
    return "".join(condition for condition, value in conditions if value is not None)


def any_of(parameter: str) -> str:
    """What stands behind IN for a list, which is the value of `parameter` as `as_list` writes it. The only place that
    knows how this database takes a list."""
    return f"(SELECT value FROM json_each({parameter}))"  # noqa: S608  (a parameter's name, never a value)


def any_row_of(parameter: str, columns: int) -> str:
    """As `any_of`, for a list of lists with so many values each."""
    row = ", ".join(f"value ->> {n}" for n in range(columns))
    return f"(SELECT {row} FROM json_each({parameter}))"  # noqa: S608  (a parameter's name, never a value)


def as_list(values: Sequence[str | int | Sequence[str | int]]) -> str:
    return msgspec.json.encode(values).decode()
