-- What deleting runs needs: who still refers to a plan, a document, a blob? One small entry per run, none per event.

CREATE INDEX runs_by_plan ON runs (plan_hash);
CREATE INDEX runs_by_document ON runs (document_hash) WHERE document_hash IS NOT NULL;

-- Which runs have an output in which blob. Written with the blob; outputs over 256 KiB are few.
CREATE TABLE blob_refs (
    run_id TEXT NOT NULL REFERENCES runs (id),
    hash   TEXT NOT NULL REFERENCES blobs (hash),
    PRIMARY KEY (run_id, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_refs_by_hash ON blob_refs (hash);
INSERT INTO blob_refs (run_id, hash)
SELECT DISTINCT run_id, json_extract(CAST(data AS TEXT), '$.blob') FROM events
 WHERE instr(data, '"blob"') AND json_extract(CAST(data AS TEXT), '$.blob') IN (SELECT hash FROM blobs);

-- Facts that came in the moment their run ended: nobody takes them any more. The append that ends a run does it from now on.
DELETE FROM inbox WHERE run_id IN (SELECT id FROM runs WHERE status IN ('succeeded', 'failed', 'cancelled'));
