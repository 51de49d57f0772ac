"""Keeping a database small: deletes old data, in small transactions with pauses between them.

Nothing is deleted by default: without an age or a number to keep, in `settings.retention` of the workflow's active
version or for all, runs are kept for ever. Cached results are the exception: each has its own time of expiry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import orjson
from msgspec import Struct

from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.upkeep import Orphans, Removable
from executor.kernel.store.topics.workflows import WorkflowRow

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
    """Split in order into as many as one transaction takes."""
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
    """Runs that ended more than `older_than_ms` ago go, but for the `keep` newest: those of `workflow`, or of all but
    those of `but_not`."""

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
