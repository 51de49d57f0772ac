-- Where in a request a secret may stand: a JSON list such as ["header:Authorization"], empty for anywhere.
ALTER TABLE secrets ADD COLUMN places TEXT NOT NULL DEFAULT '[]';
