-- The state of a trigger that polls, JSON: where it is in its source. NULL for a schedule, which starts a run at each of its times.
ALTER TABLE schedules ADD COLUMN poll BLOB;
