-- People, what they sign in with, and what they did; see 0021_people.sql of SQLite.

CREATE TABLE users (
    id            text COLLATE "C" PRIMARY KEY,
    name          text COLLATE "C" NOT NULL,
    role          text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'approver', 'editor', 'admin')),
    created_at_ms bigint NOT NULL
);

CREATE TABLE api_tokens (
    id            text COLLATE "C" PRIMARY KEY,
    hash          text COLLATE "C" NOT NULL,
    name          text COLLATE "C" NOT NULL,
    user_id       text COLLATE "C",
    role          text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'approver', 'editor', 'admin')),
    workflows     text COLLATE "C",
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL,
    used_at_ms    bigint
);

CREATE TABLE sign_in_codes (
    hash        text COLLATE "C" PRIMARY KEY,
    user_id     text COLLATE "C" NOT NULL,
    until_ms    bigint NOT NULL
);

DELETE FROM sessions;
ALTER TABLE sessions ADD COLUMN user_id text COLLATE "C" NOT NULL DEFAULT '';

CREATE TABLE audit (
    n      bigint PRIMARY KEY,
    at_ms  bigint NOT NULL,
    actor  text COLLATE "C" NOT NULL,
    via    text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    object text COLLATE "C" NOT NULL,
    detail text COLLATE "C" NOT NULL,
    hash   text COLLATE "C" NOT NULL
);
CREATE TABLE audit_head (
    id   bigint PRIMARY KEY CHECK (id = 1),
    n    bigint NOT NULL,
    hash text COLLATE "C" NOT NULL
);
