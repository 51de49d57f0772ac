"""The store on PostgreSQL, 15 or newer, with psycopg.

`store` has all methods; `writer` commits, `readers` read, `connection` is a session that writes; `dialect` has the SQL
that is PostgreSQL's own; `migrate` brings a database to the newest schema; `days` begins and drops parts of the
journals, and `parts` lists them. The statements are in `executor.kernel.store.topics`.
"""
