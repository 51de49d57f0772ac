"""Programs in Python: CPython 3.14 as a WebAssembly component without WASI, so that it can ask nothing of the host.
Decision 32 explains why it is built on the machine and not downloaded. `program/` has its sources, never imported
here."""
