"""Stored secrets in a process: how they are sealed, who may read one, and where it may be sent."""
