-- What the front page shows in place of the name of a workflow ('': the name), and the folder of a draft. Who started a run: NULL for
-- triggers, child runs and servers without a token.
ALTER TABLE active_versions ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE drafts ADD COLUMN folder TEXT NOT NULL DEFAULT '';
ALTER TABLE run_details ADD COLUMN started_by TEXT;
CREATE INDEX runs_by_person ON run_details (started_by, created_at_ms, id) WHERE started_by IS NOT NULL;
