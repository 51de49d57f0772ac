"""`weft doctor`, `gc` and `cache`: the upkeep of a database. `doctor` reads the database itself, beside a running
server or without one; the others ask the server."""

from __future__ import annotations

import errno
import os
import re
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from server.cli.common import (
    ANY_DATABASE,
    FAILED,
    OK,
    Database,
    Refused,
    call,
    counted,
    database_of,
    name_of,
    refused_by,
    run_async,
)
from server.cli.render import plain
from server.reach import SettingsError

if TYPE_CHECKING:
    from executor.kernel.store.topics.store import Store
    from executor.service.upkeep.checked import Examination, Progress
    from executor.service.upkeep.doctor import Report
    from executor.service.upkeep.findings import Evidence
    from executor.service.upkeep.gc import Collected
    from server.client import AsyncClient
    from server.client.answers import GcJob

SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.ASCII)
PROGRESS_S = 5.0
LOOK_S = 0.25
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
T = TypeVar("T")


def span(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """`30d`, `12h`, `90s`: seconds."""
    if value is None:
        return None
    match = SPAN.fullmatch(value.strip())
    if match is None:
        raise click.BadParameter(f"{value!r} is not a duration: use 30d, 12h, 45m or 90s", ctx, param)
    return float(match[1]) * SECONDS[match[2]]


@click.command()
@ANY_DATABASE
@click.option("--run", "run_id", help="Check this run only.")
@click.option("--full", is_flag=True, help="Check all runs, also those that were right before.")
@click.option("--json", "as_json", is_flag=True, help="The whole report as JSON.")
def doctor(db: Path | str | None, run_id: str | None, full: bool, as_json: bool) -> int:
    """Check a database: does it hold what weft promises?

    Works beside a running server, and looks at one run at a time. It remembers up to where all was right, and checks
    what is new, open or was wrong, and 1,000 of the other runs each time; with --full all. Secrets that are set in the
    environment here (WEFT_ENV_…, WEFT_SECRET_…) are looked for in the file. Exit code 1 when a promise is broken.
    """
    import msgspec

    from executor.errors import StoreError
    from executor.service.upkeep.checked import Examination
    from executor.service.upkeep.doctor import examine
    from executor.service.upkeep.findings import Evidence
    from executor.service.upkeep.sql import open_reading
    from server.shipped import installed_version

    database = database_of(db)
    evidence = Evidence(secrets=secrets_of(database), keys=keys_of(database))
    try:
        with closing(open_reading(database)) as reading:
            if run_id is not None:
                report = examine(reading, reading.clock_ms(), run=run_id, evidence=evidence)
            else:
                shown = _Shown()
                examination = Examination(reading, database, installed_version(), full=full, report=shown)
                report = _examined(examination, evidence)
    except sqlite3.Error as error:
        raise Refused(f"{database} cannot be read: {error}.", "Restore a backup: weft restore FILE") from None
    except StoreError as error:
        raise refused_by(error) from None
    except LookupError:
        raise Refused(f"There is no run {run_id!r} in {name_of(database)}.") from None
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        for line in _report_lines(report, "the file" if isinstance(database, Path) else "the database"):
            click.echo(line)
    return OK if report.healthy else FAILED


class _Shown:
    """Writes how far the doctor is, every few seconds."""

    def __init__(self) -> None:
        self._at_s = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() > self._at_s + PROGRESS_S:
            self._at_s = time.monotonic()
            click.echo(_how_far(progress), err=True)


def _how_far(progress: Progress) -> str:
    found = f", {counted(progress.findings, 'finding')}" if progress.findings else ""
    return f"{progress.done:,} of about {progress.total:,} runs checked{found}"


def _examined(examination: Examination, evidence: Evidence) -> Report:
    """Run the examination. Ctrl-C and SIGTERM (of a job whose time is over) end it with a line about its progress."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    if is_main := threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGTERM, end)
    try:
        report = examination.run(evidence)
    except KeyboardInterrupt:
        examination.keep()
        progress = examination.progress
        where = f", up to run {progress.last}" if progress.last else ""
        click.echo(f"Interrupted: {_how_far(progress)}{where}.", err=True)
        raise click.Abort from None
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)
    if examination.lost:
        click.echo(f"Not remembered, all runs are checked again the next time: {examination.lost}", err=True)
    return report


@click.command()
@click.option("--older-than", "older_than_s", callback=span, metavar="SPAN", help="Minimum age, such as 30d.")
@click.option("--keep", type=click.IntRange(0), default=0, metavar="N", help="Keep the N newest of each workflow.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option("--vacuum", is_flag=True, help="Return free space to the disk. Only with --db.")
@click.option("--snapshots", is_flag=True, help="Also delete the snapshots of open runs. Only with --db.")
@click.option("--json", "as_json", is_flag=True)
@click.option("--db", type=Database(), help="Database, without a running server: a file or a PostgreSQL address.")
@click.pass_obj
def gc(
    url: str,
    older_than_s: float | None,
    keep: int,
    dry_run: bool,
    vacuum: bool,
    snapshots: bool,
    as_json: bool,
    db: Path | str | None,
) -> None:
    """Delete old runs, and data that only they used.

    The server does it, in small pieces beside its work, and continues if this command is interrupted; running the
    command again shows its progress. With --db this command does it itself, on a file that no server has open, or on a
    PostgreSQL database beside its servers. Without --older-than and --keep no run goes, only what no run refers to.
    """
    import json

    if vacuum and db is None:
        raise Refused("--vacuum needs --db.", "Stop the server and name the file: --db PATH")
    if snapshots and db is None:
        raise Refused("--snapshots needs --db.", "Stop the server and name the file: --db PATH")
    older_than_ms = None if older_than_s is None else round(older_than_s * 1000)
    if older_than_ms is None and keep:
        older_than_ms = 0
    if db is not None:
        deleted: Mapping[str, Any] = _gc_database(database_of(db), older_than_ms, keep, dry_run, vacuum, snapshots)
    else:
        deleted = _gc_server(url, older_than_s, keep, dry_run)
    if as_json:
        click.echo(json.dumps(deleted, indent=2))
        return
    verb = "would be deleted" if dry_run else "deleted"
    click.echo(f"{counted(deleted['runs'], 'run')} with {counted(deleted['events'], 'event')} {verb}.")
    rest = [
        counted(deleted[name], noun)
        for name, noun in (
            ("plans", "plan"),
            ("documents", "document"),
            ("blobs", "large output"),
            ("versions", "version"),
            ("cached", "cached result"),
        )
        if deleted[name]
    ]
    if rest:
        click.echo(f"{', '.join(rest)} that nothing uses {verb}.")
    if deleted.get("snapshots"):
        click.echo(f"{counted(deleted['snapshots'], 'snapshot')} deleted.")


def _gc_server(url: str, older_than_s: float | None, keep: int, dry_run: bool) -> Mapping[str, Any]:
    """Begin it and follow it to its end. Counts."""
    accepted = call(url, lambda client: client.gc(older_than_s=older_than_s, keep=keep, dry_run=dry_run))
    job = accepted["job"]
    if not accepted["created"]:
        age = "of no age" if job["older_than_s"] is None else f"that ended {job['older_than_s']:,.0f} s ago or more"
        what = f"runs {age}, but for the newest {job['keep']}" if job["keep"] else f"runs {age}"
        click.echo(f"A deletion is at work already and is shown here: {what}.", err=True)

    async def follow(client: AsyncClient) -> GcJob:
        found, shown = job, -1.0
        while found["state"] == "running":
            if time.monotonic() > shown + PROGRESS_S:
                shown = _show_progress(found["counts"], dry_run)
            await asyncio.sleep(LOOK_S)
            found = await client.gc_job(job["id"])
        return found

    import asyncio

    try:
        job = call(url, follow)
    except click.Abort:
        click.echo("The server continues. `weft gc` shows how far it is.", err=True)
        raise
    if job["state"] == "done":
        return job["counts"]
    _show_progress(job["counts"], dry_run)
    if job["state"] == "interrupted":
        raise Refused("The server ended before it was done; nothing is half deleted.", "Run the command again.", FAILED)
    raise Refused(f"It failed: {job['error'] or 'see the log of the server'}.", "Run the command again.", FAILED)


def _show_progress(counts: Mapping[str, Any], dry_run: bool) -> float:
    """Returns the time."""
    if counts["runs"]:
        verb = "would be deleted" if dry_run else "deleted"
        click.echo(f"{counts['runs']:,} runs with {counts['events']:,} events {verb} so far", err=True)
    return time.monotonic()


def secrets_of(database: Path | str) -> list[str]:
    """Return the values of the environment that must not be recorded. Short values are left out: they occur in ordinary
    text."""
    from executor.kernel.values.redact import LENGTH_MIN
    from server.reach import read, token_path
    from server.settings import load_settings

    try:
        settings = load_settings()
        file = token_path(str(database)) if isinstance(database, Path) else None
        own = [read(file)] if file is not None and os.access(file, os.R_OK) else []
    except SettingsError as error:
        click.echo(f"Not searching for secrets: {error}", err=True)
        return []
    return [value for value in (*settings.unloggable, *own) if len(value) >= LENGTH_MIN]


def keys_of(database: Path | str) -> list[str]:
    """Return the ids of the keys of a process with these settings, the present one first; empty if it would make a new
    one."""
    from executor.kernel.run.links import key_id
    from server.keys import known_keys
    from server.reach import SettingsError
    from server.settings import load_settings

    try:
        return [key_id(key) for key in known_keys(load_settings(os.environ), database)]
    except SettingsError:
        return []


def _gc_database(
    database: Path | str, older_than_ms: int | None, keep: int, dry_run: bool, vacuum: bool, snapshots: bool
) -> Mapping[str, Any]:
    import msgspec

    from executor.service.upkeep import backup as copies

    if isinstance(database, Path):
        path = database
        if on_file(lambda: copies.in_use(path)):
            raise Refused(f"A process has {path} open.", "Omit --db to let the server do it, or stop the server.")
    elif vacuum:
        raise Refused("--vacuum is for SQLite files.", "PostgreSQL does it by itself (autovacuum); see `weft doctor`.")
    elif snapshots and _has_workers(database):
        raise Refused("A worker has runs of this database.", "Stop each `weft serve` and `weft worker` first.")
    deleted, count = on_file(lambda: run_async(_collect(database, older_than_ms, keep, dry_run, snapshots)))
    if vacuum and not dry_run:
        on_file(lambda: copies.vacuum(path))
    found: dict[str, Any] = msgspec.to_builtins(deleted)
    if snapshots:
        found["snapshots"] = count
    return found


def _has_workers(address: str) -> bool:
    """Return whether a worker has an unexpired lease."""
    from executor.service.upkeep.sql import open_reading

    def ask() -> bool:
        with closing(open_reading(address)) as db:
            return bool(db.rows("SELECT 1 FROM workers WHERE until_ms > :now LIMIT 1", {"now": db.clock_ms()}))

    return on_file(ask)


def _store_of(database: Path | str) -> Store:
    from executor.kernel.process.extras import needs_psycopg
    from executor.kernel.store.sqlite.store import SQLiteStore

    if isinstance(database, Path):
        return SQLiteStore(database)
    with needs_psycopg():
        from executor.kernel.store.postgres.store import PostgresStore
    return PostgresStore(database)


async def _collect(
    database: Path | str, older_than_ms: int | None, keep: int, dry_run: bool, snapshots: bool
) -> tuple[Collected, int]:
    """The second value is of snapshots, which `collect` leaves."""
    from executor.kernel.process.clock import SystemClock
    from executor.service.upkeep.gc import GcJob, collect, in_progress, noted, preview

    store = _store_of(database)
    await store.open()
    try:
        async with store.deleting() as alone:
            if not alone and not dry_run:
                raise in_progress()
            clock = SystemClock()
            now_ms = clock.now_ms()
            if dry_run:
                return await preview(store, now_ms, older_than_ms, keep), 0
            job = GcJob(False, None if older_than_ms is None else older_than_ms / 1000, keep, now_ms, now_ms)
            async with noted(store, clock, job):
                await collect(store, now_ms, older_than_ms, keep, total=job.counts)
        return job.counts, await store.delete_snapshots() if snapshots else 0
    finally:
        await store.close()


def on_file(work: Callable[[], T]) -> T:
    """Call `work`; errors of the file become one line and the next step."""
    from executor.errors import WeftError

    try:
        return work()
    except WeftError as error:
        raise refused_by(error) from None
    except OSError as error:
        if error.filename is None or error.errno not in (errno.EACCES, errno.ENOENT, errno.ENOTDIR, errno.EROFS):
            raise Refused(f"Failed: {error}.") from None
        raise Refused(
            f"{Path(error.filename).parent} cannot be written to: {error.strerror}.",
            "Name a file in a folder that exists and that you may write to.",
        ) from None
    except sqlite3.Error as error:
        raise Refused(f"Failed: {error}.") from None


def _report_lines(report: Report, whole: str) -> Iterator[str]:
    runs = ", ".join(f"{count} {status}" for status, count in sorted(report.runs.items())) or "no runs"
    yield f"{report.database}: {runs}; {report.events} events"
    for promise in report.promises:
        state = "—" if promise.findings is None else "ok" if not promise.findings else str(promise.findings)
        yield f"{_coloured(state)} {promise.id:<4} {promise.title}"
    for condition in report.conditions:
        yield f"{_coloured(condition.level)} {condition.name}: {plain(condition.what)}"
        if condition.fix:
            yield f"{'':9}{plain(condition.fix)}"
    for finding in report.findings:
        place = " ".join(filter(None, (finding.run, finding.node)))
        number = click.style(finding.invariant, fg="red", bold=True)
        yield f"{number} {plain(place) or whole}: {plain(finding.what)}"
        yield f"    {plain(finding.fix)}"
    hidden = sum(promise.findings or 0 for promise in report.promises) - len(report.findings)
    if hidden:
        yield f"… and {hidden} more"


def _coloured(state: str) -> str:
    colour = {"ok": "green", "—": "bright_black", "warning": "yellow"}.get(state, "red")
    return click.style(f"{state:<8}", fg=colour)


@click.group()
def cache() -> None:
    """Manage cached results of blocks."""


@cache.command()
@click.option("--workflow", help="Only results of this workflow.")
@click.pass_obj
def clear(url: str, workflow: str | None) -> None:
    """Delete cached results, so that the blocks run again next time."""
    cleared = call(url, lambda client: client.clear_cache(workflow))["cleared"]
    click.echo(f"{counted(cleared, 'result')} deleted.")
