"""The store contract as tests. `test_contract_*` runs on every backend, `test_sqlite_*` on the SQLite file alone."""
