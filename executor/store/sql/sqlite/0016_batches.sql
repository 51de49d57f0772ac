-- One row for what one append writes into a journal, instead of one for each event: one checksum, one entry in one index. Rows of
-- before stay where they are (`old_events`); `events` is a view of both, with the columns that the table had.

DROP VIEW outputs;
DROP VIEW attempts;
DROP VIEW nodes;
DROP VIEW runs;

ALTER TABLE events RENAME TO old_events;

-- Events `first_seq` to `seq` of run number `n`. `head` is a JSON list with a list for each: time, type, node, path, attempt, and if it
-- has data or an output: where it begins in `payload` (data, then output), how many bytes its data has, how many its output; null:
-- none. The table keeps its rowid: batches of all runs go to the same last page, and only the small key to a place of its own.
CREATE TABLE batches (
    n            INTEGER NOT NULL REFERENCES run_details (n),
    seq          INTEGER NOT NULL,
    first_seq    INTEGER NOT NULL,
    output_bytes INTEGER NOT NULL,
    checksum     INTEGER NOT NULL,
    head         TEXT    NOT NULL,
    payload      BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX batches_by_seq ON batches (n, seq);

-- From here on `seq` and `stalls` of a head are those of the last time it was written: an append writes only its batch. A run has
-- stalled if no batch came since.

CREATE VIEW events AS
SELECT run_id, seq, at_ms, type, node, path, attempt, data, output, checksum FROM old_events
UNION ALL
SELECT d.id, b.first_seq + e.key, e.value ->> 0, e.value ->> 1, e.value ->> 2, e.value ->> 3, e.value ->> 4,
       substr(b.payload, (e.value ->> 5) + 1, e.value ->> 6),
       substr(b.payload, (e.value ->> 5) + coalesce(e.value ->> 6, 0) + 1, e.value ->> 7), NULL
  FROM run_details AS d CROSS JOIN batches AS b ON b.n = d.n CROSS JOIN json_each(b.head) AS e;

CREATE VIEW runs AS
SELECT d.n, d.id, d.workflow, d.version, d.plan_hash,
       coalesce(d.status, (SELECT h.status FROM heads AS h WHERE h.n = d.n)) AS status,
       coalesce(d.seq, (SELECT max(b.seq) FROM batches AS b WHERE b.n = d.n), (SELECT h.seq FROM heads AS h WHERE h.n = d.n)) AS seq,
       coalesce(d.epoch, (SELECT h.epoch FROM heads AS h WHERE h.n = d.n)) AS epoch,
       coalesce((SELECT iif((SELECT max(b.seq) FROM batches AS b WHERE b.n = h.n) > h.seq, 0, h.stalls)
                   FROM heads AS h WHERE h.n = d.n), 0) AS stalls,
       (SELECT h.inbox_n FROM heads AS h WHERE h.n = d.n) AS inbox_n,
       coalesce(d.cancel_n, (SELECT h.cancel_n FROM heads AS h WHERE h.n = d.n)) AS cancel_n,
       (SELECT h.owner FROM heads AS h WHERE h.n = d.n) AS lease_owner,
       (SELECT w.until_ms FROM heads AS h JOIN workers AS w ON w.id = h.owner WHERE h.n = d.n) AS lease_until_ms,
       (SELECT h.due_ms FROM heads AS h WHERE h.n = d.n) AS next_run_at_ms,
       d.idempotency_key, d.request_hash, d.parent_run_id, d.parent_key, d.root_id, d.source_run_id, d.document_hash,
       d.draft_id, d.draft_rev, d.created_at_ms,
       coalesce(d.started_at_ms, (SELECT h.started_at_ms FROM heads AS h WHERE h.n = d.n)) AS started_at_ms,
       d.finished_at_ms, d.input, d.output, d.error
  FROM run_details AS d;

-- Business data apart from bookkeeping: what did the work produce?
CREATE VIEW outputs AS
SELECT e.run_id, d.workflow, e.node, e.path, e.attempt, e.seq, e.at_ms, CAST(e.output AS TEXT) AS output
  FROM old_events AS e JOIN run_details AS d ON d.id = e.run_id
 WHERE e.node IS NOT NULL AND e.output IS NOT NULL
UNION ALL
SELECT d.id, d.workflow, e.value ->> 2, e.value ->> 3, e.value ->> 4, b.first_seq + e.key, e.value ->> 0,
       CAST(substr(b.payload, (e.value ->> 5) + coalesce(e.value ->> 6, 0) + 1, e.value ->> 7) AS TEXT)
  FROM run_details AS d CROSS JOIN batches AS b ON b.n = d.n CROSS JOIN json_each(b.head) AS e
 WHERE e.value ->> 2 IS NOT NULL AND e.value ->> 7 IS NOT NULL;

-- When did each try start and end, and how? Without an end yet, `finished_at_ms` and `outcome` are NULL.
CREATE VIEW attempts AS
SELECT tries.run_id, r.workflow, tries.node, tries.path, tries.attempt, tries.started_at_ms,
       iif(tries.type = 'node.started', NULL, tries.at_ms) AS finished_at_ms,
       CASE tries.type WHEN 'node.failed' THEN 'failed' WHEN 'retry.scheduled' THEN 'retried'
                       WHEN 'node.skipped' THEN 'skipped' WHEN 'node.started' THEN NULL ELSE 'succeeded' END AS outcome
  FROM (SELECT run_id, node, path, attempt, type, at_ms,
               min(iif(type = 'node.started', at_ms, NULL)) OVER (PARTITION BY run_id, node, path, attempt) AS started_at_ms,
               row_number() OVER (PARTITION BY run_id, node, path, attempt ORDER BY type = 'node.started', seq DESC) AS place
          FROM events
         WHERE node IS NOT NULL AND attempt > 0
           AND type IN ('node.started', 'node.succeeded', 'node.failed', 'node.skipped', 'retry.scheduled',
                        'region.sized', 'region.exited')) AS tries
  JOIN runs AS r ON r.id = tries.run_id
 WHERE tries.place = 1;

-- Where does each node key stand, in which iteration or branch (`path`), after how many tries, since when?
CREATE VIEW nodes AS
SELECT keys.run_id, r.workflow, keys.node, keys.path, keys.attempts, keys.started_at_ms, keys.at_ms AS changed_at_ms,
       CASE WHEN keys.type IN ('node.succeeded', 'region.sized', 'region.exited') THEN 'succeeded'
            WHEN keys.type = 'node.failed' THEN 'failed'
            WHEN keys.type = 'node.skipped' THEN 'skipped'
            WHEN r.status IN ('succeeded', 'failed', 'cancelled') THEN 'cancelled' -- the run ended before the node did
            WHEN keys.type = 'retry.scheduled' THEN 'retrying'
            WHEN keys.type = 'wait.opened' THEN 'waiting'
            ELSE 'running' END AS status
  FROM (SELECT run_id, node, path, type, at_ms,
               max(attempt) OVER (PARTITION BY run_id, node, path) AS attempts,
               min(iif(type = 'node.started', at_ms, NULL)) OVER (PARTITION BY run_id, node, path) AS started_at_ms,
               row_number() OVER (PARTITION BY run_id, node, path ORDER BY seq DESC) AS place
          FROM events
         WHERE node IS NOT NULL
           AND type IN ('node.started', 'node.succeeded', 'node.failed', 'node.skipped', 'retry.scheduled',
                        'wait.opened', 'wait.closed', 'region.sized', 'region.exited')) AS keys
  JOIN runs AS r ON r.id = keys.run_id
 WHERE keys.place = 1;
