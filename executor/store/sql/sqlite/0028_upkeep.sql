-- What upkeep is doing and has done, one row for each kind of it: `gc`, `gc-preview`, on PostgreSQL `doctor`.
CREATE TABLE upkeep (
    name          TEXT    NOT NULL PRIMARY KEY,
    updated_at_ms INTEGER NOT NULL,
    data          BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

-- A token may be for metrics alone.
CREATE TABLE api_tokens_new (
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
INSERT INTO api_tokens_new SELECT * FROM api_tokens;
DROP TABLE api_tokens;
ALTER TABLE api_tokens_new RENAME TO api_tokens;

-- Who made or last changed a schedule, which continues without them.
ALTER TABLE schedules ADD COLUMN made_by TEXT;
