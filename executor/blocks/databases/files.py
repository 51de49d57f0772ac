"""The SQLite files that a query may open: those inside the folders that the operator permits, and never weft's own.

A path is resolved before it is checked, so links and `..` cannot leave the folder; the resolved path is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from executor.errors import BlockError

ENDINGS: Final = (".db", ".sqlite", ".sqlite3")
FILES_MAX: Final = 1_000  # in one folder, beyond which a query creates none
HINT: Final = "the operator permits folders with WEFT_SQLITE_FOLDERS"


class Folders:
    """`folders`: the permitted ones; a relative path is looked for in each, and created in the first. `own`: the
    database file of weft."""

    def __init__(self, folders: Sequence[str] = (), own: str | None = None) -> None:
        self._folders = tuple(folders)
        self._own = own

    def find(self, name: str, *, create: bool = False) -> Path:
        """Return the path of a file. `create`: a missing file is allowed, as one that may be made. Raises
        BlockError(sql_refused, sql_no_file)."""
        if not self._folders:
            raise _refused("this server permits no SQLite files")
        if not name or any(ord(character) < 0x20 for character in name):
            raise _refused("the name of a SQLite file must be one line of text")
        inside = [path for path in (_inside(folder, name) for folder in self._folders) if path is not None]
        if not inside:
            raise _refused(f"{name[:200]!r} is not in a folder for SQLite files")
        if self._own is not None and any(_belongs(path, self._own) for path in inside):
            raise _refused(f"{name[:200]!r} belongs to the database of weft itself")
        for path in inside:
            if os.path.lexists(path):
                return self._checked(path, name)
        if not create:
            message = f"there is no SQLite file {name[:200]!r}"
            raise BlockError(
                message, code="sql_no_file", retryable=False, hint="a block that does not only read creates it"
            )
        return _new(inside[0], name)

    def _checked(self, path: Path, name: str) -> Path:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise _refused(f"{name[:200]!r} is not a file")
        if self._own is not None and os.path.exists(self._own) and os.path.samestat(found, os.stat(self._own)):
            raise _refused(f"{name[:200]!r} is the database of weft itself")
        return path


def _belongs(path: Path, own: str) -> bool:
    """Return True for the log, the index or the lock of `own`. SQLite would make a database of an empty one."""
    file = Path(os.path.realpath(own))
    return path.parent == file.parent and path.name.lower().startswith(
        (f"{file.name}-".lower(), f"{file.name}.".lower())
    )


def _inside(folder: str, name: str) -> Path | None:
    """Return the resolved path, or None if it is not below the folder."""
    root = Path(os.path.realpath(folder))
    path = Path(os.path.realpath(root / name))
    return path if root in path.parents else None


def _new(path: Path, name: str) -> Path:
    if path.suffix not in ENDINGS:
        raise _refused(
            f"a new SQLite file must end with {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, not {name[:200]!r}"
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.scandir(path.parent) as entries:
        if sum(1 for _ in entries) >= FILES_MAX:
            raise _refused(f"the folder of {name[:200]!r} has {FILES_MAX} files already")
    return path


def _refused(message: str) -> BlockError:
    return BlockError(message, code="sql_refused", retryable=False, hint=HINT)
