-- What the steps of runs used and cost: a row for each run, day, name of the steps (a model) and price list, added to when a step ends. What
-- deleted runs used stays, added up, with the run ''. `day` counts from 1970 in UTC; `unpriced`: calls whose price is not known; `cost_nanos`:
-- billionths of a US dollar.

CREATE TABLE usage (
    run_id             TEXT    NOT NULL,
    day                INTEGER NOT NULL,
    workflow           TEXT    NOT NULL,
    model              TEXT    NOT NULL,
    prices             TEXT    NOT NULL,
    calls              INTEGER NOT NULL,
    unpriced           INTEGER NOT NULL,
    input_tokens       INTEGER NOT NULL,
    cached_tokens      INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    reasoning_tokens   INTEGER NOT NULL,
    cost_nanos         INTEGER NOT NULL,
    PRIMARY KEY (run_id, day, workflow, model, prices)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_day ON usage (day, workflow);
