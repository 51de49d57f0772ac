"""The store on one SQLite file.

`store` has all methods; `writer` commits, `readers` read, `connection` is the only way to a commit; `dialect` has the
SQL that is SQLite's own. The statements are in `executor.kernel.store.topics`.
"""
