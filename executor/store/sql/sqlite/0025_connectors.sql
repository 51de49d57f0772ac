-- Connector documents that were added to this installation; each makes a block type. `hash`: SHA-256 of the document.
CREATE TABLE connectors (
    service       TEXT    PRIMARY KEY,
    document      BLOB    NOT NULL,
    hash          TEXT    NOT NULL,
    created_by    TEXT    NOT NULL,
    changed_at_ms INTEGER NOT NULL
) STRICT;
