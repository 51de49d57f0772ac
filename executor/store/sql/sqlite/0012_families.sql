-- What a run and all runs below it have in common, so that their number and bytes are bounded and one write ends them all; and
-- cancels, which a run must hear of before it ends.

-- The topmost run above one that another run started. NULL for runs that no run started.
ALTER TABLE runs ADD COLUMN root_id TEXT;
-- The inbox number of the last cancel.
ALTER TABLE runs ADD COLUMN cancel_n INTEGER;

-- One row for each root that has started runs. `runs`: ever made below it, `open`: those of them that have not ended; `bytes`: of
-- the outputs of the root and of all below it. `over`: the root was cancelled or has ended, so nothing below it is to go on.
CREATE TABLE families (
    root_id TEXT    PRIMARY KEY,
    runs    INTEGER NOT NULL,
    open    INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,
    over    INTEGER NOT NULL CHECK (over IN (0, 1))
) STRICT, WITHOUT ROWID;

WITH RECURSIVE below (id, root_id) AS (
    SELECT r.id, r.parent_run_id FROM runs AS r LEFT JOIN runs AS parent ON parent.id = r.parent_run_id
     WHERE r.parent_run_id IS NOT NULL AND parent.parent_run_id IS NULL
    UNION ALL
    SELECT r.id, below.root_id FROM below JOIN runs AS r ON r.parent_run_id = below.id)
UPDATE runs SET root_id = below.root_id FROM below WHERE below.id = runs.id;

INSERT INTO families (root_id, runs, open, bytes, over)
SELECT r.root_id, count(*), count(*) FILTER (WHERE r.status IN ('queued', 'running', 'waiting')), 0,
       coalesce((SELECT root.status IN ('succeeded', 'failed', 'cancelled') FROM runs AS root WHERE root.id = r.root_id), 1)
  FROM runs AS r WHERE r.root_id IS NOT NULL GROUP BY r.root_id;

UPDATE families SET bytes = told.bytes
  FROM (SELECT coalesce(r.root_id, r.id) AS root_id,
               sum((SELECT coalesce(sum(length(e.output)), 0) FROM events AS e WHERE e.run_id = r.id AND e.type <> 'run.finished')
                 + (SELECT coalesce(sum(length(b.bytes)), 0) FROM blob_refs AS f JOIN blobs AS b ON b.hash = f.hash
                     WHERE f.run_id = r.id)) AS bytes
          FROM runs AS r WHERE r.root_id IS NOT NULL OR r.id IN (SELECT root_id FROM families)
         GROUP BY coalesce(r.root_id, r.id)) AS told
 WHERE told.root_id = families.root_id;

UPDATE runs SET cancel_n = told.n
  FROM (SELECT run_id, max(n) AS n FROM inbox
         WHERE instr(fact, '"cancel"') AND json_extract(CAST(fact AS TEXT), '$.type') = 'cancel' GROUP BY run_id) AS told
 WHERE told.run_id = runs.id;
