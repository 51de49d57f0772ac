-- The keys of the installation; see 0027_keys.sql of SQLite.
CREATE TABLE secret_keys (
    id       text   COLLATE "C" PRIMARY KEY,
    since_ms bigint NOT NULL,
    until_ms bigint
);
CREATE UNIQUE INDEX secret_keys_present ON secret_keys ((until_ms IS NULL)) WHERE until_ms IS NULL;

CREATE TABLE old_links (
    token_hash text COLLATE "C" PRIMARY KEY,
    run_id     text COLLATE "C" NOT NULL,
    wait_id    text COLLATE "C" NOT NULL,
    key_id     text COLLATE "C" NOT NULL
);
CREATE INDEX old_links_by_key ON old_links (key_id);
