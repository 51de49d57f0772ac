"""Checks the file of a SQLite database and the machine around it, on which a server depends."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from executor.kernel.store.sqlite.connection import FIXED_WAL_RESET, WAL_KEPT_BYTES
from executor.service.upkeep.findings import Condition

DISK_FREE_MIN_BYTES = 256 * 1024 * 1024
WAL_LARGE_BYTES = 4 * WAL_KEPT_BYTES


def conditions_of_file(path: Path) -> Iterator[Condition]:
    yield _library(path)
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


def _library(path: Path) -> Condition:
    """Check the version: before FIXED_WAL_RESET, a file that several processes have open may be damaged."""
    version, fixed = sqlite3.sqlite_version, ".".join(map(str, FIXED_WAL_RESET))
    if sqlite3.sqlite_version_info >= FIXED_WAL_RESET:
        return Condition("SQLite", "ok", f"version {version}")
    users = processes_with(path)
    if users is not None and len(users) < 2:
        return Condition("SQLite", "ok", f"version {version}: before {fixed}, only one process may write to the file")
    who = "" if users is None else f", and {len(users)} processes have it open ({', '.join(map(str, sorted(users)))})"
    return Condition(
        "SQLite",
        "warning",
        f"version {version}: two processes that write and checkpoint at the same time may damage the file{who}",
        f"let one server at a time use the database, or use SQLite {fixed} or newer",
    )


def processes_with(path: Path) -> set[int] | None:
    """Return the other processes of this machine that have the file open, as far as this account may see them, or None
    if this system does not show them."""
    if not Path("/proc/self/fd").is_dir():
        return None
    file, found = path.stat(), set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with suppress(OSError):  # it is of another account, or has ended
            if any(_is(entry, file) for entry in (folder / "fd").iterdir()):
                found.add(int(folder.name))
    return found


def _is(entry: Path, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(entry.stat(), file)
    except OSError:  # it was closed
        return False


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
