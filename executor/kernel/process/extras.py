"""Extras of weft: libraries that only some installations need."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from executor.errors import StoreError


def install(extra: str) -> str:
    """Return the command that installs the libraries of an extra. It names each: weft itself is on no package index."""
    from importlib.metadata import requires

    needs = (need.partition(";") for need in requires("weft") or ())
    wanted = [name.strip() for name, _, when in needs if re.search(rf"extra == ['\"]{re.escape(extra)}['\"]", when)]
    assert wanted, f"weft has no extra {extra!r}"
    return f"pip install {shlex.join(wanted)}"


@contextmanager
def needs_psycopg() -> Iterator[None]:
    """Wrap an import of psycopg, or of `kernel.store.postgres`. Raises StoreError, with how to install it."""
    try:
        yield
    except ImportError as error:
        raise StoreError(f"PostgreSQL needs psycopg: {install('postgres')} ({error})") from None
