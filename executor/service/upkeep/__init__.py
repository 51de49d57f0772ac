"""Looking after a database: checking it (invariants, doctor), keeping it small (gc), keeping it safe (backup)."""
