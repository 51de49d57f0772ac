-- Places of limits of blocks (`policy.limit`): a row for each attempt that waits for one, has been given one, or has one. Those with a
-- lower `id` come first. `n`, `epoch`: the run, and the lease that the attempt is of; once the run has another epoch the row does not
-- count any more. `node`: its node key. `asker`: the process it runs in. `state` 0: waits, 1: a place is reserved for it, and its process
-- has yet to hear of that, 2: it has the place.
CREATE TABLE places (
    id      INTEGER PRIMARY KEY,
    key     TEXT    NOT NULL,
    n       INTEGER NOT NULL,
    epoch   INTEGER NOT NULL,
    node    TEXT    NOT NULL,
    attempt INTEGER NOT NULL,
    asker   TEXT    NOT NULL,
    at_most INTEGER NOT NULL,
    state   INTEGER NOT NULL DEFAULT 0 CHECK (state IN (0, 1, 2))
) STRICT;
CREATE UNIQUE INDEX places_of_attempts ON places (n, node, attempt);
CREATE INDEX places_waiting ON places (key, id) WHERE state = 0;
CREATE INDEX places_reserved ON places (asker) WHERE state = 1;
CREATE INDEX places_used ON places (key) WHERE state > 0;
