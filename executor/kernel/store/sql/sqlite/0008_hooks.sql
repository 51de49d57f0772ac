-- The block (JSON: type and params) for which a service is to call this server. NULL: its source is only polled.
ALTER TABLE schedules ADD COLUMN push BLOB;
-- While a poll is claimed: 0, or when a delivery came since. NULL between polls.
ALTER TABLE schedules ADD COLUMN pushed_ms INTEGER;

-- Addresses of this server that are registered at services, or are to be, or are to be removed there: a row outlives its trigger.
CREATE TABLE hooks (
  id              TEXT PRIMARY KEY,
  schedule_id     TEXT NOT NULL,
  workflow        TEXT NOT NULL,
  source          BLOB NOT NULL,
  created_at_ms   INTEGER NOT NULL,
  until_ms        INTEGER NOT NULL DEFAULT 0,
  renew_at_ms     INTEGER NOT NULL DEFAULT 0,
  place           TEXT,
  registered      TEXT,
  secret          BLOB,
  expires_at_ms   INTEGER,
  delivered_at_ms INTEGER,
  failures        INTEGER NOT NULL DEFAULT 0,
  error           TEXT
) STRICT;
CREATE UNIQUE INDEX hooks_source ON hooks (schedule_id, source);
