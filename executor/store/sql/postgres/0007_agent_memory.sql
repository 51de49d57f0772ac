-- What agents remember; see 0022_agent_memory.sql of SQLite.
CREATE TABLE agent_memory (
    workflow text   COLLATE "C" NOT NULL,
    scope    text   COLLATE "C" NOT NULL,
    key      text   COLLATE "C" NOT NULL,
    n        bigint NOT NULL,
    turn     text   COLLATE "C" NOT NULL,
    run_id   text   COLLATE "C" NOT NULL,
    at_ms    bigint NOT NULL,
    messages bytea  NOT NULL,
    PRIMARY KEY (workflow, scope, key, n)
);
CREATE UNIQUE INDEX agent_memory_by_turn ON agent_memory (workflow, scope, key, turn);
CREATE INDEX agent_memory_by_time ON agent_memory (at_ms);
