"""The file of a SQLite database and the machine around it: what a server on it depends on."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

from executor.store.sqlite.connection import FIXED_WAL_RESET, WAL_KEPT_BYTES
from executor.upkeep.findings import Condition

DISK_FREE_MIN_BYTES = 256 * 1024 * 1024
WAL_LARGE_BYTES = 4 * WAL_KEPT_BYTES


def conditions_of_file(path: Path) -> Iterator[Condition]:
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < FIXED_WAL_RESET:
        yield Condition(
            "SQLite",
            "warning",
            f"version {version}: two processes that write and checkpoint at the same time may damage the file",
            f"let one server at a time use the database, or use SQLite {'.'.join(map(str, FIXED_WAL_RESET))} or newer",
        )
    else:
        yield Condition("SQLite", "ok", f"version {version}")
    if os.name == "posix":
        yield _permissions(path)
    free = shutil.disk_usage(path.parent).free
    yield Condition(
        "disk",
        "warning" if free < DISK_FREE_MIN_BYTES else "ok",
        f"{_mib(free)} free, the database has {_mib(path.stat().st_size)}",
        "free disk space: on a full disk the server answers 507" if free < DISK_FREE_MIN_BYTES else "",
    )
    wal = path.with_name(path.name + "-wal")
    wal_bytes = wal.stat().st_size if wal.exists() else 0
    large = wal_bytes > WAL_LARGE_BYTES
    yield Condition(
        "WAL",
        "warning" if large else "ok",
        f"{_mib(wal_bytes)}",
        "a long-running reader, such as a backup, prevents it from being written back" if large else "",
    )


def _permissions(path: Path) -> Condition:
    key = path.with_suffix(".key")
    files = [path, *(path.with_name(path.name + end) for end in ("-wal", "-shm")), key]
    open_to_others = [file for file in files if file.exists() and stat.S_IMODE(file.stat().st_mode) & 0o077]
    if open_to_others:
        names = ", ".join(file.name for file in open_to_others)
        fix = f"chmod 600 {' '.join(str(file) for file in open_to_others)}"
        return Condition("permissions", "warning", f"other users of this machine can open {names}", fix)
    return Condition("permissions", "ok", "only the owner can open the files")


def _mib(size: int) -> str:
    return f"{size / 1024 / 1024:,.1f} MiB"
