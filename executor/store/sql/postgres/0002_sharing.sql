-- Which runs a worker may claim, in which order, and how many at once; see 0018_sharing.sql of SQLite.
ALTER TABLE heads ADD COLUMN ready smallint NOT NULL DEFAULT 0 CHECK (ready IN (0, 1));
ALTER TABLE heads ADD COLUMN blocked_by text COLLATE "C";
ALTER TABLE heads ADD COLUMN limits text;
ALTER TABLE heads ADD COLUMN rates text;
UPDATE heads SET fair = (SELECT d.workflow FROM run_details AS d WHERE d.n = heads.n),
                 ready = CASE WHEN owner IS NULL AND status <> 'waiting' THEN 1 ELSE 0 END;

DROP INDEX heads_free;
DROP INDEX heads_by_owner;
CREATE INDEX heads_by_owner ON heads (owner, pool, due_ms, id) WHERE owner IS NOT NULL;
CREATE INDEX heads_ready ON heads (pool, fair, priority DESC, due_ms, id) WHERE ready = 1;
CREATE INDEX heads_later ON heads (pool, due_ms, id) WHERE owner IS NULL AND ready = 0 AND blocked_by IS NULL;
CREATE INDEX heads_blocked ON heads (blocked_by, priority DESC, due_ms, id) WHERE blocked_by IS NOT NULL;

CREATE TABLE slots (
    key   text     COLLATE "C" NOT NULL,
    n     bigint   NOT NULL,
    node  text     COLLATE "C" NOT NULL DEFAULT '',
    freed smallint NOT NULL DEFAULT 0 CHECK (freed IN (0, 1)),
    PRIMARY KEY (key, n, node)
) WITH (fillfactor = 50);
CREATE INDEX slots_of_run ON slots (n);
CREATE INDEX slots_freed ON slots (key) WHERE freed = 1;

CREATE TABLE rates (
    key     text   COLLATE "C" PRIMARY KEY,
    next_us bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX rates_by_time ON rates (next_us);
