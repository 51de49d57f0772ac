-- Where in a request a secret may stand; see 0029_secret_places.sql of SQLite.
ALTER TABLE secrets ADD COLUMN places text COLLATE "C" NOT NULL DEFAULT '[]';
