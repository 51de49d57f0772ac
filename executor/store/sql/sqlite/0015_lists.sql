-- Pages and counts of runs that have ended, by status, with and without a workflow; and of a draft. A status is written once, when
-- the run ends.

DROP INDEX runs_ended;
CREATE INDEX runs_ended ON run_details (status, created_at_ms, id) WHERE status IS NOT NULL;
CREATE INDEX runs_ended_of_workflow ON run_details (workflow, status, created_at_ms, id) WHERE status IS NOT NULL;
DROP INDEX runs_by_draft;
CREATE INDEX runs_by_draft ON run_details (draft_id, created_at_ms, id, status) WHERE draft_id IS NOT NULL;

-- The last run of a webhook is that of its last delivery.
ALTER TABLE webhooks DROP COLUMN last_run_at_ms;
ALTER TABLE webhooks DROP COLUMN last_run_id;
