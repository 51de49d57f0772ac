"""A deletion of ended runs, as others see it: its counts so far, and if it is still at work.

It is written to the database every few seconds while its process lives, so that every process can show it, and a killed
one is recognised by its silence.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Literal
from uuid import uuid4

import msgspec
from msgspec import Struct, field

from executor.errors import StoreError, WeftError
from executor.kernel.process.clock import Clock
from executor.kernel.store.topics.store import Store
from executor.service.upkeep.gc import Collected

log = logging.getLogger("weft.upkeep")

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
    """Return the name of the note in the database."""
    return "gc-preview" if dry_run else "gc"


async def last_job(store: Store, kind: str, now_ms: int) -> GcJob | None:
    """Return the last deletion of any process."""
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
