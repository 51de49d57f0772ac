-- People, what they and their programs sign in with, and what they did.

CREATE TABLE users (
    id            TEXT    PRIMARY KEY,
    name          TEXT    NOT NULL,
    role          TEXT    NOT NULL CHECK (role IN ('viewer', 'approver', 'editor', 'admin')),
    created_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Tokens for programs. `hash` is of the whole token. `user`: whose it is; NULL for those made with the token of the server. `workflows`: a
-- JSON array of names, or NULL for all.
CREATE TABLE api_tokens (
    id            TEXT    PRIMARY KEY,
    hash          TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    user_id       TEXT,
    role          TEXT    NOT NULL CHECK (role IN ('viewer', 'approver', 'editor', 'admin')),
    workflows     TEXT,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    used_at_ms    INTEGER
) STRICT, WITHOUT ROWID;

-- Codes of sign-in links: each signs in once, until its time.
CREATE TABLE sign_in_codes (
    hash        TEXT    PRIMARY KEY,
    user_id     TEXT    NOT NULL,
    until_ms    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who is signed in. Sessions of before there were users have none, and end.
DELETE FROM sessions;
ALTER TABLE sessions ADD COLUMN user_id TEXT NOT NULL DEFAULT '';

-- What was done, by whom. Each row has the hash of itself and the row before it; `audit_head` has the last. Rows are only added.
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
