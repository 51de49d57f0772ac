-- Runs that other runs started, and cached results.

-- `parent_key` is the id of the wait that the child ends, so a wait has one child however often its append is tried again.
CREATE UNIQUE INDEX runs_by_parent ON runs (parent_run_id, parent_key) WHERE parent_run_id IS NOT NULL;

-- Outputs that a later run of an equal block may take over. `key` is a hash of everything that could make the output another
-- one; the columns behind it tell people, and `weft cache clear`, where it came from.
CREATE TABLE cache (
    key           TEXT    PRIMARY KEY,
    scope         TEXT    NOT NULL CHECK (scope IN ('run', 'workflow', 'global')),
    workflow      TEXT    NOT NULL,
    run_id        TEXT    NOT NULL,
    block         TEXT    NOT NULL,
    type          TEXT    NOT NULL,
    schema_sig    TEXT    NOT NULL,
    route         TEXT,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    output        BLOB    NOT NULL
) STRICT;
CREATE INDEX cache_by_expiry ON cache (expires_at_ms);
CREATE INDEX cache_by_workflow ON cache (workflow);
