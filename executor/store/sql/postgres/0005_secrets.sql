-- Values that workflows read as ${NAME}; see 0020_secrets.sql of SQLite.
CREATE TABLE secrets (
    name            text   COLLATE "C" PRIMARY KEY,
    version         bigint NOT NULL,
    sealed          bytea  NOT NULL,
    key_id          text   COLLATE "C" NOT NULL,
    hosts           text   COLLATE "C" NOT NULL,
    created_by      text   COLLATE "C" NOT NULL,
    created_at_ms   bigint NOT NULL,
    last_used_at_ms bigint
);
