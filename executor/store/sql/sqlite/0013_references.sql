-- What the store found by opening bytes so far, as columns: the run that another one reads outputs of, and the plan that a message
-- asks its run to move to. And when contents were last used, so that none is deleted that a run is just being made with.

ALTER TABLE runs ADD COLUMN source_run_id TEXT;
UPDATE runs SET source_run_id = json_extract(CAST(e.data AS TEXT), '$.source_run')
  FROM events AS e
 WHERE e.run_id = runs.id AND e.seq = 1 AND instr(e.data, '"source_run"');
CREATE INDEX runs_by_source ON runs (source_run_id) WHERE source_run_id IS NOT NULL;

ALTER TABLE inbox ADD COLUMN plan_hash TEXT;
UPDATE inbox SET plan_hash = json_extract(CAST(fact AS TEXT), '$.plan')
 WHERE instr(fact, '"migrate"') AND json_extract(CAST(fact AS TEXT), '$.type') = 'migrate';
CREATE INDEX inbox_by_plan ON inbox (plan_hash) WHERE plan_hash IS NOT NULL;

-- Written again at most every ten minutes. 0 in older rows: what refers to them was there long before.
ALTER TABLE plans ADD COLUMN used_at_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN used_at_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE blobs ADD COLUMN used_at_ms INTEGER NOT NULL DEFAULT 0;

-- Pages of waits that are narrowed to a kind or a workflow, whatever became of them. Those that are pending are few, and
-- `waits_by_status` has all that they are narrowed by; an entry of the other two is written once, when the wait is closed.
ALTER TABLE waits ADD COLUMN workflow TEXT NOT NULL DEFAULT '';
UPDATE waits SET workflow = runs.workflow FROM runs WHERE runs.id = waits.run_id;
DROP INDEX waits_by_status;
CREATE INDEX waits_by_status ON waits (status, opened_at_ms, run_id, id, kind, workflow);
CREATE INDEX waits_closed_by_kind ON waits (kind, status, opened_at_ms, run_id, id) WHERE status <> 'pending';
CREATE INDEX waits_closed_by_workflow ON waits (workflow, status, opened_at_ms, run_id, id, kind) WHERE status <> 'pending';
