-- What `executor.store.sqlite.event_rows` makes of the other columns, so that a damaged row is noticed. NULL in older rows.

ALTER TABLE events ADD COLUMN checksum INTEGER;
