-- How far attempts came, for the attempt that follows: the last checkpoint of each node key. `node` is the whole key, with iteration
-- and branch. Kept with the run.

CREATE TABLE checkpoints (
    run_id  TEXT    NOT NULL REFERENCES runs (id),
    node    TEXT    NOT NULL,
    attempt INTEGER NOT NULL,
    at_ms   INTEGER NOT NULL,
    data    BLOB    NOT NULL,
    PRIMARY KEY (run_id, node)
) STRICT;
