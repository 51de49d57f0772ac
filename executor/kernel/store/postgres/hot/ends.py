"""Appends that end their run and write nothing else: the head goes, and the details have what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import psycopg

from executor.kernel.store.batches import batches_of
from executor.kernel.store.postgres.connection import Tx
from executor.kernel.store.postgres.hot.journal import ADD_BATCHES, Journals
from executor.kernel.store.postgres.hot.kind import Columns, Kind, Session
from executor.kernel.store.run_rows import Append, Appended
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.journal import writes_only_itself
from executor.kernel.store.topics.snapshots import seq_min
from executor.kernel.store.tx import Row
from executor.kernel.store.writer import Outcome

WANTED = Columns("w", id="t", epoch="n", after="n", seq="n", status="t", now="n", output="b", error="b")
# Who does not come back is fenced, or has a cancel request in its inbox.
END_RUNS = f"""
WITH ended AS (
    DELETE FROM heads AS h USING {WANTED.table}
     WHERE h.id = w.id AND h.epoch = w.epoch AND h.seq = w.after
       AND NOT EXISTS (SELECT 1 FROM inbox AS i WHERE i.run_id = h.id AND i.n = h.cancel_n)
    RETURNING h.n, h.started_at_ms, h.cancel_n, h.limits, w.*),
details AS (
    UPDATE run_details AS d
       SET status = e.status, seq = e.seq, epoch = e.epoch, cancel_n = e.cancel_n, started_at_ms = e.started_at_ms,
           finished_at_ms = e.now, output = coalesce(e.output, d.output), error = coalesce(e.error, d.error)
      FROM ended AS e WHERE d.n = e.n),
written AS ({ADD_BATCHES} ended AS owned ON owned.id = b.run),
left_behind AS (
    UPDATE slots AS s SET freed = 1 FROM ended AS e WHERE s.n = e.n AND s.freed = 0 AND e.limits IS NOT NULL),
unfolded AS (DELETE FROM snapshots AS s USING ended AS e WHERE s.n = e.n AND e.after >= %(snapshot_seq_min)s),
closed AS (
    UPDATE waits AS w SET status = 'cancelled', answered_at_ms = e.now FROM ended AS e
     WHERE w.run_id = e.id AND w.status = 'pending'),
emptied AS (DELETE FROM inbox AS i USING ended AS e WHERE i.run_id = e.id)
SELECT id FROM ended"""


class Ends(Kind[Append]):
    locks = True

    def __init__(self, entries: Mapping[str, tuple[int, Append]]) -> None:
        super().__init__(entries)
        self._journals = Journals(
            (each.run_id, batches_of(each.run_id, each.expected_seq, each.records)) for each in self.said
        )

    def write(self, tx: Tx) -> psycopg.Cursor[Row]:
        rows = [
            (each.run_id, each.epoch, each.expected_seq, seq, each.status, each.now_ms, each.output, each.error)
            for each, seq in zip(self.said, self._journals.last(), strict=True)
        ]
        bound = {"snapshot_seq_min": seq_min()}
        return tx.ask(END_RUNS, {**WANTED.values(rows), **self._journals.values(), **bound})

    def look(self, session: Session) -> psycopg.Cursor[Row]:
        return self._journals.look(session)

    def outcomes(self, rows: Sequence[Row]) -> list[Outcome | None]:
        ended = {row[0] for row in rows}
        return [
            Outcome(Appended(each.expected_seq + len(each.records), 0)) if each.run_id in ended else None
            for each in self.said
        ]


def only_ends(change: Append) -> bool:
    return change.status in TERMINAL and bool(change.records) and writes_only_itself(change)
