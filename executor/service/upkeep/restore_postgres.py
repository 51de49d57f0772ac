"""A PostgreSQL database from a dump of `pg_dump`: made beside the present one, checked, and then given its name.

`pg_restore --clean` into a database of weft fails: keys of the parts of `batches` cannot be dropped one by one. A new
database needs no cleaning, and the present one is untouched until two renames in one transaction.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, cast

import psycopg
from msgspec import Struct
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from executor.errors import BackupUnusable, Conflict, DatabaseUnavailable
from executor.kernel.store.postgres.connection import check_address
from executor.kernel.store.postgres.limited import reachable
from executor.kernel.store.postgres.reading import open_reading
from executor.kernel.store.statements import Row
from executor.service.upkeep.doctor import Report, examine
from executor.service.upkeep.findings import Evidence

NAME: Final = "weft restore"
NAME_MAX: Final = 63  # bytes of an identifier
PLACES: Final = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")
_RIGHTS: Final = "SELECT rolcreatedb OR rolsuper, rolname FROM pg_roles WHERE rolname = current_user"
_DATABASE: Final = """
SELECT r.rolname, pg_has_role(current_user, d.datdba, 'MEMBER'), pg_encoding_to_char(d.encoding), d.datcollate,
       d.datctype FROM pg_database AS d JOIN pg_roles AS r ON r.oid = d.datdba WHERE d.datname = %s"""
_SESSIONS: Final = """
SELECT coalesce(nullif(application_name, ''), 'unnamed'), usename, count(*) FROM pg_stat_activity
 WHERE datname = %s AND pid <> pg_backend_pid() AND backend_type IS DISTINCT FROM 'autovacuum worker'
 GROUP BY 1, 2 ORDER BY 1, 2"""
_GRANTS: Final = """
SELECT r.rolname, a.privilege_type FROM pg_database AS d, aclexplode(d.datacl) AS a
  LEFT JOIN pg_roles AS r ON r.oid = a.grantee WHERE d.datname = %s"""
_SETTINGS: Final = """
SELECT unnest(s.setconfig) FROM pg_db_role_setting AS s JOIN pg_database AS d ON d.oid = s.setdatabase
 WHERE d.datname = %s AND s.setrole = 0"""
_FREE_LEASES: Final = """
UPDATE heads SET owner = NULL WHERE owner IS NOT NULL;
DELETE FROM workers;
DELETE FROM writers"""
_RUNS: Final = """
SELECT count(*), count(*) FILTER (WHERE status NOT IN ('succeeded', 'failed', 'cancelled')) FROM runs"""


class Restored(Struct, frozen=True):
    """`previous`: the name that the database from before has now."""

    database: str
    runs: int
    open_runs: int
    previous: str | None
    report: Report


class _Present(Struct, frozen=True):
    owner: str
    is_ours: bool
    encoding: str
    collate: str
    ctype: str


def restore(
    dump: Path, address: str, *, replace: bool = False, evidence: Evidence, progress: Callable[[str], None]
) -> Restored:
    """Make the dump the database of `address`. Raises Conflict (there is a database and it is not to be replaced, or it
    is in use, or a right is missing: the hint has the commands for an administrator), BackupUnusable,
    DatabaseUnavailable."""
    check_address("WEFT_DB or --db", address)
    names = _Names(str(conninfo_to_dict(address).get("dbname") or conninfo_to_dict(address).get("user") or ""), dump)
    with closing(_connect(address, "template1" if names.database == "postgres" else "postgres")) as db:
        present = _present(db, names, replace)
        _refuse_without_rights(db, names, present)
        program = _program(db.info.server_version // 10_000)
        _run([program, "--list", str(dump)], dump)
        with _dropped_on_failure(db, names.new):
            _create(db, names, present)
            progress(f"Restoring {dump} into {names.new}, with {program}")
            _fill(program, dump, address, names.new, present)
            progress(f"Checking {names.new}")
            runs, open_runs = _prepare(address, names.new)
            with closing(open_reading(make_conninfo(address, dbname=names.new))) as reading:
                report = examine(reading, reading.clock_ms(), evidence=evidence)
            _refuse_broken(report, names)
        _swap(db, names, present)
    return Restored(names.database, runs, open_runs, names.aside if present else None, report)


class _Names:
    def __init__(self, database: str, dump: Path) -> None:
        moment = time.strftime("%Y%m%dt%H%M%S")
        self.database = database
        self.dump = dump
        self.new = f"{_cut(database, 14)}_restored_{secrets.token_hex(2)}"
        self.aside = f"{_cut(database, 23)}_before_{moment}"

    def renames(self) -> tuple[sql.Composed, sql.Composed]:
        return _rename(self.database, self.aside), _rename(self.new, self.database)

    def by_hand(self, owner: str, *, exists: bool) -> str:
        """Return the same as commands for a role that may do it."""
        new, role, dump = (shlex.quote(text) for text in (self.new, owner, str(self.dump)))
        return "\n  ".join(
            (
                f"createdb --template=template0 --encoding=UTF8 --owner={role} {new}",
                f"pg_restore --single-transaction --no-owner --role={role} --dbname={new} {dump}",
                f"psql --dbname={new} -c ANALYZE",
                self.renames_by_hand(exists=exists),
            )
        )

    def renames_by_hand(self, *, exists: bool = True) -> str:
        statements = self.renames() if exists else self.renames()[1:]
        commands = " ".join(f"-c {shlex.quote(each.as_string(None))}" for each in statements)
        return f"psql --single-transaction --dbname=postgres {commands}"


def _cut(name: str, room: int) -> str:
    return name.encode()[: NAME_MAX - room].decode(errors="ignore")


def _rename(before: str, after: str) -> sql.Composed:
    return sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(before), sql.Identifier(after))


def _connect(address: str, database: str) -> psycopg.Connection[Row]:
    with _translated(f"the database {database!r} of that server cannot be opened, which is needed to rename another"):
        return psycopg.connect(
            reachable(make_conninfo(address, dbname=database)),
            autocommit=True,
            prepare_threshold=None,
            application_name=NAME,
        )


def _present(db: psycopg.Connection[Row], names: _Names, replace: bool) -> _Present | None:
    """Return the present database, or None if there is none of this name, as on a new server. Raises Conflict."""
    found = db.execute(_DATABASE, (names.database,)).fetchone()
    if found is None:
        return None
    if not replace:
        raise Conflict(
            f"the database {names.database} already exists",
            code="database_exists",
            hint="use --force to replace it; the present one is kept under another name",
        )
    sessions = db.execute(_SESSIONS, (names.database,)).fetchall()
    if sessions:
        raise _used(names, sessions)
    return _Present(*found)


def _used(names: _Names, sessions: list[Row], hint: str = "") -> Conflict:
    listed = ", ".join(f"{name} ({count} of role {role})" for name, role, count in sessions)
    return Conflict(
        f"the database {names.database} is in use: {listed}",
        code="database_in_use",
        hint=hint
        or "stop each `weft serve` and `weft worker`, and end other sessions (a pool, psql, a report), then try again",
    )


def _refuse_without_rights(db: psycopg.Connection[Row], names: _Names, present: _Present | None) -> None:
    ((may_create, role),) = db.execute(_RIGHTS).fetchall()
    owner = present.owner if present else role
    if may_create and (present is None or present.is_ours):
        return
    lacks = "CREATEDB" if not may_create else f"to be a member of {owner}, the owner of {names.database}"
    grant = f"ALTER ROLE {role} CREATEDB" if not may_create else f"GRANT {owner} TO {role}"
    raise Conflict(
        f"the role {role} lacks the right that this needs: {lacks}",
        code="missing_right",
        hint=f"let an administrator run `{grant}`, name one in --db, or let one run these commands, with all servers "
        f"and workers stopped:\n  {names.by_hand(owner, exists=present is not None)}",
    )


def _create(db: psycopg.Connection[Row], names: _Names, present: _Present | None) -> None:
    new = sql.Identifier(names.new)
    with _translated(f"the database {names.new} cannot be created"):
        if present is None:
            db.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(new))
            return
        db.execute(
            sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE template0 ENCODING {} LC_COLLATE {} LC_CTYPE {}").format(
                new, sql.Identifier(present.owner), present.encoding, present.collate, present.ctype
            )
        )
        grants = db.execute(_GRANTS, (names.database,)).fetchall()
        if grants:
            db.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(new))
        for role, right in grants:
            to = sql.SQL("PUBLIC") if role is None else sql.Identifier(role)
            db.execute(sql.SQL("GRANT {} ON DATABASE {} TO {}").format(sql.SQL(cast(Any, right)), new, to))
        for (setting,) in db.execute(_SETTINGS, (names.database,)).fetchall():
            name, _, value = setting.partition("=")
            with db.transaction():  # FROM CURRENT writes lists as they have to be quoted
                db.execute("SELECT set_config(%s, %s, true)", (name, value))
                db.execute(sql.SQL("ALTER DATABASE {} SET {} FROM CURRENT").format(new, sql.SQL(cast(Any, name))))


def _fill(program: str, dump: Path, address: str, new: str, present: _Present | None) -> None:
    parts = conninfo_to_dict(address)
    password = parts.pop("password", None)  # not in the list of processes
    target = make_conninfo("", **{**parts, "dbname": new})
    role = [f"--role={present.owner}"] if present else []
    _run(
        [program, "--exit-on-error", "--single-transaction", "--no-owner", *role, f"--dbname={target}", str(dump)],
        dump,
        {"PGPASSWORD": str(password)} if password is not None else {},
    )


def _run(command: list[str], dump: Path, environ: dict[str, str] | None = None) -> None:
    ran = subprocess.run(  # noqa: S603 - pg_restore
        command, check=False, capture_output=True, text=True, errors="replace", env={**os.environ, **(environ or {})}
    )
    if ran.returncode:
        lines = [line for line in ran.stderr.splitlines() if "error:" in line] or ran.stderr.splitlines() or ["failed"]
        raise BackupUnusable(
            f"{dump} cannot be restored: {lines[0].strip()}",
            hint="It must be of `pg_dump --format=custom`, and roles that it grants rights to must exist. The present "
            "database was not changed.",
        )


def _prepare(address: str, new: str) -> tuple[int, int]:
    """Make statistics, which a dump does not have, and free the leases of missing workers. Returns numbers of runs."""
    with closing(_connect(address, new)) as db, _translated(f"{new} is no database of weft"):
        db.execute("SET statement_timeout = 0")
        db.execute(_FREE_LEASES)
        db.execute("ANALYZE")
        ((runs, open_runs),) = db.execute(_RUNS).fetchall()
    return runs, open_runs


def _refuse_broken(report: Report, names: _Names) -> None:
    schema = next(each for each in report.conditions if each.name == "schema")
    if schema.level == "error":
        raise BackupUnusable(f"{names.dump}: {schema.what}", hint=schema.fix)
    broken = [f"{promise.id} {promise.title}" for promise in report.promises if promise.findings]
    if broken:
        what = report.findings[0].what
        raise BackupUnusable(
            f"{names.dump} holds a database with broken promises ({'; '.join(broken)}), for example: {what}",
            hint="use another dump; the present database was not changed",
        )


def _swap(db: psycopg.Connection[Row], names: _Names, present: _Present | None) -> None:
    kept = f"the restored database is {names.new}: end these sessions, then run\n  {names.renames_by_hand()}"
    before, after = names.renames()
    try:
        with db.transaction():
            if present is not None:
                db.execute(before)
            db.execute(after)
    except psycopg.errors.ObjectInUse:
        raise _used(names, db.execute(_SESSIONS, (names.database,)).fetchall(), kept) from None
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"{names.new} could not be renamed: {str(error).strip()}", hint=kept) from error


@contextmanager
def _dropped_on_failure(db: psycopg.Connection[Row], new: str) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with _translated(f"{new} could not be deleted"):
            db.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(new)))
        raise


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise DatabaseUnavailable(
            f"{what}: {str(error).strip()}", hint="Behind a pool, name the server itself: --db ADDRESS"
        ) from error


def _program(major: int) -> str:
    """Return the pg_restore of this version of PostgreSQL: a newer one sends settings that an older server does not
    know. Raises DatabaseUnavailable."""
    folders = [Path(folder) for folder in os.get_exec_path()]
    for pattern in PLACES:
        folders += sorted(Path("/").glob(pattern[1:]), reverse=True)
    found: dict[int, str] = {}
    for folder in folders:
        path = shutil.which("pg_restore", path=str(folder))
        version = _version(path) if path is not None else None
        if path is not None and version is not None:
            found.setdefault(version, path)
    if major not in found:
        others = ", ".join(f"{version} ({path})" for version, path in sorted(found.items())) or "none"
        raise DatabaseUnavailable(
            f"the server is PostgreSQL {major}, and there is no pg_restore of that version; found: {others}",
            hint=f"Install the client programs of PostgreSQL {major}, or put the folder that has them into PATH.",
        )
    return found[major]


def _version(program: str) -> int | None:
    ran = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603 - pg_restore
    found = re.search(r"\(PostgreSQL\) (\d+)", ran.stdout)
    return int(found[1]) if found else None
