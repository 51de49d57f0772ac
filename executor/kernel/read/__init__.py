"""Readers of journals: cursors, and what wakes them."""
