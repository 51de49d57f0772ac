"""Waits for changes of Python files. It looks, instead of asking the system to report them: a project has few files,
and a look finds changes on every file system."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Final

LOOK_S: Final = 0.3
BUSY_MOST: Final = 0.1  # of the time, in a folder with very many files
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})  # and hidden folders


async def changes(folder: Path, stop: asyncio.Event) -> AsyncIterator[None]:
    """Yield at once, and after each change of a `.py` file below `folder` since then, until `stop` is set."""
    before = await asyncio.to_thread(_stamps, folder)
    yield
    took_s = 0.0
    while not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), max(LOOK_S, took_s / BUSY_MOST))
            return
        began = time.monotonic()
        now = await asyncio.to_thread(_stamps, folder)
        took_s = time.monotonic() - began
        if now != before:
            before = now
            yield


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the time and the size of each file."""
    found = {}
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED]
        for name in files:
            if name.endswith(".py"):
                path = os.path.join(here, name)
                with suppress(OSError):  # it was removed at this moment
                    about = os.stat(path)
                    found[path] = about.st_mtime_ns, about.st_size
    return found
