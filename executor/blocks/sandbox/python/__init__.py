"""Programs in Python: CPython 3.14 as a WebAssembly component without WASI, so that it can ask nothing of the host.

    guest.py      one call: a new instance, the deadline, what stopped it
    component.py  the component, compiled on this machine: built by `weft python build`, read back with its digest
    program/      the sources of the component: its world, and the Python that runs inside it (never imported here)

Decision 32 explains why it is built on the machine and not downloaded."""
