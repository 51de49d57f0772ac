"""Databases of others that `sql` blocks ask: one statement, one transaction, one connection for each call.

The database of weft itself is not one of them; `executor/kernel/store` has that.
"""
