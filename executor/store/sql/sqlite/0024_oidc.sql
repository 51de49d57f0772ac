-- Who a user is at the provider that signs people in (OpenID Connect), and which browser a session is in.

-- The issuer and the subject there, with a space between; NULL for users that sign in with links alone.
ALTER TABLE users ADD COLUMN identity TEXT;
CREATE UNIQUE INDEX users_by_identity ON users (identity) WHERE identity IS NOT NULL;

-- What the browser called itself when it signed in.
ALTER TABLE sessions ADD COLUMN device TEXT NOT NULL DEFAULT '';
