"""The store on one SQLite file.

`store` has all methods; `writer` commits, `readers` read, `connection` is the only way to a commit; `dialect` has what
SQLite says in another way than other databases. What is asked is in `executor.store.topics`.
"""
