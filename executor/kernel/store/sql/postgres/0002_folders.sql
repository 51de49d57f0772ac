-- Where the front page shows a workflow ('': in no folder), and who made its version the active one.
ALTER TABLE active_versions ADD COLUMN folder TEXT NOT NULL DEFAULT '';
ALTER TABLE active_versions ADD COLUMN changed_by TEXT;
