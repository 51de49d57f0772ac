-- What the journal of a long open run folds to after `seq` events, so that a worker that claims it reads only what came after. Rows may
-- be deleted at any time. `n` is the run's number; `format`, `code` and `plan_hash` say who can read `data`, `checksum` is of all of it.
CREATE TABLE snapshots (
    n         INTEGER PRIMARY KEY REFERENCES run_details (n),
    seq       INTEGER NOT NULL,
    format    INTEGER NOT NULL,
    code      TEXT    NOT NULL,
    plan_hash TEXT    NOT NULL,
    checksum  INTEGER NOT NULL,
    data      BLOB    NOT NULL
) STRICT;
