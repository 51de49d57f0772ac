-- What changes while a run is executed (`heads`) apart from who it is and what came of it (`run_details`), and one lease for all runs
-- of a worker (`workers`). `runs` is a view of all three, with the columns that the table had.

DROP VIEW outputs;
DROP VIEW attempts;
DROP VIEW nodes;

-- `n` is the run's number in this database: keys made of it are small. The columns from `status` on are those of the end, NULL while
-- the run is open; the bytes come last.
CREATE TABLE run_details (
    n               INTEGER PRIMARY KEY,
    id              TEXT    NOT NULL UNIQUE,
    workflow        TEXT    NOT NULL,
    version         INTEGER,
    plan_hash       TEXT    NOT NULL REFERENCES plans (hash),
    document_hash   TEXT    REFERENCES documents (hash),
    idempotency_key TEXT,
    request_hash    TEXT    NOT NULL,
    parent_run_id   TEXT,
    parent_key      TEXT,
    root_id         TEXT,
    source_run_id   TEXT,
    draft_id        TEXT,
    draft_rev       INTEGER,
    created_at_ms   INTEGER NOT NULL,
    status          TEXT    CHECK (status IN ('succeeded', 'failed', 'cancelled')),
    seq             INTEGER,
    epoch           INTEGER,
    cancel_n        INTEGER,
    started_at_ms   INTEGER,
    finished_at_ms  INTEGER,
    input           BLOB    NOT NULL,
    output          BLOB,
    error           BLOB
) STRICT;
INSERT INTO run_details (id, workflow, version, plan_hash, document_hash, idempotency_key, request_hash, parent_run_id, parent_key,
       root_id, source_run_id, draft_id, draft_rev, created_at_ms, status, seq, epoch, cancel_n, started_at_ms, finished_at_ms,
       input, output, error)
SELECT id, workflow, version, plan_hash, document_hash, idempotency_key, request_hash, parent_run_id, parent_key,
       root_id, source_run_id, draft_id, draft_rev, created_at_ms,
       iif(ended, status, NULL), iif(ended, seq, NULL), iif(ended, epoch, NULL), iif(ended, cancel_n, NULL),
       iif(ended, started_at_ms, NULL), finished_at_ms, input, output, error
  FROM (SELECT *, status IN ('succeeded', 'failed', 'cancelled') AS ended FROM runs)
 ORDER BY created_at_ms, id;

-- One row for each open run. `due_ms`: when it is to be executed next, NULL: only a message wakes it. `owner`: the worker that executes
-- it. `stalls`: claims in a row without an event. `inbox_n`: the highest inbox number ever given out, so that none comes twice;
-- `cancel_n`: that of the last cancel. The last four columns say which workers may claim it, and in which order.
CREATE TABLE heads (
    n             INTEGER PRIMARY KEY REFERENCES run_details (n),
    id            TEXT    NOT NULL,
    status        TEXT    NOT NULL CHECK (status IN ('queued', 'running', 'waiting')),
    seq           INTEGER NOT NULL,
    epoch         INTEGER NOT NULL,
    stalls        INTEGER NOT NULL,
    inbox_n       INTEGER NOT NULL DEFAULT 0,
    cancel_n      INTEGER,
    owner         TEXT,
    due_ms        INTEGER,
    started_at_ms INTEGER,
    pool          TEXT    NOT NULL DEFAULT 'default',
    priority      INTEGER NOT NULL DEFAULT 0,
    fair          TEXT    NOT NULL DEFAULT '',
    needs         INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO heads (n, id, status, seq, epoch, stalls, inbox_n, cancel_n, owner, due_ms, started_at_ms)
SELECT d.n, r.id, r.status, r.seq, r.epoch, r.stalls, r.inbox_n, r.cancel_n, r.lease_owner, r.next_run_at_ms, r.started_at_ms
  FROM runs AS r JOIN run_details AS d ON d.id = r.id WHERE r.status IN ('queued', 'running', 'waiting');
-- Who is free and due, and who belongs to a worker.
CREATE INDEX heads_by_owner ON heads (owner, due_ms, id);

-- The runs of a worker may be claimed by others from `until_ms` on. There is a row as long as a worker has a run.
CREATE TABLE workers (
    id       TEXT    PRIMARY KEY,
    until_ms INTEGER NOT NULL,
    draining INTEGER NOT NULL DEFAULT 0 CHECK (draining IN (0, 1))
) STRICT, WITHOUT ROWID;
INSERT INTO workers (id, until_ms)
SELECT lease_owner, max(coalesce(lease_until_ms, 0)) FROM runs
 WHERE lease_owner IS NOT NULL AND status IN ('queued', 'running', 'waiting') GROUP BY lease_owner;

-- Tables that refer to runs by their name refer to run_details after this: a rename changes what refers to the table.
DROP TABLE runs;
ALTER TABLE run_details RENAME TO runs;
ALTER TABLE runs RENAME TO run_details;

CREATE UNIQUE INDEX runs_by_idempotency_key ON run_details (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX runs_by_parent ON run_details (parent_run_id, parent_key) WHERE parent_run_id IS NOT NULL;
CREATE INDEX runs_by_time ON run_details (created_at_ms, id);
CREATE INDEX runs_by_workflow ON run_details (workflow, created_at_ms, id);
CREATE INDEX runs_by_draft ON run_details (draft_id, created_at_ms, id) WHERE draft_id IS NOT NULL;
CREATE INDEX runs_by_plan ON run_details (plan_hash);
CREATE INDEX runs_by_document ON run_details (document_hash) WHERE document_hash IS NOT NULL;
CREATE INDEX runs_by_source ON run_details (source_run_id) WHERE source_run_id IS NOT NULL;
CREATE INDEX runs_ended ON run_details (status, workflow) WHERE status IS NOT NULL;

-- Written with columns of one table and looks into the others, so that a query pays only for the columns it names.
CREATE VIEW runs AS
SELECT d.n, d.id, d.workflow, d.version, d.plan_hash,
       coalesce(d.status, (SELECT h.status FROM heads AS h WHERE h.n = d.n)) AS status,
       coalesce(d.seq, (SELECT h.seq FROM heads AS h WHERE h.n = d.n)) AS seq,
       coalesce(d.epoch, (SELECT h.epoch FROM heads AS h WHERE h.n = d.n)) AS epoch,
       coalesce((SELECT h.stalls FROM heads AS h WHERE h.n = d.n), 0) AS stalls,
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

-- As they were.
-- Business data apart from bookkeeping: what did the work produce?
CREATE VIEW outputs AS
SELECT e.run_id, r.workflow, e.node, e.path, e.attempt, e.seq, e.at_ms, CAST(e.output AS TEXT) AS output
  FROM events AS e JOIN runs AS r ON r.id = e.run_id
 WHERE e.node IS NOT NULL AND e.output IS NOT NULL;

-- When did each try start and end, and how? Without an end yet, `finished_at_ms` and `outcome` are NULL.
CREATE VIEW attempts AS
SELECT tries.run_id, r.workflow, tries.node, tries.path, tries.attempt, tries.started_at_ms, last.at_ms AS finished_at_ms,
       CASE last.type WHEN 'node.failed' THEN 'failed' WHEN 'retry.scheduled' THEN 'retried'
                      WHEN 'node.skipped' THEN 'skipped' ELSE iif(last.type IS NULL, NULL, 'succeeded') END AS outcome
  FROM (SELECT run_id, node, path, attempt,
               min(at_ms) FILTER (WHERE type = 'node.started') AS started_at_ms,
               max(seq) FILTER (WHERE type <> 'node.started') AS last_seq
          FROM events
         WHERE node IS NOT NULL AND attempt > 0
           AND type IN ('node.started', 'node.succeeded', 'node.failed', 'node.skipped', 'retry.scheduled',
                        'region.sized', 'region.exited')
         GROUP BY run_id, node, path, attempt) AS tries
  JOIN runs AS r ON r.id = tries.run_id
  LEFT JOIN events AS last ON last.run_id = tries.run_id AND last.seq = tries.last_seq;

-- Where does each node key stand, in which iteration or branch (`path`), after how many tries, since when?
CREATE VIEW nodes AS
SELECT keys.run_id, r.workflow, keys.node, keys.path, keys.attempts, keys.started_at_ms, last.at_ms AS changed_at_ms,
       CASE WHEN last.type IN ('node.succeeded', 'region.sized', 'region.exited') THEN 'succeeded'
            WHEN last.type = 'node.failed' THEN 'failed'
            WHEN last.type = 'node.skipped' THEN 'skipped'
            WHEN r.status IN ('succeeded', 'failed', 'cancelled') THEN 'cancelled' -- the run ended before the node did
            WHEN last.type = 'retry.scheduled' THEN 'retrying'
            WHEN last.type = 'wait.opened' THEN 'waiting'
            ELSE 'running' END AS status
  FROM (SELECT run_id, node, path, max(seq) AS last_seq, max(attempt) AS attempts,
               min(at_ms) FILTER (WHERE type = 'node.started') AS started_at_ms
          FROM events
         WHERE node IS NOT NULL
           AND type IN ('node.started', 'node.succeeded', 'node.failed', 'node.skipped', 'retry.scheduled',
                        'wait.opened', 'wait.closed', 'region.sized', 'region.exited')
         GROUP BY run_id, node, path) AS keys
  JOIN runs AS r ON r.id = keys.run_id
  JOIN events AS last ON last.run_id = keys.run_id AND last.seq = keys.last_seq;
