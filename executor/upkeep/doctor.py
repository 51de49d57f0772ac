"""`weft doctor`: everything that can be said about a database file while its server is at work.

Two kinds of answers. Findings are broken promises (`invariants.py`): the data is not as it should be. Conditions are
about the place the data lives in and the machine around it; those without an effect so far are warnings.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal

from msgspec import Struct

from executor.store.migrate import packaged_migrations, refuse_foreign, version_of
from executor.store.sqlite.connection import FIXED_WAL_RESET, WAL_KEPT_BYTES
from executor.upkeep.findings import INVARIANTS, Evidence, Finding
from executor.upkeep.invariants import check, open_read_only

FINDINGS_MAX = 500  # kept; more are only counted
DISK_FREE_MIN_BYTES = 256 * 1024 * 1024
WAL_LARGE_BYTES = 4 * WAL_KEPT_BYTES
# Leases are taken over, messages sent and schedules kept within seconds: after this long no process does it.
STUCK_MS = 120_000

Level = Literal["ok", "warning", "error"]


class Condition(Struct, frozen=True):
    """The state of one part of the system: `what` was found and, unless `level` is ok, how to `fix` it."""

    name: str
    level: Level
    what: str
    fix: str = ""


class Promise(Struct, frozen=True):
    """One invariant. `findings` None: it was not asked, because it needs something this call did not have."""

    id: str
    title: str
    findings: int | None


class Report(Struct, frozen=True):
    """`findings` holds the first FINDINGS_MAX of them."""

    database: str
    runs: dict[str, int]
    events: int
    promises: tuple[Promise, ...]
    conditions: tuple[Condition, ...]
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether no promise is broken and no condition is an error."""
        return not any(promise.findings for promise in self.promises) and all(
            condition.level != "error" for condition in self.conditions
        )


def examine(path: Path, now_ms: int, *, run: str | None = None, evidence: Evidence | None = None) -> Report:
    """Everything about the file, or about one run of it. Raises sqlite3.Error when it cannot be read at all,
    ForeignDatabase when it is of another program, LookupError when there is no such run."""
    evidence = evidence or Evidence()
    asked = [id for id in INVARIANTS if _can_be_asked(id, evidence, run)]
    with closing(open_read_only(path)) as db:
        refuse_foreign(db, str(path))
        newest = packaged_migrations()[-1].number
        conditions = [*_machine(path), _schema(version_of(db), newest)]
        if version_of(db) != newest:  # the tables are not those this code knows
            promises = tuple(Promise(id, title, None) for id, title in INVARIANTS.items())
            return Report(str(path), {}, 0, promises, tuple(conditions), ())
        if run is not None and not db.execute("SELECT 1 FROM runs WHERE id = ?", (run,)).fetchall():
            raise LookupError(run)
        found: list[Finding] = []
        counts: Counter[str] = Counter()
        for finding in check(db, run=run, only=asked, evidence=evidence):
            counts[finding.invariant] += 1
            if len(found) < FINDINGS_MAX:
                found.append(finding)
        if run is None:
            conditions += _work(db, now_ms)
        runs = dict(db.execute("SELECT status, count(*) FROM runs GROUP BY status"))
        (events,) = db.execute("SELECT coalesce(sum(seq), 0) FROM runs").fetchone()
    return Report(
        database=str(path),
        runs=runs,
        events=events,
        promises=tuple(Promise(id, title, counts[id] if id in asked else None) for id, title in INVARIANTS.items()),
        conditions=tuple(conditions),
        findings=tuple(found),
    )


def _can_be_asked(invariant: str, evidence: Evidence, run: str | None) -> bool:
    match invariant:
        case "I10":
            return bool(evidence.transcripts)
        case "I11":
            return bool(evidence.secrets)
        case _:
            return True


# --- the file and the machine


def _machine(path: Path) -> Iterator[Condition]:
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


def _schema(found: int, newest: int) -> Condition:
    if found > newest:
        what = f"the file has schema {found}, but this weft supports schemas up to {newest}"
        return Condition("schema", "error", what, "use the weft version that wrote it, or a newer one")
    if found < newest:
        what = f"the file has schema {found}, this weft has {newest}"
        return Condition("schema", "warning", what, "make a backup, then start `weft serve` to update it")
    return Condition("schema", "ok", f"schema {found}")


# --- is a worker active?


_LAPSED = "SELECT count(*) FROM heads AS h JOIN workers AS w ON w.id = h.owner WHERE w.until_ms < ?"
_OVERDUE = "SELECT count(*) FROM heads WHERE owner IS NULL AND due_ms < ?"
_UNSENT = "SELECT count(*) FROM notifications WHERE status = 'pending' AND due_at_ms < ?"
_FAILED_MESSAGES = "SELECT count(*) FROM notifications WHERE status = 'failed'"
_LATE_SCHEDULES = "SELECT count(*) FROM schedules WHERE enabled AND next_run_at_ms < ?"
_FAILED_SCHEDULES = "SELECT count(*) FROM schedules WHERE enabled AND error IS NOT NULL"


def _work(db: sqlite3.Connection, now_ms: int) -> Iterator[Condition]:
    serve = "is `weft serve` running on this database?"
    since = (now_ms - STUCK_MS,)
    yield _count(
        db, "leases", _LAPSED, since, "runs belong to a worker that has stopped, and no other worker claims them", serve
    )
    yield _count(db, "due runs", _OVERDUE, since, "runs are due, but no worker claims them", serve)
    yield _count(db, "messages", _UNSENT, since, "messages about waits are due, but are not being sent", serve)
    yield _count(
        db, "failed messages", _FAILED_MESSAGES, (), "messages could not be delivered", "`weft inbox` lists their links"
    )
    yield _count(db, "schedules", _LATE_SCHEDULES, since, "schedules are due, but do not start runs", serve)
    yield _count(
        db,
        "failing schedules",
        _FAILED_SCHEDULES,
        (),
        "schedules failed to start their last run",
        "`weft cron ls` shows the errors",
    )


def _count(db: sqlite3.Connection, name: str, query: str, values: tuple[int, ...], what: str, fix: str) -> Condition:
    (count,) = db.execute(query, values).fetchone()
    return Condition(name, "warning", f"{count} {what}", fix) if count else Condition(name, "ok", "none")


def _mib(size: int) -> str:
    return f"{size / 1024 / 1024:,.1f} MiB"
