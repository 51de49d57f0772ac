-- What operators are told of; see 0026_alerts.sql of SQLite.
CREATE TABLE alerts (
    cause      text   COLLATE "C" NOT NULL,
    channel    text   COLLATE "C" NOT NULL CHECK (channel IN ('email', 'webhook')),
    target     text   COLLATE "C" NOT NULL,
    kind       text   COLLATE "C" NOT NULL,
    workflow   text   COLLATE "C" NOT NULL,
    run_id     text   COLLATE "C" NOT NULL,
    item       text   COLLATE "C" NOT NULL,
    at_ms      bigint NOT NULL,
    due_at_ms  bigint NOT NULL,
    message_id text COLLATE "C",
    PRIMARY KEY (cause, channel, target)
);
CREATE INDEX alerts_open ON alerts (due_at_ms, channel, target) WHERE message_id IS NULL;
CREATE INDEX alerts_by_message ON alerts (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX alerts_by_run ON alerts (run_id);

CREATE TABLE alert_messages (
    id            text   COLLATE "C" PRIMARY KEY,
    channel       text   COLLATE "C" NOT NULL CHECK (channel IN ('email', 'webhook', 'workflow')),
    target        text   COLLATE "C" NOT NULL,
    run_id        text   COLLATE "C" NOT NULL,
    status        text   COLLATE "C" NOT NULL CHECK (status IN ('pending', 'sent', 'failed', 'cancelled')),
    attempts      bigint NOT NULL,
    created_at_ms bigint NOT NULL,
    due_at_ms     bigint NOT NULL,
    settled_at_ms bigint,
    error         text COLLATE "C"
);
CREATE INDEX alert_messages_due ON alert_messages (due_at_ms, id) WHERE status = 'pending';
CREATE INDEX alert_messages_settled ON alert_messages (settled_at_ms, id) WHERE settled_at_ms IS NOT NULL;
CREATE INDEX alert_messages_by_target ON alert_messages (channel, target, created_at_ms);
CREATE INDEX alert_messages_by_run ON alert_messages (run_id);
