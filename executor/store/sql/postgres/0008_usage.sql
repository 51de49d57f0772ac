-- What the steps of runs used and cost; see 0023_usage.sql of SQLite.

CREATE TABLE usage (
    run_id             text COLLATE "C" NOT NULL,
    day                bigint           NOT NULL,
    workflow           text COLLATE "C" NOT NULL,
    model              text COLLATE "C" NOT NULL,
    prices             text COLLATE "C" NOT NULL,
    calls              bigint           NOT NULL,
    unpriced           bigint           NOT NULL,
    input_tokens       bigint           NOT NULL,
    cached_tokens      bigint           NOT NULL,
    cache_write_tokens bigint           NOT NULL,
    output_tokens      bigint           NOT NULL,
    reasoning_tokens   bigint           NOT NULL,
    cost_nanos         bigint           NOT NULL,
    PRIMARY KEY (run_id, day, workflow, model, prices)
);
CREATE INDEX usage_by_day ON usage (day, workflow);
