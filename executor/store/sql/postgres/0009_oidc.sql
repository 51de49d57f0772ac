-- Users of a provider that signs people in, and which browser a session is in; see 0024_oidc.sql of SQLite.

ALTER TABLE users ADD COLUMN identity text COLLATE "C";
CREATE UNIQUE INDEX users_by_identity ON users (identity) WHERE identity IS NOT NULL;

ALTER TABLE sessions ADD COLUMN device text COLLATE "C" NOT NULL DEFAULT '';
