"""Every call by which SQLite changes its files, seen from below: a VFS over the machine's own.

`before` is called ahead of each and may kill the process or raise what `trouble` makes; `after` sees it done. Only the
database, its WAL and its rollback journal are watched: the WAL index is never read after a crash.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import apsw
import msgspec
from msgspec import Struct

Kind = Literal["write", "truncate", "sync", "delete"]
File = Literal["", "-wal", "-journal"]  # what its name adds to that of the database
Trouble = Literal["EIO", "ENOSPC"]
CallAction = Literal["kill", "EIO", "ENOSPC"]
CALL_ACTIONS: tuple[CallAction, ...] = ("kill", "EIO", "ENOSPC")

BASE = ""  # the machine's own
_FILES: dict[int, File] = {
    apsw.SQLITE_OPEN_MAIN_DB: "",
    apsw.SQLITE_OPEN_WAL: "-wal",
    apsw.SQLITE_OPEN_MAIN_JOURNAL: "-journal",
}
_EIO = {
    "write": sqlite3.SQLITE_IOERR_WRITE,
    "truncate": sqlite3.SQLITE_IOERR_TRUNCATE,
    "sync": sqlite3.SQLITE_IOERR_FSYNC,
    "delete": sqlite3.SQLITE_IOERR_DELETE,
}


class Op(Struct, frozen=True, array_like=True):
    """`at` is the offset of a write or the new size of a truncation. `lasting`, of a delete: the folder was synced, so
    that it cannot come back."""

    kind: Kind
    file: File
    at: int = 0
    data: bytes = b""
    lasting: bool = False


See = Callable[[Op], None]


def _ignore(op: Op) -> None:
    pass


class _Watched(apsw.VFSFile):
    def __init__(self, vfs: Vfs, file: File, name: Any, flags: list[int]) -> None:
        super().__init__(BASE, name, flags)
        self._vfs = vfs
        self._file = file

    def xWrite(self, data: Any, offset: int) -> None:
        with self._vfs.seen(Op("write", self._file, offset, bytes(data))):
            super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        with self._vfs.seen(Op("truncate", self._file, newsize)):
            super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        with self._vfs.seen(Op("sync", self._file)):
            super().xSync(flags)


class Vfs(apsw.VFS):
    """Registered under `name` as long as it is referred to."""

    def __init__(self, name: str, *, before: See = _ignore, after: See = _ignore) -> None:
        self._before = before
        self._after = after
        self._lock = threading.Lock()
        super().__init__(name, BASE)

    @contextmanager
    def seen(self, op: Op) -> Iterator[None]:
        with self._lock:
            self._before(op)
            yield
            self._after(op)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        for flag, file in _FILES.items():
            if flags[0] & flag:
                return _Watched(self, file, name, flags)
        return super().xOpen(name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        with self.seen(Op("delete", "-journal" if filename.endswith("-journal") else "-wal", lasting=syncdir)):
            super().xDelete(filename, syncdir)


def trouble(kind: Trouble, op: Op) -> Exception:
    """What the operating system would say of `op`, as SQLite says it. A full disk refuses no sync and no deletion."""
    full = kind == "ENOSPC" and op.kind == "write"
    error = apsw.exception_for(sqlite3.SQLITE_FULL if full else _EIO[op.kind])
    error.add_note(f"injected: {kind} at {op.kind} of {op.file or 'the database'}")
    return error


# --- a log of what was done, which survives the process


class Entry(Struct, frozen=True, array_like=True):
    """An operation, or a line that the client was told when everything before it had been done."""

    op: Op | None = None
    told: bytes = b""


class Log:
    """Appends to `path`, at once. For any thread."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def done(self, op: Op) -> None:
        self._add(Entry(op))

    def told(self, line: bytes) -> None:
        self._add(Entry(told=line))

    def close(self) -> None:
        os.close(self._file)

    def _add(self, entry: Entry) -> None:
        data = msgspec.msgpack.encode(entry)
        whole = len(data).to_bytes(4, "big") + data
        assert os.write(self._file, whole) == len(whole)


def read_log(path: Path) -> list[Entry]:
    data, entries, at = path.read_bytes(), [], 0
    decode = msgspec.msgpack.Decoder(Entry).decode
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        entries.append(decode(data[at + 4 : at + 4 + size]))
        at += 4 + size
    return entries
