"""Databases that earlier versions of weft left behind, with runs in every state, and what those versions decided.

`schema_N.sql.gz` is a database of schema N as text, `schema_N.facts.gz` each fact that the core was told while it was
made. `record.py` makes both with the code of a release.
"""
