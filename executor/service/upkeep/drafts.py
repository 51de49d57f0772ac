"""Files that get their name when they are complete: backups, restored databases, exports.

Beside a draft, `NAME.TOKEN.part`, is a file that its process locks. A killed process holds no lock, so its files are
removed when the next file in the folder is made. The draft itself is not locked: on some systems SQLite could not write
to it then.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

OWNER: Final = "-owner"  # suffix of the locked file beside a draft
NAME: Final = re.compile(r".+\.[0-9a-f]{16}\.part")
# Without a lock, as on Windows: a draft without a write for so long is of a process that was killed.
KEPT_S: Final = 3600.0


class Draft:
    """An empty file for its owner only. `close` removes it, unless it has another name by then."""

    def __init__(self, target: Path) -> None:
        """Raises OSError."""
        clear_away(target.parent)
        while True:
            self.path = target.with_name(f"{target.name}.{secrets.token_hex(8)}.part")
            owner = _owner_of(self.path)
            self._owner = os.open(owner, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            if _is_free(self._owner, owner):
                break
            os.close(self._owner)  # another process took it for an abandoned one
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        _remove(self.path)
        os.close(self._owner)


@contextmanager
def draft_of(target: Path) -> Iterator[Path]:
    """Raises OSError."""
    draft = Draft(target)
    try:
        yield draft.path
    finally:
        draft.close()


def clear_away(folder: Path) -> None:
    """Remove the drafts of processes that were killed."""
    for owner in folder.glob(f"*.part{OWNER}"):
        draft = owner.with_name(owner.name.removesuffix(OWNER))
        if NAME.fullmatch(draft.name):
            with suppress(OSError):
                _remove_if_left(draft, owner)


def _remove_if_left(draft: Path, owner: Path) -> None:
    descriptor = os.open(owner, os.O_RDWR)
    try:
        left = _is_free(descriptor, owner)
        if left and sys.platform == "win32":
            left = max(path.stat().st_mtime for path in (owner, draft) if path.exists()) < time.time() - KEPT_S
        if left:
            _remove(draft)
    finally:
        os.close(descriptor)


def _is_free(descriptor: int, path: Path) -> bool:
    """Return True if this process has locked the file now, and the file is still there."""
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _owner_of(draft: Path) -> Path:
    return draft.with_name(draft.name + OWNER)


def _remove(draft: Path) -> None:
    """Remove a draft, the owner's file last: as long as it is there, the rest is found."""
    for end in ("", "-journal", "-wal", "-shm", OWNER):
        with suppress(FileNotFoundError):
            os.unlink(f"{draft}{end}")
