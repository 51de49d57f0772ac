"""The store on PostgreSQL, 15 or newer, with psycopg.

`store` has all methods; `writer` commits, `readers` read, `connection` is a session that writes; `dialect` has what
PostgreSQL says in another way than other databases, and the statements of its own; `migrate` brings a database to the
newest schema; `days` begins and drops parts of the journals, and `parts` says which there are. What is asked is in
`executor.store.topics`.
"""
