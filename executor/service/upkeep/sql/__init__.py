"""Read-only SQL on a database for people, and its views."""
