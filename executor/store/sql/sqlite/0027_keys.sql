-- The keys of the installation, which links, addresses and signatures are made with.

-- `id` tells one key from another and says nothing about it. `until_ms` NULL: the present one; else what was made with it
-- counts until then.
CREATE TABLE secret_keys (
    id       TEXT    PRIMARY KEY,
    since_ms INTEGER NOT NULL,
    until_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX secret_keys_present ON secret_keys ((until_ms IS NULL)) WHERE until_ms IS NULL;

-- Links of open waits that were made with a key before: the hash that the wait had.
CREATE TABLE old_links (
    token_hash TEXT NOT NULL PRIMARY KEY,
    run_id     TEXT NOT NULL,
    wait_id    TEXT NOT NULL,
    key_id     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX old_links_by_key ON old_links (key_id);
