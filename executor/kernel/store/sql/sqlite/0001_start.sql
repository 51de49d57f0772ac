-- The schema of weft 0.1. A release that needs another one adds the next file: 0002_<what>.sql. Released files do not change.
--
-- Times (`…_ms`) are Unix milliseconds; switches are 0 or 1. BLOB columns hold bytes that the store does not look into (JSON, as
-- the layers above agree); the views at the end show them as text. Most ids and hashes are made by the layers above.
-- References are declared for `PRAGMA foreign_key_check`; enforcing them would cost a lookup for each event.
--
-- In this order: documents and contents, runs, what runs wait for, limits of runs and blocks, caches and memory, triggers, messages,
-- people, secrets, processes, views.

-- --- Documents and contents ---------------------------------------------------------------------------------------------------

-- One row for each version of a stored workflow. `hash`: of the document, which is stored once for each workflow.
CREATE TABLE workflows (
    name          TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    hash          TEXT    NOT NULL,
    document      BLOB    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (name, version)
) STRICT;
CREATE UNIQUE INDEX workflows_by_hash ON workflows (name, hash);

-- The version that runs where none is named. A workflow without a row is deleted; its versions stay for the runs that used them.
CREATE TABLE active_versions (
    workflow TEXT    PRIMARY KEY,
    version  INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    FOREIGN KEY (workflow, version) REFERENCES workflows (name, version)
) STRICT;

-- Documents that are being edited. A draft is replaced as a whole, and only by a request that names the revision it has. `base_rev`:
-- the revision that was last stored, as version `base_version` of the workflow `base_name`.
CREATE TABLE drafts (
    id            TEXT    PRIMARY KEY,
    name          TEXT    NOT NULL,
    rev           INTEGER NOT NULL,
    base_name     TEXT,
    base_version  INTEGER,
    base_rev      INTEGER,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    document      BLOB    NOT NULL
) STRICT;
CREATE INDEX drafts_by_time ON drafts (updated_at_ms, id);

-- Contents, each stored once by its hash. `used_at_ms` is when one was last used, written at most every ten minutes: upkeep deletes
-- none that a run is just being made with.
CREATE TABLE plans (
    hash       TEXT    PRIMARY KEY,
    ir         BLOB    NOT NULL, -- the compiled plan
    used_at_ms INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Documents of runs without a stored workflow. All other runs have theirs in `workflows`, by name and version.
CREATE TABLE documents (
    hash       TEXT    PRIMARY KEY,
    document   BLOB    NOT NULL,
    used_at_ms INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Outputs over 256 KiB, and the parts and heads of files.
CREATE TABLE blobs (
    hash       TEXT    PRIMARY KEY,
    bytes      BLOB    NOT NULL,
    used_at_ms INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Which runs refer to which blob. Written with the blob.
CREATE TABLE blob_refs (
    run_id TEXT NOT NULL REFERENCES run_details (id),
    hash   TEXT NOT NULL REFERENCES blobs (hash),
    PRIMARY KEY (run_id, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_refs_by_hash ON blob_refs (hash);

-- --- Runs ---------------------------------------------------------------------------------------------------------------------

-- What a run is, and once it has ended what came of it. What changes while it is executed is in `heads`; the view `runs` has both.
-- `n`: its number in this database, as keys made of it are small. `request_hash`: of the request that created it, as a repeated
-- idempotency key must come with the same one. `parent_key`: the id of the wait that a child run ends, so a wait has one child. `root_id`:
-- of a child run, the topmost run above it. `source_run_id`: the run whose outputs it reads, of a fork. The draft may be deleted and
-- its runs stay: no reference. From `status` on the columns are those of the end, NULL while the run is open. The bytes come last.
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
CREATE UNIQUE INDEX runs_by_idempotency_key ON run_details (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX runs_by_parent ON run_details (parent_run_id, parent_key) WHERE parent_run_id IS NOT NULL;
CREATE INDEX runs_by_time ON run_details (created_at_ms, id);
CREATE INDEX runs_by_workflow ON run_details (workflow, created_at_ms, id);
CREATE INDEX runs_by_draft ON run_details (draft_id, created_at_ms, id, status) WHERE draft_id IS NOT NULL;
-- For upkeep: who still refers to a plan, a document, a run?
CREATE INDEX runs_by_plan ON run_details (plan_hash);
CREATE INDEX runs_by_document ON run_details (document_hash) WHERE document_hash IS NOT NULL;
CREATE INDEX runs_by_source ON run_details (source_run_id) WHERE source_run_id IS NOT NULL;
-- Pages and counts by status. A status is written once, when the run ends.
CREATE INDEX runs_ended ON run_details (status, created_at_ms, id) WHERE status IS NOT NULL;
CREATE INDEX runs_ended_of_workflow ON run_details (workflow, status, created_at_ms, id) WHERE status IS NOT NULL;

-- One row for each open run. `seq`, `stalls`: of the last time that the row was written, as an append writes only its batch; `stalls`:
-- claims in a row without an event, none if a batch came since. `epoch`: one higher with each owner. `inbox_n`: the highest inbox number
-- that was ever given out, so that none comes twice; `cancel_n`: that of the last cancel. `owner`: the worker that executes the run.
-- `due_ms`: when the run is to be executed next; NULL: only a message wakes it.
-- Who may claim it, and in which order. `pool`: of the workers that may; within a pool the keys in `fair` take turns, and within a key
-- the highest `priority` comes first, then the longest due. `needs`: the format of events that a worker must know. `ready`: due and
-- free, set where that is known, and for runs that become due by the next claim. `blocked_by`: the key of the limit that was full
-- when the run was to be claimed; it is ready again when a place is free. `limits`: [[key, at most], ...], `rates`:
-- [[key, per second], ...], NULL when it has none, or has had its turn.
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
    needs         INTEGER NOT NULL DEFAULT 0,
    ready         INTEGER NOT NULL DEFAULT 0 CHECK (ready IN (0, 1)),
    blocked_by    TEXT,
    limits        TEXT,
    rates         TEXT
) STRICT;
CREATE INDEX heads_by_owner ON heads (owner, pool, due_ms, id) WHERE owner IS NOT NULL;
CREATE INDEX heads_ready ON heads (pool, fair, priority DESC, due_ms, id) WHERE ready = 1;
CREATE INDEX heads_later ON heads (pool, due_ms, id) WHERE owner IS NULL AND ready = 0 AND blocked_by IS NULL;
CREATE INDEX heads_blocked ON heads (blocked_by, priority DESC, due_ms, id) WHERE blocked_by IS NOT NULL;

-- The journals: one row for what one append writes, events `first_seq` to `seq` of run number `n`. `head` is a JSON list with a list
-- for each event: time, type, node, path, attempt, and if it has data or an output: where it begins in `payload` (data, then output),
-- how many bytes its data has, how many its output; null: none. `checksum`: CRC-32 of the other columns. `output_bytes`: of the outputs.
-- This is the only hot table. It keeps its rowid: batches of all runs go to the same last page, and only the small key to a place
-- of its own. An index on nodes or types would halve the throughput; a search reads the rows of its one run instead.
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

-- What the journal of a long open run folds to after `seq` events, so that a worker that claims it reads only what came after. Rows
-- may be deleted at any time. `format`, `code` and `plan_hash` say who can read `data`; `checksum` is of all of it.
CREATE TABLE snapshots (
    n         INTEGER PRIMARY KEY REFERENCES run_details (n),
    seq       INTEGER NOT NULL,
    format    INTEGER NOT NULL,
    code      TEXT    NOT NULL,
    plan_hash TEXT    NOT NULL,
    checksum  INTEGER NOT NULL,
    data      BLOB    NOT NULL
) STRICT;

-- One row for each topmost run that has started runs. `runs`: ever made below it; `open`: those of them that have not ended;
-- `bytes`: of the outputs of all of them and its own; `over`: it was cancelled or has ended, so nothing below it is to go on.
CREATE TABLE families (
    root_id TEXT    PRIMARY KEY,
    runs    INTEGER NOT NULL,
    open    INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,
    over    INTEGER NOT NULL CHECK (over IN (0, 1))
) STRICT, WITHOUT ROWID;

-- The last checkpoint of each node key, for the attempt that follows. `node` is the whole key, with iteration and branch.
CREATE TABLE checkpoints (
    run_id  TEXT    NOT NULL REFERENCES run_details (id),
    node    TEXT    NOT NULL,
    attempt INTEGER NOT NULL,
    at_ms   INTEGER NOT NULL,
    data    BLOB    NOT NULL,
    PRIMARY KEY (run_id, node)
) STRICT;

-- --- What runs wait for -------------------------------------------------------------------------------------------------------

CREATE TABLE waits (
    run_id         TEXT    NOT NULL REFERENCES run_details (id),
    id             TEXT    NOT NULL,
    node           TEXT    NOT NULL,
    path           TEXT    NOT NULL, -- iteration and branch of the node
    kind           TEXT    NOT NULL,
    token_hash     TEXT    NOT NULL, -- of the link that answers it
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
    workflow       TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, id)
) STRICT;
CREATE UNIQUE INDEX waits_by_token ON waits (token_hash);
-- Pending waits are few, and `waits_by_status` has all that their pages are narrowed by. An entry of the other two is written once,
-- when the wait is closed.
CREATE INDEX waits_by_status ON waits (status, opened_at_ms, run_id, id, kind, workflow);
CREATE INDEX waits_closed_by_kind ON waits (kind, status, opened_at_ms, run_id, id) WHERE status <> 'pending';
CREATE INDEX waits_closed_by_workflow ON waits (workflow, status, opened_at_ms, run_id, id, kind) WHERE status <> 'pending';

-- Links of open waits that were made with an earlier secret key: the hash that the wait had, and that key (`secret_keys`).
CREATE TABLE old_links (
    token_hash TEXT NOT NULL PRIMARY KEY,
    run_id     TEXT NOT NULL,
    wait_id    TEXT NOT NULL,
    key_id     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX old_links_by_key ON old_links (key_id);

-- Facts on their way to the owner of the run, who deletes them in the append that records their events. `plan_hash`: the plan that
-- a message asks its run to move to.
CREATE TABLE inbox (
    run_id    TEXT    NOT NULL REFERENCES run_details (id),
    n         INTEGER NOT NULL,
    fact      BLOB    NOT NULL,
    plan_hash TEXT,
    PRIMARY KEY (run_id, n)
) STRICT;
CREATE INDEX inbox_by_plan ON inbox (plan_hash) WHERE plan_hash IS NOT NULL;

-- `seq`: in the order of their arrival. `consumed_by`: the wait that took it.
CREATE TABLE signals (
    run_id         TEXT    NOT NULL REFERENCES run_details (id),
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
CREATE INDEX signals_by_name ON signals (run_id, name, seq);

-- --- Limits of runs and blocks ------------------------------------------------------------------------------------------------

-- A place of a limit that a run has. `node` '': the run itself, else a node key of it. `freed`: it has left the place, and the next
-- claim lets another run have it.
CREATE TABLE slots (
    key   TEXT    NOT NULL,
    n     INTEGER NOT NULL,
    node  TEXT    NOT NULL DEFAULT '',
    freed INTEGER NOT NULL DEFAULT 0 CHECK (freed IN (0, 1)),
    PRIMARY KEY (key, n, node)
) STRICT, WITHOUT ROWID;
CREATE INDEX slots_of_run ON slots (n);
CREATE INDEX slots_freed ON slots (key) WHERE freed = 1;

-- When the next run may start, in Unix microseconds. No row: now.
CREATE TABLE rates (
    key     TEXT    PRIMARY KEY,
    next_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX rates_by_time ON rates (next_us);

-- Places of limits of blocks (`policy.limit`): a row for each attempt that waits for one, has been given one, or has one. Those with
-- a lower `id` come first. `n`, `epoch`: the run, and the lease that the attempt is of; once the run has another epoch the row does not
-- count any more. `node`: its node key. `asker`: the process it runs in. `state` 0: waits, 1: a place is reserved for it, and its
-- process has yet to learn that, 2: it has the place.
CREATE TABLE places (
    id      INTEGER PRIMARY KEY,
    key     TEXT    NOT NULL,
    n       INTEGER NOT NULL,
    epoch   INTEGER NOT NULL,
    node    TEXT    NOT NULL,
    attempt INTEGER NOT NULL,
    asker   TEXT    NOT NULL,
    at_most INTEGER NOT NULL,
    state   INTEGER NOT NULL DEFAULT 0 CHECK (state IN (0, 1, 2))
) STRICT;
CREATE UNIQUE INDEX places_of_attempts ON places (n, node, attempt);
CREATE INDEX places_waiting ON places (key, id) WHERE state = 0;
CREATE INDEX places_reserved ON places (asker) WHERE state = 1;
CREATE INDEX places_used ON places (key) WHERE state > 0;

-- --- Cached outputs, memory of agents, costs ----------------------------------------------------------------------------------

-- Outputs that a later run of an equal block may take over. `key` is a hash of everything that could make the output another one;
-- the columns after it tell people, and `weft cache clear`, where it came from.
CREATE TABLE cache (
    key           TEXT    PRIMARY KEY,
    scope         TEXT    NOT NULL CHECK (scope IN ('run', 'workflow', 'global')),
    workflow      TEXT    NOT NULL,
    run_id        TEXT    NOT NULL,
    block         TEXT    NOT NULL,
    type          TEXT    NOT NULL,
    schema_sig    TEXT    NOT NULL,
    route         TEXT,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    output        BLOB    NOT NULL
) STRICT;
CREATE INDEX cache_by_expiry ON cache (expires_at_ms);
CREATE INDEX cache_by_workflow ON cache (workflow);

-- What agents remember: a row for each turn of a conversation, which has the key `key` in a workflow (`scope` is empty) or in a
-- scope that workflows share (`workflow` is empty). `turn`: the run and the node that ended it. `n`: in the order of their ends.
CREATE TABLE agent_memory (
    workflow TEXT    NOT NULL,
    scope    TEXT    NOT NULL,
    key      TEXT    NOT NULL,
    n        INTEGER NOT NULL,
    turn     TEXT    NOT NULL,
    run_id   TEXT    NOT NULL,
    at_ms    INTEGER NOT NULL,
    messages BLOB    NOT NULL,
    PRIMARY KEY (workflow, scope, key, n)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX agent_memory_by_turn ON agent_memory (workflow, scope, key, turn);
CREATE INDEX agent_memory_by_time ON agent_memory (at_ms);

-- What the steps of runs used and cost: a row for each run, day, name of the steps (a model) and price list, added to when a step
-- ends. What deleted runs used stays, added up, with the run ''. `day` counts from 1970 in UTC; `unpriced`: calls whose price is not
-- known; `cost_nanos`: billionths of a US dollar.
CREATE TABLE usage (
    run_id             TEXT    NOT NULL,
    day                INTEGER NOT NULL,
    workflow           TEXT    NOT NULL,
    model              TEXT    NOT NULL,
    prices             TEXT    NOT NULL,
    calls              INTEGER NOT NULL,
    unpriced           INTEGER NOT NULL,
    input_tokens       INTEGER NOT NULL,
    cached_tokens      INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    cost_nanos         INTEGER NOT NULL,
    PRIMARY KEY (run_id, day, workflow, model, prices)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_day ON usage (day, workflow);

-- --- Triggers -----------------------------------------------------------------------------------------------------------------

-- `declared`: the `enabled` of the document; NULL for those made through the API. `queued_at_ms`: a time that came while a run was
-- open and waits for its end. `made_by`: who made or last changed it; it continues without them.
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
    updated_at_ms  INTEGER NOT NULL,
    made_by        TEXT
) STRICT;
CREATE INDEX schedules_due ON schedules (next_run_at_ms, id) WHERE next_run_at_ms IS NOT NULL;
CREATE INDEX schedules_queued ON schedules (id) WHERE queued_at_ms IS NOT NULL;
CREATE INDEX schedules_by_workflow ON schedules (workflow, id);

-- What became of each time of a schedule: the last ones, and those whose run is still open. Runs may be deleted before these rows:
-- no reference.
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

-- The secret is not here: it follows from the secret key, `id` and `generation` (random), or is a value of the environment.
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
    created_at_ms  INTEGER NOT NULL,
    updated_at_ms  INTEGER NOT NULL
) STRICT;
CREATE INDEX webhooks_by_workflow ON webhooks (workflow, id);

-- Deliveries that started a run, kept for a day at least, so that a copy is recognised. `digest` is of the signature where there is
-- one: by it two deliveries are the same, as the `id` of the sender is not signed.
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

-- Deliveries that have left `deliveries`, of webhooks whose signature has no time in it: they count once for as long as their secret
-- lives. `digest`: the first 32 digits of that of the delivery, which are enough to tell them apart; about 100 bytes a row.
CREATE TABLE old_deliveries (
    webhook_id TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    at_ms      INTEGER NOT NULL,
    run_id     TEXT    NOT NULL,
    PRIMARY KEY (webhook_id, digest)
) STRICT, WITHOUT ROWID;

-- Requests to webhooks that were refused: one row for each webhook and reason, however many there were. `delivery` and `run_id` are
-- of the last one.
CREATE TABLE refusals (
    webhook_id  TEXT    NOT NULL,
    outcome     TEXT    NOT NULL,
    count       INTEGER NOT NULL,
    first_at_ms INTEGER NOT NULL,
    last_at_ms  INTEGER NOT NULL,
    delivery    TEXT,
    run_id      TEXT,
    PRIMARY KEY (webhook_id, outcome)
) STRICT, WITHOUT ROWID;

-- Connector documents that were added to this installation; each makes a block type. `hash`: SHA-256 of the document.
CREATE TABLE connectors (
    service       TEXT    PRIMARY KEY,
    document      BLOB    NOT NULL,
    hash          TEXT    NOT NULL,
    created_by    TEXT    NOT NULL,
    changed_at_ms INTEGER NOT NULL
) STRICT;

-- --- Messages to people -------------------------------------------------------------------------------------------------------

-- Messages about waits: mails and requests, one row for each address. `content` is JSON without secrets (`seal` in executor/kernel/values/redact.py).
-- `due_at_ms`: not before this time; while a message is being sent it is the time at which another process may try.
CREATE TABLE notifications (
    run_id        TEXT    NOT NULL REFERENCES run_details (id),
    wait_id       TEXT    NOT NULL,
    n             INTEGER NOT NULL,
    channel       TEXT    NOT NULL,
    content       BLOB    NOT NULL,
    status        TEXT    NOT NULL CHECK (status IN ('pending', 'sent', 'failed', 'cancelled')),
    attempts      INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    due_at_ms     INTEGER NOT NULL,
    settled_at_ms INTEGER,
    error         TEXT,
    PRIMARY KEY (run_id, wait_id, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX notifications_due ON notifications (due_at_ms, run_id, wait_id, n) WHERE status = 'pending';

-- What operators are to learn of: failed runs, waits and queued runs that take too long, missed times of schedules. One row for each
-- cause and address. `run_id` is empty for what is about no run; `item`: the wait or schedule. `due_at_ms`: not before this time.
-- `message_id`: of the message that has it, once there is one.
CREATE TABLE alerts (
    cause      TEXT    NOT NULL,
    channel    TEXT    NOT NULL CHECK (channel IN ('email', 'webhook')),
    target     TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    workflow   TEXT    NOT NULL,
    run_id     TEXT    NOT NULL,
    item       TEXT    NOT NULL,
    at_ms      INTEGER NOT NULL,
    due_at_ms  INTEGER NOT NULL,
    message_id TEXT,
    PRIMARY KEY (cause, channel, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX alerts_open ON alerts (due_at_ms, channel, target) WHERE message_id IS NULL;
CREATE INDEX alerts_by_message ON alerts (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX alerts_by_run ON alerts (run_id);

-- Their messages, as `notifications` has those of waits. Channel `workflow`: the error workflow `target` is to be started for the
-- run `run_id`, which is empty for messages.
CREATE TABLE alert_messages (
    id            TEXT    PRIMARY KEY,
    channel       TEXT    NOT NULL CHECK (channel IN ('email', 'webhook', 'workflow')),
    target        TEXT    NOT NULL,
    run_id        TEXT    NOT NULL,
    status        TEXT    NOT NULL CHECK (status IN ('pending', 'sent', 'failed', 'cancelled')),
    attempts      INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    due_at_ms     INTEGER NOT NULL,
    settled_at_ms INTEGER,
    error         TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX alert_messages_due ON alert_messages (due_at_ms, id) WHERE status = 'pending';
CREATE INDEX alert_messages_settled ON alert_messages (settled_at_ms, id) WHERE settled_at_ms IS NOT NULL;
CREATE INDEX alert_messages_by_target ON alert_messages (channel, target, created_at_ms);
CREATE INDEX alert_messages_by_run ON alert_messages (run_id);

-- --- People, and what they did ------------------------------------------------------------------------------------------------

-- `identity`: issuer and subject at the provider that signs people in (OpenID Connect), with a space between; NULL for users that
-- sign in with links alone.
CREATE TABLE users (
    id            TEXT    PRIMARY KEY,
    name          TEXT    NOT NULL,
    role          TEXT    NOT NULL CHECK (role IN ('viewer', 'approver', 'editor', 'admin')),
    created_at_ms INTEGER NOT NULL,
    identity      TEXT
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX users_by_identity ON users (identity) WHERE identity IS NOT NULL;

-- Who is signed in. `hash`: of the value that the browser holds; `mark`: of the token that the session was made with; `device`: what
-- the browser called itself.
CREATE TABLE sessions (
    hash          TEXT    PRIMARY KEY,
    mark          TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    seen_at_ms    INTEGER NOT NULL,
    user_id       TEXT    NOT NULL DEFAULT '',
    device        TEXT    NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_seen ON sessions (seen_at_ms);

-- Codes of sign-in links: each signs in once, before its time.
CREATE TABLE sign_in_codes (
    hash     TEXT    PRIMARY KEY,
    user_id  TEXT    NOT NULL,
    until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Tokens for programs. `hash`: of the whole token. `user_id`: whose it is; NULL for those made with the token of the server. `workflows`:
-- a JSON array of names, or NULL for all.
CREATE TABLE api_tokens (
    id            TEXT    PRIMARY KEY,
    hash          TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    user_id       TEXT,
    role          TEXT    NOT NULL CHECK (role IN ('metrics', 'viewer', 'approver', 'editor', 'admin')),
    workflows     TEXT,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    used_at_ms    INTEGER
) STRICT, WITHOUT ROWID;

-- What was done, by whom. Each row has the hash of itself and of the row before it; `audit_head` has the last. Rows are only added.
CREATE TABLE audit (
    n      INTEGER PRIMARY KEY,
    at_ms  INTEGER NOT NULL,
    actor  TEXT    NOT NULL,
    via    TEXT    NOT NULL,
    action TEXT    NOT NULL,
    object TEXT    NOT NULL,
    detail TEXT    NOT NULL,
    hash   TEXT    NOT NULL
) STRICT;
CREATE TABLE audit_head (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    n    INTEGER NOT NULL,
    hash TEXT    NOT NULL
) STRICT;

-- --- Secrets ------------------------------------------------------------------------------------------------------------------

-- Values that workflows read as ${NAME}. `sealed`: AES-256-GCM with the key `key_id`, over the name and the version too. `hosts`: a
-- JSON list, where the value may be sent to. `places`: where in a request it may stand, a JSON list such as ["header:Authorization"], empty
-- for anywhere. `version` is one higher with each new value.
CREATE TABLE secrets (
    name            TEXT    PRIMARY KEY,
    version         INTEGER NOT NULL,
    sealed          BLOB    NOT NULL,
    key_id          TEXT    NOT NULL,
    hosts           TEXT    NOT NULL,
    created_by      TEXT    NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    last_used_at_ms INTEGER,
    places          TEXT    NOT NULL DEFAULT '[]'
) STRICT, WITHOUT ROWID;

-- The keys of the installation, which links, addresses and signatures are made with. `id` tells one key from another and reveals
-- nothing about it. `until_ms` NULL: the present one; else what was made with it counts until then.
CREATE TABLE secret_keys (
    id       TEXT    PRIMARY KEY,
    since_ms INTEGER NOT NULL,
    until_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX secret_keys_present ON secret_keys ((until_ms IS NULL)) WHERE until_ms IS NULL;

-- --- Processes ----------------------------------------------------------------------------------------------------------------

-- One row for each worker that has runs, which others may claim from `until_ms` on.
CREATE TABLE workers (
    id       TEXT    PRIMARY KEY,
    until_ms INTEGER NOT NULL,
    draining INTEGER NOT NULL DEFAULT 0 CHECK (draining IN (0, 1))
) STRICT, WITHOUT ROWID;

-- One row for each process that writes, with the number of its last committed group without events: after a COMMIT that raised, it
-- tells whether that group is on disk.
CREATE TABLE writers (
    id         TEXT    PRIMARY KEY,
    last_group INTEGER NOT NULL
) STRICT;

-- What upkeep is doing and has done, one row for each kind of it: `gc`, `gc-preview`, on PostgreSQL `doctor`.
CREATE TABLE upkeep (
    name          TEXT    NOT NULL PRIMARY KEY,
    updated_at_ms INTEGER NOT NULL,
    data          BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

-- --- Views --------------------------------------------------------------------------------------------------------------------

-- A run as one row. Written with columns of one table and lookups in the others, so that a query pays only for the columns it names.
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

-- The journals, a row for each event.
CREATE VIEW events AS
SELECT d.id AS run_id, b.first_seq + e.key AS seq, e.value ->> 0 AS at_ms, e.value ->> 1 AS type, e.value ->> 2 AS node,
       e.value ->> 3 AS path, e.value ->> 4 AS attempt, substr(b.payload, (e.value ->> 5) + 1, e.value ->> 6) AS data,
       substr(b.payload, (e.value ->> 5) + coalesce(e.value ->> 6, 0) + 1, e.value ->> 7) AS output
  FROM run_details AS d CROSS JOIN batches AS b ON b.n = d.n CROSS JOIN json_each(b.head) AS e;

-- Business data apart from bookkeeping: what did the work produce?
CREATE VIEW outputs AS
SELECT d.id AS run_id, d.workflow, e.value ->> 2 AS node, e.value ->> 3 AS path, e.value ->> 4 AS attempt, b.first_seq + e.key AS seq,
       e.value ->> 0 AS at_ms,
       CAST(substr(b.payload, (e.value ->> 5) + coalesce(e.value ->> 6, 0) + 1, e.value ->> 7) AS TEXT) AS output
  FROM run_details AS d CROSS JOIN batches AS b ON b.n = d.n CROSS JOIN json_each(b.head) AS e
 WHERE e.value ->> 2 IS NOT NULL AND e.value ->> 7 IS NOT NULL;

-- When did each attempt start and end, and how? Without an end yet, `finished_at_ms` and `outcome` are NULL.
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

-- Where does each node key stand, in which iteration or branch (`path`), after how many attempts, since when?
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
