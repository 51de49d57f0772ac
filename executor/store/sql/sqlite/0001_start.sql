-- The first schema. Times are Unix milliseconds. BLOB columns hold bytes the store never looks into (JSON, by agreement of
-- the layers above); the views at the end cast them to text for people and for SQLite's JSON functions.
-- References between tables are declared for `PRAGMA foreign_key_check`; enforcing them would cost a lookup per event.

CREATE TABLE workflows (
    name          TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    hash          TEXT    NOT NULL,
    document      BLOB    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (name, version)
) STRICT;
CREATE UNIQUE INDEX workflows_by_hash ON workflows (name, hash);

CREATE TABLE plans (
    hash TEXT PRIMARY KEY,
    ir   BLOB NOT NULL
) STRICT;

-- `input`, `output` and `error` come last: the small columns that every append changes stay at the front of the row.
CREATE TABLE runs (
    id              TEXT    PRIMARY KEY,
    workflow        TEXT    NOT NULL,
    version         INTEGER,
    plan_hash       TEXT    NOT NULL REFERENCES plans (hash),
    status          TEXT    NOT NULL CHECK (status IN ('queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled')),
    seq             INTEGER NOT NULL,
    epoch           INTEGER NOT NULL,
    stalls          INTEGER NOT NULL,
    inbox_n         INTEGER NOT NULL DEFAULT 0, -- highest inbox number ever given out, so that none comes twice
    lease_owner     TEXT,
    lease_until_ms  INTEGER,
    next_run_at_ms  INTEGER,
    idempotency_key TEXT,
    request_hash    TEXT    NOT NULL,
    parent_run_id   TEXT,
    parent_key      TEXT,
    created_at_ms   INTEGER NOT NULL,
    started_at_ms   INTEGER,
    finished_at_ms  INTEGER,
    input           BLOB    NOT NULL,
    output          BLOB,
    error           BLOB
) STRICT;
-- The time at which a run may be claimed: when it is due and its lease, if any, has lapsed. NULL (never) without a due time.
CREATE INDEX runs_claimable ON runs (max(next_run_at_ms, coalesce(lease_until_ms, 0)), id)
    WHERE status IN ('queued', 'running', 'waiting');
CREATE UNIQUE INDEX runs_by_idempotency_key ON runs (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX runs_by_time ON runs (created_at_ms, id);
CREATE INDEX runs_by_workflow ON runs (workflow, created_at_ms, id);

-- The only hot table. It keeps its rowid: rows of all runs are appended to the same last page, and only the small key goes to
-- each run's own place. With WITHOUT ROWID a group of 64 runs dirties 64 pages, and 1 KB rows go to overflow pages (a third
-- of the throughput). An index on node or type would halve the throughput; a search reads the rows of its one run instead.
CREATE TABLE events (
    run_id  TEXT    NOT NULL REFERENCES runs (id),
    seq     INTEGER NOT NULL,
    at_ms   INTEGER NOT NULL,
    type    TEXT    NOT NULL,
    node    TEXT,
    path    TEXT    NOT NULL,
    attempt INTEGER NOT NULL,
    data    BLOB,
    output  BLOB,
    PRIMARY KEY (run_id, seq)
) STRICT;

CREATE TABLE blobs (
    hash  TEXT PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;

CREATE TABLE waits (
    run_id         TEXT    NOT NULL REFERENCES runs (id),
    id             TEXT    NOT NULL,
    node           TEXT    NOT NULL,
    path           TEXT    NOT NULL,
    kind           TEXT    NOT NULL,
    token_hash     TEXT    NOT NULL,
    request        BLOB    NOT NULL,
    schema         BLOB,
    status         TEXT    NOT NULL CHECK (status IN ('pending', 'answered', 'cancelled', 'expired')),
    opened_at_ms   INTEGER NOT NULL,
    expires_at_ms  INTEGER,
    on_expire      TEXT    NOT NULL,
    name           TEXT,
    correlation    TEXT,
    response       BLOB,
    answered_by    TEXT,
    answered_at_ms INTEGER,
    PRIMARY KEY (run_id, id)
) STRICT;
CREATE UNIQUE INDEX waits_by_token ON waits (token_hash);
CREATE INDEX waits_by_status ON waits (status, opened_at_ms, run_id, id);

-- Facts on their way to the run's owner, who deletes them in the append that records their events.
CREATE TABLE inbox (
    run_id TEXT    NOT NULL REFERENCES runs (id),
    n      INTEGER NOT NULL,
    fact   BLOB    NOT NULL,
    PRIMARY KEY (run_id, n)
) STRICT;

CREATE TABLE signals (
    run_id         TEXT    NOT NULL REFERENCES runs (id),
    seq            INTEGER NOT NULL,
    name           TEXT    NOT NULL,
    correlation    TEXT,
    payload        BLOB    NOT NULL,
    dedupe_key     TEXT,
    received_at_ms INTEGER NOT NULL,
    received_by    TEXT,
    consumed_by    TEXT,
    PRIMARY KEY (run_id, seq)
) STRICT;
CREATE UNIQUE INDEX signals_by_dedupe_key ON signals (run_id, dedupe_key) WHERE dedupe_key IS NOT NULL;

-- One row per process that writes, holding the number of its last committed group without events: after a COMMIT that raised,
-- it tells whether that group is on disk.
CREATE TABLE writers (
    id         TEXT    PRIMARY KEY,
    last_group INTEGER NOT NULL
) STRICT;

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
