-- Values that workflows read as ${NAME}. `sealed`: AES-256-GCM with the key `key_id`, over the name and the version too. `hosts`: a JSON
-- list, where the value may be sent to. `version` is one higher with each new value.
CREATE TABLE secrets (
    name            TEXT    PRIMARY KEY,
    version         INTEGER NOT NULL,
    sealed          BLOB    NOT NULL,
    key_id          TEXT    NOT NULL,
    hosts           TEXT    NOT NULL,
    created_by      TEXT    NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    last_used_at_ms INTEGER
) STRICT, WITHOUT ROWID;
