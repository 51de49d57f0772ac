-- Collections of documents that are searched. `dimension` is that of the vectors of `model`: 0 until the first one is there.
CREATE TABLE knowledge_collections (
    n             INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT    NOT NULL UNIQUE,
    description   TEXT    NOT NULL,
    model         TEXT    NOT NULL,
    dimension     INTEGER NOT NULL,
    chunk_chars   INTEGER NOT NULL,
    overlap_chars INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    created_by    TEXT
) STRICT;

-- A row for each version of a document that has text here. One version is visible to searches; one may be pending: its chunks get
-- their vectors. Rows of `gone` ones are deleted in several transactions. `collection` is the number of one that may be deleted.
CREATE TABLE knowledge_documents (
    n           INTEGER PRIMARY KEY AUTOINCREMENT,
    collection  INTEGER NOT NULL,
    name        TEXT    NOT NULL,
    version     INTEGER NOT NULL,
    title       TEXT    NOT NULL,
    source      TEXT    NOT NULL,
    media_type  TEXT    NOT NULL,
    sha256      TEXT    NOT NULL,
    chars       INTEGER NOT NULL,
    chunks      INTEGER NOT NULL,
    status      TEXT    NOT NULL CHECK (status IN ('pending', 'visible', 'gone')),
    run_id      TEXT    NOT NULL,
    added_at_ms INTEGER NOT NULL,
    added_by    TEXT
) STRICT;
CREATE UNIQUE INDEX knowledge_documents_by_name ON knowledge_documents (collection, name, version);
CREATE UNIQUE INDEX knowledge_documents_visible ON knowledge_documents (collection, name) WHERE status = 'visible';
CREATE INDEX knowledge_documents_gone ON knowledge_documents (n) WHERE status = 'gone';

-- `vector`: float32, of length 1; `signs`: the signs of its numbers, a bit each. NULL until the model was asked.
CREATE TABLE knowledge_chunks (
    n        INTEGER PRIMARY KEY AUTOINCREMENT,
    document INTEGER NOT NULL,
    position INTEGER NOT NULL,
    signs    BLOB,
    text     TEXT    NOT NULL,
    vector   BLOB
) STRICT;
CREATE UNIQUE INDEX knowledge_chunks_by_place ON knowledge_chunks (document, position);
CREATE INDEX knowledge_chunks_by_signs ON knowledge_chunks (document, n, signs);

-- How often a word is in a chunk. `word` is its CRC-32.
CREATE TABLE knowledge_words (
    collection INTEGER NOT NULL,
    word       INTEGER NOT NULL,
    chunk      INTEGER NOT NULL,
    count      INTEGER NOT NULL,
    PRIMARY KEY (collection, word, chunk)
) STRICT, WITHOUT ROWID;
