"""Statements of people: one at a time, with a limit of time and rows, and none that changes anything.

Besides the tables there are the views of the schema (`events`, `outputs`, `attempts`, `nodes`) and one view per block
with a known output (`views.py`). They are made for the session: nothing in the database has to follow when a workflow
changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from executor.errors import QueryRefused
from executor.kernel.store.reading import Reading
from executor.service.upkeep.sql.views import View


class Query(Protocol):
    """An open query. Iterate over it for the rows, up to the limit; then `more` is True if there were others. Raises
    QueryRefused, also while rows are read."""

    columns: tuple[str, ...]
    more: bool

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...


class Asking(Protocol):
    """A session for statements of people. `views`: those that are made for it; `reading`: the same session for ours."""

    reading: Reading
    views: list[View]

    def query(
        self, sql: str, parameters: Sequence[Any] = (), *, timeout_s: float = 10.0, rows_max: int = 1000
    ) -> Query:
        """Start one statement. The time runs until the last row is read. Raises QueryRefused."""

    def select(self, workflow: str, node: str, type: str) -> str:
        """Return a query with a row for each output of the node by an event of this type."""

    def close(self) -> None: ...


def too_long() -> QueryRefused:
    """Return the error of a query that has used up its time."""
    return QueryRefused(
        "the query took too long",
        hint="narrow the query to one run, or to the newest (`weft sql --last 1000`): events, outputs, attempts, nodes "
        "and steps read the journals of all runs; or increase the time limit (--timeout)",
    )
