-- Who is signed in, and signatures that count once for as long as their secret lives.

-- `hash` is of the value that the browser holds; `mark` is of the token that the session was made with. Times: made, last seen.
CREATE TABLE sessions (
    hash          TEXT    PRIMARY KEY,
    mark          TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    seen_at_ms    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_seen ON sessions (seen_at_ms);

-- Deliveries that have left `deliveries`, of webhooks whose signature has no time in it. `digest` is the first 32 digits of that of
-- the delivery, which are enough to tell them apart: about 100 bytes a row.
CREATE TABLE old_deliveries (
    webhook_id TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    at_ms      INTEGER NOT NULL,
    run_id     TEXT    NOT NULL,
    PRIMARY KEY (webhook_id, digest)
) STRICT, WITHOUT ROWID;
