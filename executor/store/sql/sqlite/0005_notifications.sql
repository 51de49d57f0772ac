-- Messages about waits on their way out: mails and requests that tell somebody that an answer is wanted.

-- One row for each address. `content` is JSON with the secrets taken out (executor/notifications/seal.py); the store never looks
-- inside. `due_at_ms`: not before this time; while a message is being sent it is the time at which another process may try.
CREATE TABLE notifications (
    run_id        TEXT    NOT NULL REFERENCES runs (id),
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
-- Only of those that are still to be sent, which are few.
CREATE INDEX notifications_due ON notifications (due_at_ms, run_id, wait_id, n) WHERE status = 'pending';
-- Signals of a run by name, for who looks whether one has arrived.
CREATE INDEX signals_by_name ON signals (run_id, name, seq);
