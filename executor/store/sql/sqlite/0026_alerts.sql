-- What operators are told of: failed runs, waits and queued runs that take too long, missed times of schedules.

-- One row for each cause and address. `item`: of a wait or a schedule. `due_at_ms`: not before this time. `message_id`: of
-- the message that tells of it, once there is one. `run_id` is empty for what is about no run.
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

-- Their way out, as `notifications` has that of waits. Channel `workflow`: the error workflow `target` is to be started for
-- the run `run_id`, which is empty for messages.
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
