-- What agents remember: a row for each turn of a conversation, which has the key `key` in a workflow (`scope` is empty) or in a
-- scope that workflows share (`workflow` is empty). `turn`: the run and the node that ended it. `n`: in the order of their ends.
CREATE TABLE agent_memory (
    workflow TEXT    NOT NULL,
    scope    TEXT    NOT NULL,
    key      TEXT    NOT NULL,
    n        INTEGER NOT NULL,
    turn     TEXT    NOT NULL,
    run_id   TEXT    NOT NULL,
    at_ms    INTEGER NOT NULL,
    messages BLOB    NOT NULL,
    PRIMARY KEY (workflow, scope, key, n)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX agent_memory_by_turn ON agent_memory (workflow, scope, key, turn);
CREATE INDEX agent_memory_by_time ON agent_memory (at_ms);
