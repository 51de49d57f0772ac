-- The block (JSON: type and params) for which a service is to call this server. NULL: its source is only polled.
ALTER TABLE schedules ADD COLUMN push bytea;
-- While a poll is claimed: 0, or when a delivery came since. NULL between polls.
ALTER TABLE schedules ADD COLUMN pushed_ms bigint;

-- Addresses of this server that are registered at services, or are to be, or are to be removed there: a row outlives its trigger.
CREATE TABLE hooks (
  id              text PRIMARY KEY,
  schedule_id     text NOT NULL,
  workflow        text NOT NULL,
  source          bytea NOT NULL,
  created_at_ms   bigint NOT NULL,
  until_ms        bigint NOT NULL DEFAULT 0,
  renew_at_ms     bigint NOT NULL DEFAULT 0,
  place           text,
  registered      text,
  secret          bytea,
  expires_at_ms   bigint,
  delivered_at_ms bigint,
  failures        bigint NOT NULL DEFAULT 0,
  error           text
);
CREATE UNIQUE INDEX hooks_source ON hooks (schedule_id, source);
