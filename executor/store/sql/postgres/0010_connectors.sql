-- Connector documents that were added to this installation; see 0025_connectors.sql of SQLite.
CREATE TABLE connectors (
    service       text   COLLATE "C" PRIMARY KEY,
    document      bytea  NOT NULL,
    hash          text   COLLATE "C" NOT NULL,
    created_by    text   COLLATE "C" NOT NULL,
    changed_at_ms bigint NOT NULL
);
