"""Keeping the engine's own database small, now and by itself; `engine.upkeep`.

A deletion is written to the database every few seconds while its process lives, so that every process can show it, and
a killed one is recognised by its silence.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Final, Literal
from uuid import uuid4

import msgspec
from msgspec import Struct, field

from executor.errors import Conflict, NotFound, StoreError, WeftError
from executor.kernel.process.clock import Clock
from executor.kernel.process.task import BackgroundTask
from executor.kernel.read.find import find_run
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.store import Store
from executor.service.parts import Parts
from executor.service.upkeep.gc import Collected, batches, collect, preview

log = logging.getLogger("weft.upkeep")

FIRST_S = 60.0  # a server that starts has better things to do
EVERY_S = 3600.0
JOBS_KNOWN = 100  # jobs whose state a process can report
CHILDREN_MAX = 1_000_000  # per run: all of them


class Upkeep:
    """Deletes old runs and expired results, on request and in the background; `engine.upkeep`."""

    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._clock = parts.clock
        self._task: BackgroundTask | None = None
        self._jobs: dict[str, tuple[GcJob, asyncio.Task[None]]] = {}  # the last of each kind in this process
        self._known: dict[str, GcJob] = {}  # jobs of this process, by id; the oldest first
        self._beginning = asyncio.Lock()

    def start(self, retention_ms: int | None, *, first_s: float = FIRST_S, every_s: float = EVERY_S) -> None:
        """Delete regularly from now on: runs that ended more than `retention_ms` ago (None for no run) and cached
        results that have expired."""
        assert self._task is None, "started twice"

        async def step() -> float:
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
        """Begin the work of `service.upkeep.gc`, or its dry run, without waiting for its end. Returns False with the
        job that is at work already. Raises Conflict if another process is at it without a job."""
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
        """See `executor.service.upkeep.gc`; one at a time, of all processes. Raises Conflict: another one is at it."""
        kind = kind_of(dry_run)
        while True:
            async with self._beginning:
                own = self._jobs.get(kind)
                if own is None or own[1].done():
                    if await self._running(kind) is not None:
                        raise _in_progress()
                    job = await self._begin(older_than_ms, keep, dry_run=dry_run, by_days=by_days)
                    own = self._jobs[kind]
                    break
            await asyncio.wait([own[1]])
        await own[1]
        return job.counts

    async def _running(self, kind: str) -> GcJob | None:
        own = self._jobs.get(kind)
        if own is not None and not own[1].done():
            return own[0]
        last = await last_job(self._store, kind, self._clock.now_ms())
        return last if last is not None and last.state == "running" else None

    async def _begin(self, older_than_ms: int | None, keep: int, *, dry_run: bool, by_days: bool) -> GcJob:
        now_ms = self._clock.now_ms()
        job = GcJob(dry_run, None if older_than_ms is None else older_than_ms / 1000, keep, now_ms, now_ms)
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            try:
                async with nullcontext(True) if dry_run else self._store.deleting() as alone:
                    if not alone:
                        raise _in_progress()
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
        """Delete the run and the runs below it; returns their number. Raises NotFound, Conflict if it has not ended,
        another run has started it, or an open run needs it."""
        row = await find_run(self._store, run)
        if row.status not in TERMINAL:
            raise Conflict(
                f"run {run} has not ended yet (it is {row.status})",
                code="run_not_ended",
                hint="cancel it, or wait until it ends",
            )
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


def _in_progress() -> Conflict:
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
