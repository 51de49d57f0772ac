"""Checks the place of a database: the file of SQLite and the machine around it, or the PostgreSQL server and the
settings to change before they stop the fleet."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from executor.kernel.store.postgres.parts import LOOSE, PARTS, part_of
from executor.kernel.store.reading import Reading
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


# --- PostgreSQL ---


VERSION_MIN = 15
CLOCK_DIFFERENCE_MAX_MS = 1_000
CONNECTIONS_SHARE_MAX = 0.8
# Old rows are not removed while a transaction is open that began before they were replaced: tables grow.
LONG_S = 300
IDLE_S = 60
DEAD_ROWS_MIN = 50_000
DEAD_PER_LIVE_MAX = 1.0
BUS_QUEUE_MAX_PERCENT = 50
PARTS_MAX = 100  # reading a journal costs twice as much then
TRANSACTIONS_MAX = 1_000_000_000  # without a vacuum of the whole database; at 2 * 10**9 PostgreSQL stops

_SETTINGS = """
SELECT name, setting FROM pg_settings
 WHERE name IN ('server_version', 'server_version_num', 'max_connections', 'superuser_reserved_connections', 'fsync',
                'full_page_writes', 'autovacuum', 'data_checksums', 'server_encoding')"""
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
_HIDDEN = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query = '<insufficient privilege>'"""
# `weft gc` keeps its lock in a transaction that holds nothing else.
_LONG = """
SELECT pid, coalesce(application_name, ''), usename, extract(epoch FROM clock_timestamp() - xact_start)::bigint
  FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid()
   AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
   AND extract(epoch FROM clock_timestamp() - xact_start) >= :seconds
 ORDER BY xact_start"""
_IDLE = """
SELECT pid, coalesce(application_name, ''), usename, extract(epoch FROM clock_timestamp() - state_change)::bigint
  FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'
   AND application_name <> 'weft gc' AND extract(epoch FROM clock_timestamp() - state_change) >= :seconds
 ORDER BY state_change"""
_PREPARED = """
SELECT gid FROM pg_prepared_xacts
 WHERE database = current_database() AND extract(epoch FROM clock_timestamp() - prepared) >= :seconds"""
_SLOTS = "SELECT slot_name FROM pg_replication_slots WHERE NOT active"
_BLOAT = """
SELECT relname, n_live_tup, n_dead_tup, coalesce(greatest(last_vacuum, last_autovacuum)::text, 'never')
  FROM pg_stat_user_tables
 WHERE schemaname = current_schema() AND n_dead_tup >= :dead AND n_dead_tup > n_live_tup * CAST(:share AS float8)
 ORDER BY n_dead_tup DESC"""
# Each process of a fleet has one session that listens, by which it is woken (executor/kernel/store/postgres/bus.py).
_PROCESSES = """
SELECT count(*) FILTER (WHERE application_name = 'weft'),
       count(*) FILTER (WHERE application_name = 'weft-bus'), CAST(pg_notification_queue_usage() * 100 AS bigint)
  FROM pg_stat_activity WHERE datname = current_database()"""
# By address, because the server does not know processes: (address, sessions, sessions of buses).
_HOSTS = """
SELECT coalesce(host(client_addr), 'the machine of the database'), count(*) FILTER (WHERE application_name = 'weft'),
       count(*) FILTER (WHERE application_name = 'weft-bus')
  FROM pg_stat_activity WHERE datname = current_database() AND application_name IN ('weft', 'weft-bus')
 GROUP BY 1 ORDER BY 1"""
# A database of an older schema has none.
_HAS_PARTS = "SELECT EXISTS (SELECT 1 FROM pg_partitioned_table WHERE partrelid = to_regclass('batches'))"
_AGE = "SELECT age(datfrozenxid)::bigint FROM pg_database WHERE datname = current_database()"


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def conditions_of_server(db: Reading, here_ms: Callable[[], int] = wall_ms) -> Iterator[Condition]:
    """`here_ms`: the clock of this process, as its workers have it."""
    settings: dict[str, str] = dict(db.rows(_SETTINGS))
    yield _version(settings)
    if settings["server_encoding"] != "UTF8":
        what = f"the encoding is {settings['server_encoding']}: many texts cannot be stored"
        yield Condition("encoding", "error", what, "create a database with ENCODING 'UTF8' and move the data there")
    yield _disk(settings)
    yield _clock(db, here_ms)
    yield _connections(db, settings)
    yield _bus(db)
    yield from _transactions(db)
    yield _vacuum(db, settings)
    if db.rows(_HAS_PARTS) == [(True,)]:
        yield _parts(db)


def _version(settings: dict[str, str]) -> Condition:
    version = settings["server_version"]
    if int(settings["server_version_num"]) // 10_000 < VERSION_MIN:
        what = f"version {version}: weft needs {VERSION_MIN} or newer"
        return Condition("PostgreSQL", "error", what, "update PostgreSQL (pg_upgrade)")
    return Condition("PostgreSQL", "ok", f"version {version}")


def _disk(settings: dict[str, str]) -> Condition:
    off = [name for name in ("fsync", "full_page_writes") if settings[name] == "off"]
    if off:
        what = f"{' and '.join(off)} off: what was acknowledged may be lost, or the database, when the machine stops"
        return Condition("durability", "warning", what, f"set {' and '.join(off)} to on in postgresql.conf")
    if settings["data_checksums"] == "off":
        what = "pages have no checksums: damage by a disk is noticed late"
        return Condition("durability", "warning", what, "stop PostgreSQL, then run pg_checksums --enable")
    return Condition("durability", "ok", "commits are on disk, pages have checksums")


def _clock(db: Reading, here_ms: Callable[[], int]) -> Condition:
    before = here_ms()
    there = db.clock_ms()
    after = here_ms()
    ahead = before - there if there < before else min(0, after - there)  # the part that the round trip does not explain
    if abs(ahead) > CLOCK_DIFFERENCE_MAX_MS:
        word = "ahead of" if ahead > 0 else "behind"
        what = f"the clock here is {abs(ahead):,} ms {word} that of the database: times in logs and in runs differ"
        return Condition("clock", "warning", what, "synchronise both machines with NTP (timedatectl, chronyc tracking)")
    return Condition("clock", "ok", "agrees with the database")


def _connections(db: Reading, settings: dict[str, str]) -> Condition:
    ((used,),) = db.rows(_CONNECTIONS)
    room = int(settings["max_connections"]) - int(settings["superuser_reserved_connections"])
    if used > room * CONNECTIONS_SHARE_MAX:
        fix = "raise max_connections, or put pgbouncer in transaction mode between weft and PostgreSQL"
        return Condition("connections", "warning", f"{used} of {room} are in use", fix)
    return Condition("connections", "ok", f"{used} of {room} are in use")


def _bus(db: Reading) -> Condition:
    ((sessions, buses, percent),) = db.rows(_PROCESSES)
    if percent >= BUS_QUEUE_MAX_PERCENT:
        what = f"the queue of notifications is full to {percent} %: a session listens and does not read"
        return Condition("bus", "warning", what, "see idle in transaction; SELECT pg_terminate_backend(PID)")
    if sessions and not buses:
        what = "processes of weft are connected, but none listens: they notice each other's changes seconds later"
        return Condition("bus", "warning", what, "set WEFT_BUS_DB to an address that does not lead through a pool")
    hosts = db.rows(_HOSTS)
    silent = [host for host, sessions, buses in hosts if sessions and not buses]
    behind_pool = any(
        buses and not sessions for _, sessions, buses in hosts
    )  # then sessions have the address of the pool
    if buses and silent and not behind_pool:
        what = f"{buses} processes listen, but none at {', '.join(silent)}: what others change is noticed late there"
        return Condition("bus", "warning", what, "see why in the log there (`the bus does not work`), or restart it")
    return Condition("bus", "ok", f"{buses} processes listen")


def _transactions(db: Reading) -> Iterator[Condition]:
    ((hidden,),) = db.rows(_HIDDEN)
    unseen = f"; {hidden} sessions of other accounts cannot be seen" if hidden else ""
    see = "GRANT pg_read_all_stats TO the account of WEFT_DB"
    long = [_session(*row) for row in db.rows(_LONG, {"seconds": LONG_S})]
    long += [f"prepared transaction {gid}" for (gid,) in db.rows(_PREPARED, {"seconds": LONG_S})]
    long += [f"replication slot {name}, which no standby uses" for (name,) in db.rows(_SLOTS)]
    if long:
        yield Condition(
            "long transactions",
            "warning",
            f"old rows cannot be removed because of {', '.join(long)}{unseen}",
            "end each: SELECT pg_terminate_backend(PID), ROLLBACK PREPARED, or SELECT pg_drop_replication_slot(NAME)",
        )
    else:
        yield Condition("long transactions", "warning" if hidden else "ok", f"none{unseen}", see if hidden else "")
    idle = [_session(*row) for row in db.rows(_IDLE, {"seconds": IDLE_S})]
    if idle:
        yield Condition(
            "idle in transaction",
            "warning",
            f"they hold their locks and do nothing: {', '.join(idle)}",
            "SELECT pg_terminate_backend(PID); ALTER ROLE … SET idle_in_transaction_session_timeout = '10s'",
        )
    else:
        yield Condition("idle in transaction", "ok", "none")


def _session(pid: int, application: str, user: str, seconds: int) -> str:
    return f"process {pid} ({application or 'no name'}, {user}, {seconds} s)"


def _vacuum(db: Reading, settings: dict[str, str]) -> Condition:
    ((age,),) = db.rows(_AGE)
    if age > TRANSACTIONS_MAX:
        what = f"{age:,} transactions since the last vacuum of all tables; PostgreSQL stops at 2,000,000,000"
        return Condition("vacuum", "error", what, "end long transactions, then VACUUM (FREEZE)")
    found = db.rows(_BLOAT, {"dead": DEAD_ROWS_MIN, "share": DEAD_PER_LIVE_MAX})
    if found:
        tables = ", ".join(f"{name} ({dead:,} dead rows, {live:,} live; {last})" for name, live, dead, last in found)
        fix = "; ".join(f"VACUUM (ANALYZE) {name}" for name, *_ in found)
        what = f"tables have more dead rows than live ones: {tables}"
        return Condition("vacuum", "warning", what, f"end long transactions, then {fix}")
    if settings["autovacuum"] == "off":
        return Condition("vacuum", "warning", "autovacuum is off: tables only grow", "set autovacuum to on")
    return Condition("vacuum", "ok", "autovacuum keeps up")


def _parts(db: Reading) -> Condition:
    """Check the parts of the journals; see executor/kernel/store/postgres/days.py."""
    parts = [part_of(row) for row in db.rows(PARTS)]
    pending = [part.name for part in parts if part.pending]
    loose = [name for (name,) in db.rows(LOOSE)]
    if pending or loose:
        said = [f"{name} is detached when older transactions are over" for name in pending]
        said += [f"{name} was detached and not dropped" for name in loose]
        fix = "end long transactions; `weft serve` then drops it within an hour, or run `weft gc` now"
        return Condition("parts of journals", "warning", ", ".join(said), fix)
    if len(parts) > PARTS_MAX:
        what = f"{len(parts)} parts: opening a journal takes longer with each"
        return Condition(
            "parts of journals", "warning", what, "set WEFT_RETENTION_DAYS, or delete old runs (`weft gc`)"
        )
    retiring = "".join(f"; {part.name} is being dropped" for part in parts if part.retiring)
    return Condition("parts of journals", "ok", f"{len(parts)} parts{retiring}")
