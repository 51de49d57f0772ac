"""Appends that have nothing but events, those that end their run and write nothing else, and messages for inboxes.

At an end the head goes, and the details have what came of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import psycopg

from executor.errors import Fenced
from executor.kernel.store.batches import writes_only_itself
from executor.kernel.store.postgres.hot.kind import ADD_BATCHES, Answered, Asked, Columns, JournalKind, Kind, Session
from executor.kernel.store.run_rows import Append, Appended, Record
from executor.kernel.store.statements import TERMINAL, Row
from executor.kernel.store.topics.snapshots import seq_min
from executor.kernel.store.writer import Outcome

ROWS = Columns("w", id="t", epoch="n", seq="n", first_seq="n", output_bytes="n", checksum="n", head="t", payload="b")
# A run that is not returned is fenced.
APPEND_EVENTS = f"""
WITH fenced AS (
    UPDATE heads AS h SET seq = w.seq, stalls = 0 FROM {ROWS.table}
     WHERE h.id = w.id AND h.epoch = w.epoch AND h.seq = w.first_seq - 1 RETURNING h.n, h.inbox_n, w.*),
written AS (
    INSERT INTO batches (n, seq, first_seq, output_bytes, checksum, head, payload)
    SELECT n, seq, first_seq, output_bytes, checksum, head, payload FROM fenced)
SELECT id, inbox_n FROM fenced"""
# Looked for after the locks, so that each message posted before is found.
NEWEST_MESSAGES = "SELECT run_id, max(n) FROM inbox WHERE run_id = ANY(%(runs)s::text[]) GROUP BY run_id"

# Asked for runs that have ever had a message, with how many: the number of the newest one that is there.
Newest = Callable[[dict[str, int]], Mapping[str, int]]


class Appends(JournalKind[Append]):
    """Appends of several runs, of one batch each. A fenced one does not affect the others."""

    _newest: Mapping[str, int] = {}

    @staticmethod
    def events(asked: Append) -> tuple[int, Sequence[Record]]:
        return asked.expected_seq, asked.records

    def write(self, tx: Asked) -> Answered:
        rows = [(each.run_id, each.epoch, *of[0]) for each, of in zip(self.asked, self.batches, strict=True)]
        return tx.ask(APPEND_EVENTS, ROWS.values(rows))

    def find_messages(self, rows: Sequence[Row], newest: Newest) -> None:
        posted = {run: inbox_n for run, inbox_n in rows if inbox_n}
        if posted:
            self._newest = newest(posted)

    def outcome(self, asked: Append, done: bool) -> Outcome:
        run, seq = asked.run_id, asked.expected_seq
        if not done:
            return Outcome(None, Fenced(f"run {run}: epoch {asked.epoch} at seq {seq} is no longer current", run=run))
        return Outcome(Appended(seq + len(asked.records), self._newest.get(run, 0), None))


def newest_messages(session: Session | psycopg.Cursor[Row], runs: list[str]) -> dict[str, int]:
    return dict(session.execute(NEWEST_MESSAGES, {"runs": runs}).fetchall())


ENDS = Columns("w", id="t", epoch="n", after="n", seq="n", status="t", now="n", output="b", error="b")
# A run that is not returned is fenced, or has a cancel request in its inbox.
END_RUNS = f"""
WITH ended AS (
    DELETE FROM heads AS h USING {ENDS.table}
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


class Ends(JournalKind[Append]):
    locks = True
    events = staticmethod(Appends.events)

    def write(self, tx: Asked) -> Answered:
        rows = [
            (each.run_id, each.epoch, each.expected_seq, seq, each.status, each.now_ms, each.output, each.error)
            for each, seq in zip(self.asked, self.last, strict=True)
        ]
        return tx.ask(END_RUNS, {**ENDS.values(rows), **self.batch_values(), "snapshot_seq_min": seq_min()})

    def outcome(self, asked: Append, done: bool) -> Outcome | None:
        return Outcome(Appended(asked.expected_seq + len(asked.records), 0)) if done else None


def only_ends(change: Append) -> bool:
    return change.status in TERMINAL and bool(change.records) and writes_only_itself(change)


class Post(NamedTuple):
    """The parameters of `post_message`."""

    run_id: str
    message: bytes
    now_ms: int
    plan_hash: str | None = None


POSTS = Columns("w", id="t", message="b", now="n", plan="t")
# A run that has ended has no head, and does not come back.
POST_MESSAGES = f"""
WITH woken AS (
    UPDATE heads AS h SET inbox_n = h.inbox_n + 1, due_ms = CASE WHEN h.due_ms < w.now THEN h.due_ms ELSE w.now END
      FROM {POSTS.table} WHERE h.id = w.id RETURNING h.inbox_n, w.*),
posted AS (
    INSERT INTO inbox (run_id, n, fact, plan_hash) SELECT k.id, k.inbox_n, k.message, k.plan FROM woken AS k)
SELECT id FROM woken"""
# A run that ended after the message has deleted it.
OPEN_THEN = f"""
SELECT w.id FROM {POSTS.table} JOIN run_details AS d ON d.id = w.id
 WHERE d.status IS NULL OR d.finished_at_ms >= w.now"""


class Posts(Kind[Post]):
    locks = True

    def write(self, tx: Asked) -> Answered:
        return tx.ask(POST_MESSAGES, POSTS.values(self.asked))

    def look(self, session: Session) -> psycopg.Cursor[Row]:
        return session.execute(OPEN_THEN, POSTS.values(self.asked))
