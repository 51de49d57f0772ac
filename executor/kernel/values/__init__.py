"""Payloads: everything the core does not see. `scope.py` holds them, `resolve.py` puts them into params."""
