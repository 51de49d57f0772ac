-- What upkeep is doing and has done; see 0028_upkeep.sql of SQLite.
CREATE TABLE upkeep (
    name          text   COLLATE "C" PRIMARY KEY,
    updated_at_ms bigint NOT NULL,
    data          bytea  NOT NULL
);

ALTER TABLE api_tokens DROP CONSTRAINT api_tokens_role_check;
ALTER TABLE api_tokens ADD CHECK (role IN ('metrics', 'viewer', 'approver', 'editor', 'admin'));

-- Who made or last changed a schedule, which continues without them.
ALTER TABLE schedules ADD COLUMN made_by text COLLATE "C";
