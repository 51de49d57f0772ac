"""New runs, of `create_run` and `begin_run`: with their heads and their first events, plans and documents. A run that
ends at once has no head, and one that begins has an owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from executor.kernel.store.batches import has_only_events
from executor.kernel.store.postgres.dialect import lease_now
from executor.kernel.store.postgres.hot.kind import ADD_BATCHES, Answered, Asked, Columns, JournalKind
from executor.kernel.store.run_rows import Append, NewRun, Record, blobs_of, new_row
from executor.kernel.store.topics.contents import USED_EVERY_MS
from executor.kernel.store.topics.leases import ends_at_once
from executor.kernel.store.topics.runs import details, placed
from executor.kernel.store.writer import Outcome


class Begin(NamedTuple):
    """Without `first` it is created, and without `owner` too if it ends in `first`."""

    run: NewRun
    owner: str | None = None
    lease_ms: int | None = None
    first: Append | None = None


# Columns of the details of any run, of one that ends at once, and of the heads of the others.
DETAILS = {
    **{"id": "t", "workflow": "t", "version": "n", "plan_hash": "t", "document_hash": "t", "idempotency_key": "t"},
    **{"request_hash": "t", "source_run_id": "t", "draft_id": "t", "draft_rev": "n", "started_by": "t"},
    **{"input": "b", "now": "n"},
}
END = {"status": "t", "ended_at": "n", "output": "b", "error": "b"}
PLACE = {"pool": "t", "priority": "n", "fair": "t", "ready": "n", "limits": "t", "rates": "t", "needs": "n"}
WANTED = Columns("w", **DETAILS, **END, **PLACE, seq="n", epoch="n", owner="t", lease="n")
PLANS = Columns("p", hash="t", content="b", now="n")
DOCUMENTS = Columns("o", hash="t", content="b", now="n")
USED = Columns("u", hash="t", now="n")
# A run that is not returned has an idempotency key that was used before; nothing of it is written. The active versions
# of the workflows are locked until commit, so a concurrent delete that counts open runs sees these.
BEGIN_RUNS = f"""
WITH w AS MATERIALIZED (SELECT * FROM {WANTED.table}),
kept AS MATERIALIZED (
    SELECT 1 FROM active_versions WHERE workflow IN (SELECT w.workflow FROM w) ORDER BY workflow FOR KEY SHARE),
added AS (
    INSERT INTO run_details (id, workflow, version, plan_hash, document_hash, idempotency_key, request_hash,
                             source_run_id, draft_id, draft_rev, started_by, created_at_ms, input, status, seq, epoch,
                             started_at_ms, finished_at_ms, output, error)
    SELECT w.id, w.workflow, w.version, w.plan_hash, w.document_hash, w.idempotency_key, w.request_hash,
           w.source_run_id, w.draft_id, w.draft_rev, w.started_by, w.now, w.input, w.status,
           CASE WHEN w.status IS NOT NULL THEN w.seq END, CASE WHEN w.status IS NOT NULL THEN w.epoch END,
           CASE WHEN w.status IS NOT NULL THEN w.now END, w.ended_at, w.output, w.error
      FROM w WHERE (SELECT count(*) FROM kept) >= 0
    ON CONFLICT (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
    RETURNING n, id, plan_hash, document_hash),
heads_added AS (
    INSERT INTO heads (n, id, status, seq, epoch, stalls, owner, due_ms, started_at_ms,
                       pool, priority, fair, ready, limits, rates, needs)
    SELECT a.n, w.id, CASE WHEN w.owner IS NULL THEN 'queued' ELSE 'running' END, w.seq, w.epoch, 0, w.owner, w.now,
           CASE WHEN w.owner IS NOT NULL THEN w.now END,
           w.pool, w.priority, w.fair, w.ready, w.limits, w.rates, w.needs
      FROM w JOIN added AS a ON a.id = w.id WHERE w.status IS NULL),
written AS ({ADD_BATCHES} added AS owned ON owned.id = b.run),
held AS (
    INSERT INTO workers (id, until_ms)
    SELECT h.owner, {lease_now("h.now")} + h.lease
      FROM (SELECT w.owner, max(w.now) AS now, max(w.lease) AS lease FROM w JOIN added AS a ON a.id = w.id
             WHERE w.status IS NULL AND w.owner IS NOT NULL GROUP BY w.owner) AS h
    ON CONFLICT (id) DO UPDATE SET until_ms = excluded.until_ms),
documents_added AS (
    INSERT INTO documents (hash, document, used_at_ms)
    SELECT o.hash, o.content, o.now FROM {DOCUMENTS.table} WHERE o.hash IN (SELECT a.document_hash FROM added AS a)
    ON CONFLICT (hash) DO UPDATE SET used_at_ms = excluded.used_at_ms
     WHERE documents.used_at_ms < excluded.used_at_ms - {USED_EVERY_MS}),
documents_used AS (
    UPDATE documents SET used_at_ms = u.now FROM {USED.table}
     WHERE documents.hash = u.hash AND documents.used_at_ms < u.now - {USED_EVERY_MS}
       AND u.hash IN (SELECT a.document_hash FROM added AS a)),
plans_added AS (
    INSERT INTO plans (hash, ir, used_at_ms)
    SELECT p.hash, p.content, p.now FROM {PLANS.table} WHERE p.hash IN (SELECT a.plan_hash FROM added AS a)
    ON CONFLICT (hash) DO UPDATE SET used_at_ms = excluded.used_at_ms
     WHERE plans.used_at_ms < excluded.used_at_ms - {USED_EVERY_MS})
SELECT id FROM added"""


class Begins(JournalKind[Begin]):
    @staticmethod
    def events(asked: Begin) -> tuple[int, Sequence[Record]]:
        return 0, asked.run.records if asked.first is None else (*asked.run.records, *asked.first.records)

    @staticmethod
    def in_order(entries: Mapping[str, tuple[int, Begin]]) -> list[str]:
        """In the order of idempotency keys: who inserts a key that another has inserted waits for that one."""

        def key(run: str) -> tuple[str, str, str]:
            new = entries[run][1].run
            return new.workflow, new.idempotency_key or "", run

        return sorted(entries, key=key)

    def write(self, tx: Asked) -> Answered:
        runs = [each.run for each in self.asked]
        plans = {run.plan_hash: (run.plan, run.now_ms) for run in runs}
        documents: dict[str, tuple[bytes, int]] = {}
        used: dict[str, int] = {}  # documents that are there already
        for run in runs:
            if run.document_hash is not None:
                used[run.document_hash] = run.now_ms
                if run.document is not None:
                    documents[run.document_hash] = run.document, run.now_ms
        values: dict[str, Any] = {
            **WANTED.values(map(_row, self.asked, self.last)),
            **self.batch_values(),
            **PLANS.values((hash, *plans[hash]) for hash in sorted(plans)),
            **DOCUMENTS.values((hash, *documents[hash]) for hash in sorted(documents)),
            **USED.values((hash, used[hash]) for hash in sorted(used.keys() - documents.keys())),
        }
        return tx.ask(BEGIN_RUNS, values)

    def outcome(self, asked: Begin, done: bool) -> Outcome | None:
        return Outcome((new_row(asked.run, None), True)) if done else None


def _row(begin: Begin, seq: int) -> tuple[Any, ...]:
    run, owner, lease_ms, first = begin
    of_run = details(run, None)
    place = placed(run, ready=owner is None)
    end: tuple[Any, ...] = (None, None, None, None)
    epoch = 0 if first is None else first.epoch
    if first is not None and first.status is not None:
        end = first.status, first.now_ms, first.output, first.error
    return (*(of_run[name] for name in DETAILS), *end, *(place[name] for name in PLACE), seq, epoch, owner, lease_ms)


def begin_of(
    run: NewRun, owner: str | None = None, lease_ms: int | None = None, first: Append | None = None
) -> Begin | None:
    """Return the begin of a run, or None if it takes more than this statement."""
    more = run.parent_run_id or run.sources or run.waits or run.signals or run.blobs or run.files
    if more or blobs_of(run.records) or not run.records:
        return None
    if first is not None:
        follows = (first.run_id, first.epoch, first.expected_seq) == (run.id, 1, len(run.records))
        if not (follows and (ends_at_once(run, first) or (first.records and has_only_events(first)))):
            return None
    return Begin(run, owner, lease_ms, first)
