-- Which runs a worker may claim, in which order, and how many at once. `pool`: of the workers that may; within a pool the keys in `fair`
-- take turns, and within a key the highest `priority` comes first, then the longest due.
-- `ready`: due, and free; set where that is known, and for runs that become due by the next claim. `blocked_by`: the key of a limit
-- that was full when the run was to be claimed; it is ready again when a place is free. `limits`: [[key, at most], ...], `rates`:
-- [[key, per second], ...], NULL when it has none, or has had its turn.
ALTER TABLE heads ADD COLUMN ready INTEGER NOT NULL DEFAULT 0 CHECK (ready IN (0, 1));
ALTER TABLE heads ADD COLUMN blocked_by TEXT;
ALTER TABLE heads ADD COLUMN limits TEXT;
ALTER TABLE heads ADD COLUMN rates TEXT;
UPDATE heads SET fair = (SELECT d.workflow FROM run_details AS d WHERE d.n = heads.n), ready = (owner IS NULL AND status <> 'waiting');

DROP INDEX heads_by_owner;
CREATE INDEX heads_by_owner ON heads (owner, pool, due_ms, id) WHERE owner IS NOT NULL;
CREATE INDEX heads_ready ON heads (pool, fair, priority DESC, due_ms, id) WHERE ready = 1;
CREATE INDEX heads_later ON heads (pool, due_ms, id) WHERE owner IS NULL AND ready = 0 AND blocked_by IS NULL;
CREATE INDEX heads_blocked ON heads (blocked_by, priority DESC, due_ms, id) WHERE blocked_by IS NOT NULL;

-- A place of a limit that a run has. `node` '': the run itself, else a node key of it. `freed`: it has left the place, and who claims
-- next lets another run have it.
CREATE TABLE slots (
    key   TEXT    NOT NULL,
    n     INTEGER NOT NULL,
    node  TEXT    NOT NULL DEFAULT '',
    freed INTEGER NOT NULL DEFAULT 0 CHECK (freed IN (0, 1)),
    PRIMARY KEY (key, n, node)
) STRICT, WITHOUT ROWID;
CREATE INDEX slots_of_run ON slots (n);
CREATE INDEX slots_freed ON slots (key) WHERE freed = 1;

-- When the next run may start, in microseconds. No row: now.
CREATE TABLE rates (
    key     TEXT    PRIMARY KEY,
    next_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX rates_by_time ON rates (next_us);
