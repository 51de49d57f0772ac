"""Appends that have nothing but events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import psycopg

from executor.errors import Fenced
from executor.kernel.store.batches import batches_of
from executor.kernel.store.postgres.connection import Tx
from executor.kernel.store.postgres.dialect import APPEND_EVENTS_OF_ONE
from executor.kernel.store.postgres.hot.journal import ADD_BATCHES, Journals
from executor.kernel.store.postgres.hot.kind import Columns, Kind, Session
from executor.kernel.store.run_rows import Append, Appended
from executor.kernel.store.tx import Row
from executor.kernel.store.writer import Outcome

WANTED = Columns("w", id="t", epoch="n", after="n", seq="n")
# Who does not come back is fenced.
APPEND_EVENTS = f"""
WITH fenced AS (
    UPDATE heads AS h SET seq = w.seq, stalls = 0 FROM {WANTED.table}
     WHERE h.id = w.id AND h.epoch = w.epoch AND h.seq = w.after RETURNING h.id, h.n, h.inbox_n),
written AS ({ADD_BATCHES} fenced AS owned ON owned.id = b.run)
SELECT id, inbox_n FROM fenced"""
# Looked for after the locks, so that each message posted before is found.
NEWEST_MESSAGES = "SELECT run_id, max(n) FROM inbox WHERE run_id = ANY(%(runs)s::text[]) GROUP BY run_id"

# Asked for runs that have ever had a message, with how many: the number of the newest one that is there.
Newest = Callable[[dict[str, int]], Mapping[str, int]]


class Appends(Kind[Append]):
    """Appends of several runs in one statement. A fenced one does not affect the others.

    With one of them and with many the statement differs: a list of one costs three times as much as a value.
    """

    def __init__(self, entries: Mapping[str, tuple[int, Append]]) -> None:
        super().__init__(entries)
        self._batches = [batches_of(each.run_id, each.expected_seq, each.records) for each in self.said]
        self._journals = Journals(zip(self.runs, self._batches, strict=True))
        self._newest: Mapping[str, int] = {}

    def write(self, tx: Tx) -> psycopg.Cursor[Row]:
        if len(self.said) == 1 and len(self._batches[0]) == 1:
            change, (batch,) = self.said[0], self._batches[0]
            fence = {"run": change.run_id, "epoch": change.epoch, "after": change.expected_seq}
            return tx.ask(APPEND_EVENTS_OF_ONE, {**fence, **batch._asdict()})
        fences = [
            (each.run_id, each.epoch, each.expected_seq, seq)
            for each, seq in zip(self.said, self._journals.last(), strict=True)
        ]
        return tx.ask(APPEND_EVENTS, {**WANTED.values(fences), **self._journals.values()})

    def look(self, session: Session) -> psycopg.Cursor[Row]:
        return self._journals.look(session)

    def find_messages(self, rows: Sequence[Row], newest: Newest) -> None:
        """Before `outcomes`. `rows`: as of `write`."""
        posted = {run: inbox_n for run, inbox_n in rows if inbox_n}
        if posted:
            self._newest = newest(posted)

    def outcomes(self, rows: Sequence[Row]) -> list[Outcome | None]:
        written = {run for run, _ in rows}
        outcomes: list[Outcome | None] = []
        for change in self.said:
            run = change.run_id
            if run in written:
                seq = change.expected_seq + len(change.records)
                outcomes.append(Outcome(Appended(seq, self._newest.get(run, 0), None)))
            else:
                stale = f"run {run}: epoch {change.epoch} at seq {change.expected_seq} is no longer current"
                outcomes.append(Outcome(None, Fenced(stale, run=run)))
        return outcomes


def newest_messages(session: Session | psycopg.Cursor[Row], runs: list[str]) -> dict[str, int]:
    """In the inboxes of these runs."""
    return dict(session.execute(NEWEST_MESSAGES, {"runs": runs}).fetchall())
