"""Checks that the file that a process has open is still the one that its path names.

A file that was deleted or renamed stays open, and SQLite writes into it without an error: what was acknowledged then is
gone with the process. So the device and inode of the path, and of the log beside it, are compared with those that were
opened.
"""

from __future__ import annotations

import os

from executor.errors import DatabaseReplaced

Inode = tuple[int, int]


class Identity:
    """The identity of the database at `path`. Call `note` when it was opened; from then on `check`, from any thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._log_path = f"{path}-wal"
        self._file: Inode | None = None
        self._log: Inode | None = None

    def note(self) -> None:
        """It was opened and read just now: what the paths name is what is open, as its connection keeps others from
        deleting the log."""
        self._file = _inode(self._path)
        self._log = _inode(self._log_path)

    def forget_log(self) -> None:
        """No connection is open, so another process may delete the log and make a new one."""
        self._log = None

    def check(self) -> None:
        """Raises DatabaseReplaced."""
        if self._file is None:
            return
        if _inode(self._path) != self._file:
            raise DatabaseReplaced(
                f"the database {self._path} was deleted or replaced while weft had it open",
                hint="Stop the server, put the file back in its place or run `weft restore` with a backup, then start.",
            )
        if self._log is not None and _inode(self._log_path) != self._log:
            raise DatabaseReplaced(
                f"{self._log_path}, the log of the database, was deleted or replaced while weft had it open",
                hint="Stop the server with SIGTERM, so that it writes its data into the database. Then start it again.",
            )

    @property
    def may_checkpoint(self) -> bool:
        """Returns True if the log may be written back: the file is the one that was opened, and so is its log, unless
        it was deleted and there is no other one."""
        if self._file is None:
            return True
        return _inode(self._path) == self._file and _inode(self._log_path) in (self._log, None)


def _inode(path: str) -> Inode | None:
    """Return device and inode of a path, or None if nothing is there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
