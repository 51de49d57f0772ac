-- Schedules, webhooks and their deliveries.

-- `declared`: what the document says of `enabled`; NULL for those made through the API. `queued_at_ms`: a time that came while a
-- run was open and waits for its end.
CREATE TABLE schedules (
    id             TEXT    PRIMARY KEY,
    workflow       TEXT    NOT NULL,
    version        INTEGER,
    trigger_block  TEXT,
    cron           TEXT    NOT NULL,
    tz             TEXT    NOT NULL,
    input          BLOB    NOT NULL,
    enabled        INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    declared       INTEGER CHECK (declared IN (0, 1)),
    overlap        TEXT    NOT NULL CHECK (overlap IN ('skip', 'allow', 'queue')),
    catch_up       TEXT    NOT NULL CHECK (catch_up IN ('one', 'none', 'all')),
    origin         TEXT    NOT NULL CHECK (origin IN ('document', 'api')),
    next_run_at_ms INTEGER,
    queued_at_ms   INTEGER,
    last_run_at_ms INTEGER,
    last_run_id    TEXT,
    error          TEXT,
    created_at_ms  INTEGER NOT NULL,
    updated_at_ms  INTEGER NOT NULL
) STRICT;
CREATE INDEX schedules_due ON schedules (next_run_at_ms, id) WHERE next_run_at_ms IS NOT NULL;
CREATE INDEX schedules_queued ON schedules (id) WHERE queued_at_ms IS NOT NULL;
CREATE INDEX schedules_by_workflow ON schedules (workflow, id);

-- What became of each time of a schedule: the last ones, and those whose run is still open. Runs may be cleaned up before
-- these rows: no reference.
CREATE TABLE fires (
    n           INTEGER PRIMARY KEY AUTOINCREMENT,
    schedule_id TEXT    NOT NULL,
    due_ms      INTEGER NOT NULL,
    at_ms       INTEGER NOT NULL,
    outcome     TEXT    NOT NULL CHECK (outcome IN ('started', 'skipped', 'queued', 'missed', 'failed')),
    run_id      TEXT,
    error       TEXT
) STRICT;
CREATE INDEX fires_by_schedule ON fires (schedule_id, n);

-- The secret is not here: it follows from the installation's key, `id` and `generation` (random), or is a value of the environment.
CREATE TABLE webhooks (
    id             TEXT    PRIMARY KEY,
    workflow       TEXT    NOT NULL,
    version        INTEGER,
    trigger_block  TEXT,
    auth           TEXT    NOT NULL CHECK (auth IN ('hmac', 'github', 'token', 'none')),
    secret_env     TEXT,
    generation     INTEGER NOT NULL,
    respond        TEXT    NOT NULL CHECK (respond IN ('immediate', 'run')),
    timeout_ms     INTEGER NOT NULL,
    headers        BLOB    NOT NULL,
    enabled        INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    declared       INTEGER CHECK (declared IN (0, 1)),
    origin         TEXT    NOT NULL CHECK (origin IN ('document', 'api')),
    last_run_at_ms INTEGER,
    last_run_id    TEXT,
    created_at_ms  INTEGER NOT NULL,
    updated_at_ms  INTEGER NOT NULL
) STRICT;
CREATE INDEX webhooks_by_workflow ON webhooks (workflow, id);

-- Deliveries that started a run. `digest` is of the signature where there is one: it is what makes a delivery the same again,
-- as the sender's `id` is not signed. Kept for a day at least, so that a copy is recognised.
CREATE TABLE deliveries (
    n          INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    digest     TEXT,
    at_ms      INTEGER NOT NULL,
    run_id     TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX deliveries_by_id ON deliveries (webhook_id, id);
CREATE UNIQUE INDEX deliveries_by_digest ON deliveries (webhook_id, digest) WHERE digest IS NOT NULL;
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, n);
