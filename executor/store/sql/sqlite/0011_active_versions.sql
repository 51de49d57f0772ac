-- Which version of a workflow runs where no version is named. Until now that was the newest; a workflow without a row is deleted,
-- and its versions are there for the runs that used them.

CREATE TABLE active_versions (
    workflow TEXT    PRIMARY KEY,
    version  INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    FOREIGN KEY (workflow, version) REFERENCES workflows (name, version)
) STRICT;
INSERT INTO active_versions (workflow, version, since_ms)
SELECT name, version, created_at_ms FROM workflows AS w
 WHERE version = (SELECT max(version) FROM workflows WHERE name = w.name);
