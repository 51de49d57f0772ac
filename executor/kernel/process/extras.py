"""Other packages: libraries that only some installations need, and what packages add to weft."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from executor.errors import BlockError, StoreError

if TYPE_CHECKING:  # it takes 10 ms, and every command imports this file
    from importlib.metadata import EntryPoint


def install(extra: str) -> str:
    """Return the command that installs the libraries of an extra. It names each: weft itself is on no package index."""
    from importlib.metadata import requires

    needs = (need.partition(";") for need in requires("weft") or ())
    wanted = [name.strip() for name, _, when in needs if re.search(rf"extra == ['\"]{re.escape(extra)}['\"]", when)]
    assert wanted, f"weft has no extra {extra!r}"
    return f"pip install {shlex.join(wanted)}"


async def loaded(module: str, needs: Callable[[], str]) -> Any:
    """Import a module, or wait until another caller has: `sys.modules` has it before it is complete. Raises
    BlockError(not_installed), with what it `needs`."""
    import asyncio  # few commands need it

    try:
        return await asyncio.to_thread(import_module, module)
    except ImportError as error:
        raise BlockError(f"{needs()} ({error})", code="not_installed", retryable=False) from None


@contextmanager
def needs_psycopg() -> Iterator[None]:
    """Wrap an import of psycopg, or of `kernel.store.postgres`. Raises StoreError, with how to install it."""
    try:
        yield
    except ImportError as error:
        raise StoreError(f"PostgreSQL needs psycopg: {install('postgres')} ({error})") from None


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return those of a group by name, also of packages that were installed since the last call: their folder has
    changed. To find them reads a file of each package (6 ms for 150), and an engine looks for three groups."""
    return _of_group(group, tuple((folder, _changed_ns(folder)) for folder in sys.path))


@lru_cache(maxsize=4)
def _of_group(group: str, folders: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    return tuple(sorted(_all(folders).select(group=group), key=lambda one: (one.name, one.value)))


@lru_cache(maxsize=1)
def _all(_: tuple[tuple[str, int], ...]) -> Any:  # its type depends on the version of Python
    from importlib import metadata

    return metadata.entry_points()


def _changed_ns(folder: str) -> int:
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0
