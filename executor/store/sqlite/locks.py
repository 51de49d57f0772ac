"""Taking a row: a write that changes nothing, but keeps other transactions from the row until this one is over.

In which order rows are taken: `executor.store.rules`. On SQLite a transaction that writes has the whole file; the code
does not rely on that.
"""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

from executor.store.sqlite.conditions import HEAD_OF_ID
from executor.store.sqlite.connection import Tx

# The head of an open run; one that has ended has only its details. In this order, as the append that ends a run does.
TAKE_HEAD = f"UPDATE heads SET seq = seq WHERE {HEAD_OF_ID}"
TAKE_ENDED = "UPDATE run_details SET request_hash = request_hash WHERE id = :id"


def take_run(tx: Tx, run: str) -> bool:
    """False: there is no such run."""
    return any(tx.db.execute(statement, {"id": run}).rowcount == 1 for statement in (TAKE_HEAD, TAKE_ENDED))
