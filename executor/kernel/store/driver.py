"""psycopg, the driver of PostgreSQL, is an extra: `kernel.store.postgres` can be imported where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from executor.errors import StoreError
from executor.kernel.process.extras import install


@contextmanager
def needs_psycopg() -> Iterator[None]:
    """Wrap an import of psycopg. Raises StoreError, with how to install it."""
    try:
        yield
    except ImportError as error:
        raise StoreError(f"PostgreSQL needs psycopg: {install('postgres')} ({error})") from None
