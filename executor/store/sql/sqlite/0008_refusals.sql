-- Requests to webhooks that were refused: one row for each webhook and reason, however many there were. `delivery` and `run_id`
-- are of the last one.

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
