"""One run in memory: its loop, its attempts, and what is written for it."""
