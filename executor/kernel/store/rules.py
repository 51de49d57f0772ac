"""Decisions that every backend makes in the same way: plain functions of rows.

A change is written like this, so that any number of processes may make changes at once:

 1. Compare and set. The condition of the statement that makes a change has all that the change depends on, and the
    number of rows that it changed shows whether it still held. What was read before only decides what to try.
 2. A key that comes again: the insert does nothing when there is a row (`ON CONFLICT DO NOTHING`), and then the first
    row is selected. A repeated key is never an error.
 3. Where several rows change together, they are taken in one order, by writing them: the run's row (of several runs in
    the order of their ids; a parent's append makes children after its own), then the run's waits, its inbox, its
    signals, then its family. A workflow's active version comes first, before its schedules and webhooks: a transaction
    that begins a run of it keeps it from being deleted, and shares it with all others that do. A schedule's and a
    webhook's row comes before the run it starts, what is deleted before the rows that belong to it.
 4. After a row was taken, what depends on it is read by a statement of its own: it sees what others have committed
    until then.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from msgspec.structs import replace

from executor.errors import Fenced, LimitExceeded
from executor.kernel.store.rows import FamilyMax, FamilyRow, NewRun, Record, RunRow
from executor.kernel.store.triggers import Fire, FireOutcome, ScheduleRow, WebhookRow


def new_row(run: NewRun, root: str | None) -> RunRow:
    """Return the row of a run that was just created. `root` is the root of the family of its parent."""
    return RunRow(
        id=run.id,
        workflow=run.workflow,
        version=run.version,
        plan_hash=run.plan_hash,
        status="queued",
        input=run.input,
        output=None,
        error=None,
        seq=len(run.records),
        epoch=0,
        lease_owner=None,
        lease_until_ms=None,
        next_run_at_ms=run.now_ms if run.due_ms is None else run.due_ms,
        idempotency_key=run.idempotency_key,
        request_hash=run.request_hash,
        parent_run_id=run.parent_run_id,
        parent_key=run.parent_key,
        created_at_ms=run.now_ms,
        started_at_ms=None,
        finished_at_ms=None,
        document_hash=run.document_hash,
        draft_id=run.draft_id,
        draft_rev=run.draft_rev,
        root_id=root,
    )


def merged_schedule(old: ScheduleRow | None, new: ScheduleRow) -> ScheduleRow:
    """Return `new` with what outlives a change. A document that has the same `enabled` as before leaves what people
    set; the next fire time stays as long as the times are the same, so that none is lost that has come meanwhile."""
    if old is None:
        return new if new.enabled else replace(new, next_run_at_ms=None)
    unchanged = new.declared is not None and new.declared == old.declared
    enabled = old.enabled if unchanged else new.enabled
    same_times = (old.cron, old.tz, old.enabled) == (new.cron, new.tz, True)
    next_ms = (old.next_run_at_ms if same_times else None) or new.next_run_at_ms
    return replace(
        new,
        enabled=enabled,
        next_run_at_ms=next_ms if enabled else None,
        queued_at_ms=old.queued_at_ms if enabled else None,
        last_run_at_ms=old.last_run_at_ms,
        last_run_id=old.last_run_id,
        created_at_ms=old.created_at_ms,
        made_by=new.made_by or old.made_by,
    )


def merged_webhook(old: WebhookRow | None, new: WebhookRow) -> WebhookRow:
    """`new` with what outlives a change: as for schedules, and the generation of the secret."""
    if old is None:
        return new
    unchanged = new.declared is not None and new.declared == old.declared
    return replace(
        new,
        enabled=old.enabled if unchanged else new.enabled,
        generation=old.generation,
        last_run_at_ms=old.last_run_at_ms,
        last_run_id=old.last_run_id,
        created_at_ms=old.created_at_ms,
    )


def check_unchanged(webhook: WebhookRow, now: WebhookRow | None) -> None:
    """Raises Fenced."""
    if now is None or webhook != replace(now, last_run_at_ms=webhook.last_run_at_ms, last_run_id=webhook.last_run_id):
        raise Fenced(f"webhook {webhook.id} has changed")


def lasts(webhook: WebhookRow) -> bool:
    """Returns True if a signed request to it is valid for as long as its secret is."""
    return webhook.auth == "github"


def outcome_of(fire: Fire, is_open: bool, is_queued: bool) -> FireOutcome:
    """Return the outcome of a fire time. `is_open`: a run of the schedule is open; `is_queued`: a fire time is queued
    already."""
    if fire.run is None:
        return "missed" if fire.error is None else "failed"
    if fire.expects is None or fire.overlap == "allow" or not is_open:
        return "started"
    return "queued" if fire.overlap == "queue" and not is_queued else "skipped"


def check_room(family: FamilyRow, more: int, most: FamilyMax) -> None:
    """Raises LimitExceeded."""
    if family.open + more > most.open:
        raise LimitExceeded(
            f"more than {most.open:,} runs would be open below one run",
            code="limit_family_open",
            hint="Does the workflow run itself without end? Start fewer runs at a time, "
            "for example with `concurrency` of the parallel.",
        )
    if family.runs + more > most.runs:
        raise LimitExceeded(
            f"more than {most.runs:,} runs would have been started below one run",
            code="limit_family_runs",
            hint="Does the workflow run itself without end? Use a loop to repeat blocks without new runs.",
        )


def blobs_of(records: Sequence[Record]) -> set[str]:
    """Hashes of the blobs that hold outputs of these records; see `executor.kernel.values.payload.split`."""
    found = set()
    for record in records:
        if record.data is not None and b'"blob"' in record.data:
            hash = orjson.loads(record.data).get("blob")
            if isinstance(hash, str):
                found.add(hash)
    return found
