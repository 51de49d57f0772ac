"""Keeping a database small, on request and by itself: deletes old data, in small transactions with pauses between them;
`engine.upkeep`.

Nothing is deleted by default: without an age or a number to keep, in `settings.retention` of the workflow's active
version or for all, runs are kept for ever. Cached results are the exception: each has its own time of expiry.

A deletion is written to the database every few seconds while its process lives, so that every process can show it, and
a killed one is recognised by its silence.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any, Final, Literal, TypeVar
from uuid import uuid4

import msgspec
import orjson
from msgspec import Struct, field

from executor.errors import Conflict, NotFound, StoreError, WeftError
from executor.kernel.process.acting import leave_act
from executor.kernel.process.clock import Clock
from executor.kernel.process.task import BackgroundTask
from executor.kernel.read.find import check_ended, find_run
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.upkeep import Orphans, Removable
from executor.kernel.store.topics.workflows import WorkflowRow
from executor.service.parts import Parts, Topic

log = logging.getLogger("weft.upkeep")

# A transaction deletes the events of so many runs as fit this, or of one run, however many it has. Another process's
# commit may wait for it: about 30 ms on a busy machine with two cores (0.2 s with 5,000 events).
EVENTS_PER_BATCH = 1_000
RUNS_PER_BATCH = 100
ROWS_PER_BATCH = 500
Row = TypeVar("Row", Removable, RunRow)
# Unreferenced data is deleted when it was not used for so long: a run may be about to begin with it.
UNUSED_MS = 3_600_000
DAY_MS = 86_400_000
ALERTS_KEPT_MS = 30 * DAY_MS  # since they were sent
# The approximate number of parts of journals: a part has the runs of a day, or of as many as make that.
PARTS = 30
DAYS_WITHOUT_AGE = 30  # days in a part, if no run is deleted by its age
BY_DAYS_MIN = 7  # days: of shorter ages a day more is a lot
PAUSE_S = 0.02  # between two transactions, for others that wait with their own


class Collected(Struct):
    """The numbers of deleted rows or, with `dry_run`, of rows that would be deleted."""

    runs: int = 0
    events: int = 0
    plans: int = 0
    documents: int = 0
    blobs: int = 0
    versions: int = 0
    cached: int = 0
    dry_run: bool = False

    def add(self, orphans: Orphans) -> None:
        self.plans += orphans.plans
        self.documents += orphans.documents
        self.blobs += orphans.blobs
        self.versions += orphans.versions


async def collect(
    store: Store,
    now_ms: int,
    older_than_ms: int | None,
    keep: int = 0,
    *,
    by_days: bool = False,
    total: Collected | None = None,
) -> Collected:
    """Delete runs that ended more than `older_than_ms` ago (None for no run), except the `keep` newest of each
    workflow, and runs of workflows with a rule of their own by that; then data that no run refers to, turns of agents
    of that age, old alerts, and expired cached results. `by_days`: where the database can drop the journals of whole
    days, runs wait for that. `total`: counts deletions as they are made."""
    total = Collected() if total is None else total
    every_days = days_of_part(older_than_ms)
    rules = await rules_of(store, older_than_ms, keep)
    before = dropped_before(rules, now_ms)
    retired = await store.retire_days(before, every_days)
    waiting_ms = 0
    if retired is not None:
        total.runs, total.events = retired.runs, retired.events
        if by_days and before is not None and older_than_ms is not None and older_than_ms >= BY_DAYS_MIN * DAY_MS:
            waiting_ms = (every_days + 1) * DAY_MS  # the time until the last runs of its part have ended
    for rule in rules:
        await _collect_runs(store, rule, now_ms - (0 if rule.workflow else waiting_ms), total)
    while (orphans := await store.delete_orphans(now_ms - UNUSED_MS, ROWS_PER_BATCH)).total:
        total.add(orphans)
        await asyncio.sleep(PAUSE_S)
    if older_than_ms is not None:
        await _until_none(lambda: store.delete_old_memory(now_ms - older_than_ms, ROWS_PER_BATCH))
    await _until_none(lambda: store.delete_old_alerts(now_ms - ALERTS_KEPT_MS, ROWS_PER_BATCH))
    total.cached += await _until_none(lambda: store.delete_expired_cache(now_ms, ROWS_PER_BATCH))
    return total


async def _until_none(delete: Callable[[], Awaitable[int]]) -> int:
    deleted = 0
    while some := await delete():
        deleted += some
        await asyncio.sleep(PAUSE_S)
    return deleted


async def _collect_runs(store: Store, rule: Rule, now_ms: int, total: Collected) -> None:
    while True:
        found = await store.find_removable(
            now_ms - rule.older_than_ms, rule.keep, RUNS_PER_BATCH, None, rule.workflow, rule.but_not
        )
        batch = _batch(found)
        deleted = set(await store.delete_runs([run.id for run in batch]))
        if not deleted:
            return
        total.runs += len(deleted)
        total.events += sum(run.seq for run in batch if run.id in deleted)
        await asyncio.sleep(PAUSE_S)


def days_of_part(older_than_ms: int | None) -> int:
    return DAYS_WITHOUT_AGE if older_than_ms is None else max(1, older_than_ms // DAY_MS // PARTS)


async def preview(
    store: Store, now_ms: int, older_than_ms: int | None, keep: int = 0, *, total: Collected | None = None
) -> Collected:
    """Count the runs that `collect` would delete, and the data that no run refers to as it is now. Changes nothing."""
    total = Collected() if total is None else total
    total.dry_run = True
    for rule in await rules_of(store, older_than_ms, keep):
        after: str | None = None
        while found := await store.find_removable(
            now_ms - rule.older_than_ms, rule.keep, RUNS_PER_BATCH, after, rule.workflow, rule.but_not
        ):
            after = found[-1].id
            for run in found:
                total.runs += 1
                total.events += run.seq
                await _add_children(store, run.id, total)
    total.add(await store.count_orphans(now_ms - UNUSED_MS))
    return total


async def _add_children(store: Store, run: str, total: Collected) -> None:
    """Count the children, which become removable when their parent is deleted. All have ended, like their parent."""
    for child in await store.list_children(run, 1_000_000):
        row = await store.get_run(child.id)
        if row is not None:
            total.runs += 1
            total.events += row.seq
            await _add_children(store, child.id, total)


def batches(found: list[Row]) -> Iterator[list[Row]]:
    while found:
        batch = _batch(found)
        yield batch
        found = found[len(batch) :]


def _batch(found: list[Row]) -> list[Row]:
    events = 0
    for n, run in enumerate(found):
        events += run.seq
        if n and events > EVENTS_PER_BATCH:
            return found[:n]
    return found


# --- rules ---


class Rule(Struct, frozen=True):
    """Delete runs that ended more than `older_than_ms` ago, but keep the `keep` newest: runs of `workflow`, or of all
    workflows except `but_not`."""

    older_than_ms: int
    keep: int = 0
    workflow: str | None = None
    but_not: tuple[str, ...] = ()


async def rules_of(store: Store, older_than_ms: int | None, keep: int) -> list[Rule]:
    """Return the rules, those of workflows first. If `older_than_ms` is None, other runs are kept."""
    own = [rule for row in await store.list_workflows() if (rule := _rule_of(row, older_than_ms)) is not None]
    if older_than_ms is None:
        return own
    return [*own, Rule(older_than_ms, keep, None, tuple(rule.workflow for rule in own if rule.workflow is not None))]


def dropped_before(rules: list[Rule], now_ms: int) -> int | None:
    """Return the time before which runs may be deleted by whole days, because no rule keeps any of them, or None."""
    if not rules or rules[-1].workflow is not None or any(rule.keep for rule in rules):
        return None
    return now_ms - max(rule.older_than_ms for rule in rules)


def _rule_of(row: WorkflowRow, older_than_ms: int | None) -> Rule | None:
    if b'"retention"' not in row.document:  # most; the others are read
        return None
    document: Any = orjson.loads(row.document)
    settings = document.get("settings") if isinstance(document, dict) else None
    wanted = settings.get("retention") if isinstance(settings, dict) else None
    if not isinstance(wanted, dict):
        return None
    days, keep = wanted.get("days"), wanted.get("keep") or 0
    if days is None:
        if not keep:
            return None
        return Rule(older_than_ms or 0, keep, row.name)
    return Rule(round(days * DAY_MS), keep, row.name)


# --- the task ---


FIRST_S = 60.0  # a server that starts has better things to do
EVERY_S = 3600.0
JOBS_KNOWN = 100  # jobs whose state a process can report
CHILDREN_MAX = 1_000_000  # per run: all of them


class Upkeep(Topic):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._task: BackgroundTask | None = None
        self._jobs: dict[str, tuple[GcJob, asyncio.Task[None]]] = {}  # the last of each kind in this process
        self._known: dict[str, GcJob] = {}  # jobs of this process, by id; the oldest first
        self._beginning = asyncio.Lock()

    def start(self, retention_ms: int | None, *, first_s: float = FIRST_S, every_s: float = EVERY_S) -> None:
        """Delete from now on runs that ended more than `retention_ms` ago (None for no run), expired cached results,
        and what a killed process has left of deleted documents."""
        assert self._task is None, "started twice"

        async def step() -> float:
            if self._parts.services.knowledge is not None:
                await self._parts.services.knowledge.sweep()
            try:
                deleted = await self.collect(retention_ms, by_days=True)
            except Conflict:  # another process does it
                return every_s
            if deleted.runs or deleted.cached:
                log.info("deleted %d runs (%d events), %d cached results", deleted.runs, deleted.events, deleted.cached)
            return every_s

        self._task = BackgroundTask("upkeep", step, failed="old runs could not be deleted", log=log)
        self._task.start(after_s=first_s)

    async def stop(self) -> None:
        """Stop. A transaction under way is completed; the rest is done the next time."""
        task, self._task = self._task, None
        if task is not None:
            await task.stop()
        tasks = [task for _, task in self._jobs.values()]
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def begin(self, older_than_ms: int | None, keep: int = 0, *, dry_run: bool = False) -> tuple[GcJob, bool]:
        """Begin the work of `collect`, or its dry run. Returns False with the job that is at work already. Raises
        Conflict."""
        async with self._beginning:
            running = await self._running(kind_of(dry_run))
            if running is not None:
                return running, False
            job = await self._begin(older_than_ms, keep, dry_run=dry_run, by_days=False)
            self._jobs[job.kind][1].add_done_callback(_log_failure)
            return job, True

    async def job(self, id: str) -> GcJob:
        """Raises NotFound: there is none of this id, or others came after it."""
        if id in self._known:
            return self._known[id]
        for dry_run in (False, True):
            found = await last_job(self._store, kind_of(dry_run), self._clock.now_ms())
            if found is not None and found.id == id:
                return found
        raise NotFound(f"there is no deletion {id}, or another one came after it", code="gc_not_found")

    async def collect(
        self, older_than_ms: int | None, keep: int = 0, *, dry_run: bool = False, by_days: bool = False
    ) -> Collected:
        """Do the same and wait for it. One process does it at a time. Raises Conflict: another one is at it."""
        kind = kind_of(dry_run)
        while True:
            async with self._beginning:
                own = self._jobs.get(kind)
                if own is None or own[1].done():
                    if await self._running(kind) is not None:
                        raise in_progress()
                    job = await self._begin(older_than_ms, keep, dry_run=dry_run, by_days=by_days)
                    own = self._jobs[kind]
                    break
            await asyncio.wait([own[1]])
        await own[1]
        return job.counts

    async def _running(self, kind: str) -> GcJob | None:
        own = self._jobs.get(kind)
        if own is not None and not own[1].done():
            if own[0].state == "running":
                return own[0]
            await asyncio.wait([own[1]])  # it has ended, but its end is not stored yet
        last = await last_job(self._store, kind, self._clock.now_ms())
        return last if last is not None and last.state == "running" else None

    async def _begin(self, older_than_ms: int | None, keep: int, *, dry_run: bool, by_days: bool) -> GcJob:
        now_ms = self._clock.now_ms()
        job = GcJob(dry_run, None if older_than_ms is None else older_than_ms / 1000, keep, now_ms, now_ms)
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            leave_act()
            try:
                async with nullcontext(True) if dry_run else self._store.deleting() as alone:
                    if not alone:
                        raise in_progress()
                    async with noted(self._store, self._clock, job):
                        begun.set_result(None)
                        if dry_run:
                            await preview(self._store, now_ms, older_than_ms, keep, total=job.counts)
                        else:
                            await collect(self._store, now_ms, older_than_ms, keep, by_days=by_days, total=job.counts)
            except Exception as error:
                if not begun.done():
                    begun.set_exception(error)
                    return
                raise
            finally:
                begun.cancel()

        task = asyncio.create_task(work(), name=kind_of(dry_run))
        await begun
        self._jobs[job.kind] = (job, task)
        self._known[job.id] = job
        if len(self._known) > JOBS_KNOWN:
            del self._known[next(iter(self._known))]
        if not dry_run:
            await self._store.record_act()
        return job

    async def delete_run(self, run: str) -> int:
        """Delete the run and the runs below it; returns their number. Raises NotFound, Conflict (it is open, kept, or
        needed by another)."""
        row = await find_run(self._store, run)
        check_ended(row)
        family = await self._family(row)
        for each in family:
            if each.status not in TERMINAL:
                message = f"run {each.id}, which was started by run {run}, has not ended yet (it is {each.status})"
                raise Conflict(message, code="run_in_use", hint="cancel it, or wait until it ends", child=each.id)
        deleted = 0
        for batch in batches(family):
            deleted += len(await self._store.delete_runs([each.id for each in batch]))
            if not deleted:
                raise await self._why_not(row)
        return deleted

    async def _family(self, row: RunRow) -> list[RunRow]:
        found = [row]
        for parent in found:
            for child in await self._store.list_children(parent.id, CHILDREN_MAX):
                below = await self._store.get_run(child.id)
                if below is not None:
                    found.append(below)
        return found

    async def _why_not(self, row: RunRow) -> WeftError:
        await find_run(self._store, row.id)  # NotFound: it has gone meanwhile
        if await self._store.upkeep_note(f"kept:{row.id}") is not None:
            hint = "keep it no longer first: `weft keep RUN --drop`"
            return Conflict(f"run {row.id} is kept as a test", code="run_kept", hint=hint)
        if row.parent_run_id is not None and await self._store.get_run(row.parent_run_id) is not None:
            return Conflict(
                f"run {row.id} was started by run {row.parent_run_id}",
                code="run_has_parent",
                hint=f"delete run {row.parent_run_id}; the runs it started are deleted with it",
                parent=row.parent_run_id,
            )
        return Conflict(
            f"an open run continues from run {row.id}",
            code="run_in_use",
            hint="wait until that run ends, or cancel it",
        )


def in_progress() -> Conflict:
    return Conflict(
        "another process is deleting old runs of this database", code="gc_in_progress", hint="try again when it is done"
    )


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("old runs could not be deleted: %s", error)


# --- jobs ---


NOTE_EVERY_S: Final = 2.0
SILENT_MS: Final = 30_000  # longer than a group of changes takes, which a note may have to wait for

State = Literal["running", "done", "failed", "interrupted"]


class GcJob(Struct):
    """A deletion of ended runs. `counts`: so far, or in all; with `dry_run`, what would be deleted. `older_than_s` is
    None for no run, except those of workflows with a rule of their own. `state` interrupted: its process has ended; its
    deletions stay, and the same request does the rest."""

    dry_run: bool
    older_than_s: float | None
    keep: int
    began_at_ms: int
    updated_at_ms: int
    id: str = field(default_factory=lambda: uuid4().hex)
    state: State = "running"
    counts: Collected = field(default_factory=Collected)
    error: str | None = None

    @property
    def kind(self) -> str:
        return kind_of(self.dry_run)


def kind_of(dry_run: bool) -> str:
    return "gc-preview" if dry_run else "gc"


async def last_job(store: Store, kind: str, now_ms: int) -> GcJob | None:
    data = await store.upkeep_note(kind)
    if data is None:
        return None
    job = msgspec.json.decode(data, type=GcJob)
    if job.state == "running" and job.updated_at_ms < now_ms - SILENT_MS:
        job.state = "interrupted"
    return job


async def note(store: Store, clock: Clock, job: GcJob) -> None:
    job.updated_at_ms = clock.now_ms()
    await store.put_upkeep_note(job.kind, msgspec.json.encode(job), job.updated_at_ms)


@asynccontextmanager
async def noted(store: Store, clock: Clock, job: GcJob) -> AsyncIterator[None]:
    """Keep the job in the database during the work: from its beginning, and with its end."""
    await note(store, clock, job)
    notes = asyncio.create_task(_keep_noting(store, clock, job), name="notes of upkeep")
    try:
        yield
    except BaseException as error:
        job.state = "failed" if isinstance(error, Exception) else "interrupted"
        job.error = str(error) if isinstance(error, WeftError) else None
        raise
    else:
        job.state = "done"
    finally:
        notes.cancel()
        await asyncio.gather(notes, return_exceptions=True)
        try:
            await note(store, clock, job)
        except StoreError as error:
            log.error("the end of a deletion could not be recorded: %s", error)


async def _keep_noting(store: Store, clock: Clock, job: GcJob) -> None:
    while True:
        await asyncio.sleep(NOTE_EVERY_S)
        try:
            await note(store, clock, job)
        except StoreError as error:
            log.warning("the progress of a deletion could not be recorded: %s", error)
