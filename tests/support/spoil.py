"""Changes of a database behind the product's back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from executor.kernel.store.batches import batches_of
from executor.kernel.store.run_rows import Record

# An open run has a row in heads, one that has ended has its end in run_details; a bug may have left both.
_CHANGE_RUN = """
CREATE TEMP TRIGGER change_run INSTEAD OF UPDATE ON runs BEGIN
    UPDATE run_details SET id = NEW.id, workflow = NEW.workflow, version = NEW.version, plan_hash = NEW.plan_hash,
           parent_run_id = NEW.parent_run_id, parent_key = NEW.parent_key, root_id = NEW.root_id,
           document_hash = NEW.document_hash, created_at_ms = NEW.created_at_ms, finished_at_ms = NEW.finished_at_ms,
           input = NEW.input, output = NEW.output, error = NEW.error,
           status = iif(NEW.status IN ('succeeded', 'failed', 'cancelled'), NEW.status, NULL),
           seq = iif(NEW.status IN ('succeeded', 'failed', 'cancelled'), NEW.seq, NULL),
           epoch = iif(NEW.status IN ('succeeded', 'failed', 'cancelled'), NEW.epoch, NULL),
           cancel_n = iif(NEW.status IN ('succeeded', 'failed', 'cancelled'), NEW.cancel_n, NULL),
           started_at_ms = iif(NEW.status IN ('succeeded', 'failed', 'cancelled'), NEW.started_at_ms, NULL)
     WHERE n = OLD.n;
    DELETE FROM heads WHERE n = OLD.n;
    INSERT INTO heads (n, id, status, seq, epoch, stalls, inbox_n, cancel_n, owner, due_ms, started_at_ms)
    SELECT NEW.n, NEW.id, iif(NEW.status IN ('succeeded', 'failed', 'cancelled'), 'running', NEW.status), NEW.seq,
           NEW.epoch, NEW.stalls, coalesce(NEW.inbox_n, 0), NEW.cancel_n, NEW.lease_owner, NEW.next_run_at_ms,
           NEW.started_at_ms
     WHERE NEW.status NOT IN ('succeeded', 'failed', 'cancelled')
        OR NEW.lease_owner IS NOT NULL OR NEW.next_run_at_ms IS NOT NULL;
    INSERT INTO workers (id, until_ms) SELECT NEW.lease_owner, NEW.lease_until_ms
     WHERE NEW.lease_owner IS NOT NULL AND NEW.lease_until_ms IS NOT NULL
    ON CONFLICT (id) DO UPDATE SET until_ms = excluded.until_ms;
END"""


# Each event as a row that can be changed by itself, and what `batches` has of it.
_APART = """
CREATE TEMP TABLE loose_events AS
SELECT run_id, seq, at_ms, type, node, path, attempt, CAST(data AS BLOB) AS data, CAST(output AS BLOB) AS output
  FROM events"""
_ADD = """
INSERT INTO batches (n, seq, first_seq, output_bytes, checksum, head, payload)
SELECT n, ?, ?, ?, ?, ?, ? FROM run_details WHERE id = ?"""


def let_change(db: sqlite3.Connection) -> None:
    """UPDATE of the view `runs` works on this connection from now on. What it has changed is in `total_changes`."""
    db.execute(_CHANGE_RUN)


@contextmanager
def taken_apart(db: sqlite3.Connection) -> Iterator[None]:
    """Inside, every event is a row of `loose_events`; then each is a batch of its own, with a checksum that fits."""
    db.execute(_APART)
    yield
    db.execute("UPDATE heads SET seq = coalesce((SELECT max(seq) FROM batches WHERE batches.n = heads.n), seq)")
    db.execute("DELETE FROM batches")
    for run, *columns in db.execute("SELECT * FROM loose_events ORDER BY run_id, seq").fetchall():
        add_event(db, run, Record(*columns))
    db.execute("DROP TABLE loose_events")


def add_event(db: sqlite3.Connection, run: str, record: Record) -> None:
    (b,) = batches_of(run, record.seq - 1, [record])
    added = (b.seq, b.first_seq, b.output_bytes, b.checksum, b.head, b.payload, run)
    assert db.execute(_ADD, added).rowcount == 1, f"no run {run}"
