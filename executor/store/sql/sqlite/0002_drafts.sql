-- Documents that are being edited, and the documents of runs that are not runs of a stored workflow.

-- A draft is replaced as a whole, and only by who names the revision it has; `base_rev` is the revision that was last stored as
-- version `base_version` of the workflow `base_name`.
CREATE TABLE drafts (
    id            TEXT    PRIMARY KEY,
    name          TEXT    NOT NULL,
    rev           INTEGER NOT NULL,
    base_name     TEXT,
    base_version  INTEGER,
    base_rev      INTEGER,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    document      BLOB    NOT NULL
) STRICT;
CREATE INDEX drafts_by_time ON drafts (updated_at_ms, id);

-- A run of a stored workflow has its document there, by name and version; every other run has it here. Runs of before this
-- schema that were given a document have none.
CREATE TABLE documents (
    hash     TEXT PRIMARY KEY,
    document BLOB NOT NULL
) STRICT;
ALTER TABLE runs ADD COLUMN document_hash TEXT REFERENCES documents (hash);

-- A draft may be deleted, its runs stay: no reference.
ALTER TABLE runs ADD COLUMN draft_id TEXT;
ALTER TABLE runs ADD COLUMN draft_rev INTEGER;
CREATE INDEX runs_by_draft ON runs (draft_id, created_at_ms, id) WHERE draft_id IS NOT NULL;

-- For counting by status. Only of runs that have ended: their status changes no more, so an entry is written once in a run's
-- life; the others are few, and `runs_claimable` finds them.
CREATE INDEX runs_ended ON runs (status, workflow) WHERE status IN ('succeeded', 'failed', 'cancelled');
