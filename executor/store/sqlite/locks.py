"""Taking a row: a write that changes nothing, but keeps other transactions from the row until this one is over.

In which order rows are taken: `executor.store.rules`. On SQLite a transaction that writes has the whole file; the code
does not rely on that.
"""

from __future__ import annotations

from executor.store.sqlite.connection import Tx

TAKE_RUN = "UPDATE runs SET seq = seq WHERE id = :id"


def take_run(tx: Tx, run: str) -> bool:
    """False: there is no such run."""
    return tx.db.execute(TAKE_RUN, {"id": run}).rowcount == 1
