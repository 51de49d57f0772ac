"""Databases that earlier versions of weft left behind, with runs in every state, and what those versions decided.

`schema_N.sql.gz` is a database of schema N as text, `schema_N.facts.gz` each fact that the core was told while it was
made. Both come from the code of the commit that `record.py` names; it makes them anew, or those of a next schema.
"""
