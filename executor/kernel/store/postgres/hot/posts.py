"""Messages for the inboxes of runs, which are due then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import psycopg

from executor.kernel.store.postgres.connection import Tx
from executor.kernel.store.postgres.hot.kind import Columns, Kind, Session
from executor.kernel.store.tx import Row
from executor.kernel.store.writer import Outcome


class Post(NamedTuple):
    """The parameters of `post_message`."""

    run_id: str
    message: bytes
    now_ms: int
    plan_hash: str | None = None


WANTED = Columns("w", id="t", message="b", now="n", plan="t")
# A run that has ended has no head, and does not come back.
POST_MESSAGES = f"""
WITH woken AS (
    UPDATE heads AS h SET inbox_n = h.inbox_n + 1, due_ms = CASE WHEN h.due_ms < w.now THEN h.due_ms ELSE w.now END
      FROM {WANTED.table} WHERE h.id = w.id RETURNING h.inbox_n, w.*),
posted AS (
    INSERT INTO inbox (run_id, n, fact, plan_hash) SELECT k.id, k.inbox_n, k.message, k.plan FROM woken AS k)
SELECT id FROM woken"""
# A run that ended after the message has deleted it.
OPEN_THEN = f"""
SELECT w.id FROM {WANTED.table} JOIN run_details AS d ON d.id = w.id
 WHERE d.status IS NULL OR d.finished_at_ms >= w.now"""


class Posts(Kind[Post]):
    locks = True

    def write(self, tx: Tx) -> psycopg.Cursor[Row]:
        return tx.ask(POST_MESSAGES, WANTED.values(self.asked))

    def look(self, session: Session) -> psycopg.Cursor[Row]:
        return session.execute(OPEN_THEN, WANTED.values(self.asked))

    def outcomes(self, rows: Sequence[Row]) -> list[Outcome | None]:
        open_runs = {row[0] for row in rows}
        return [Outcome(run in open_runs) for run in self.runs]
