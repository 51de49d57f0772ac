"""Schedules, and what became of each of their fire times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from executor.kernel.store.run_rows import NewRun, RunRow
from executor.kernel.store.statements import OPEN, Readers, Tx, columns, insert, keep_workflow, replacing
from executor.kernel.store.topics.alerts import AlertRow, add_alerts
from executor.kernel.store.topics.runs import create_run

Overlap = Literal["skip", "allow", "queue"]
CatchUp = Literal["one", "none", "all"]
Origin = Literal["document", "api"]
FireOutcome = Literal["started", "skipped", "queued", "missed", "failed"]
FIRES_KEPT: Final = 100
UNREAD: Final = b"null"  # the state of a poll that has not seen its source


class ScheduleRow(Struct, frozen=True):
    """A schedule. `version` is None for the active one; `trigger` is None for the workflow's own choice. `input` is
    JSON. `declared` is the `enabled` of the document, None for schedules of the API. `next_run_at_ms` is None if it is
    switched off, or its day never comes, or its time zone was not known. `queued_at_ms` is a fire time that waits for
    an open run to end. `made_by` is who made or last changed it, None if that was a server without users. `poll` is the
    state of a trigger that polls a source at its times (JSON), and `input` then has the settings of the source. `push`
    is the block for which the service is to call this server, and `pushed_ms` 0 while a poll is claimed, or when the
    service called since."""

    id: str
    workflow: str
    version: int | None
    trigger: str | None
    cron: str
    tz: str
    input: bytes
    enabled: bool
    declared: bool | None
    overlap: Overlap
    catch_up: CatchUp
    origin: Origin
    next_run_at_ms: int | None
    created_at_ms: int
    updated_at_ms: int
    queued_at_ms: int | None = None
    last_run_at_ms: int | None = None
    last_run_id: str | None = None
    error: str | None = None
    made_by: str | None = None
    poll: bytes | None = None
    push: bytes | None = None
    pushed_ms: int | None = None


class FireRow(Struct, frozen=True):
    due_ms: int
    at_ms: int
    outcome: FireOutcome
    run_id: str | None = None
    error: str | None = None


class Fire(Struct, frozen=True):
    """One fire time of a schedule that is to be handled.

    expects         due: it is switched on and `next_run_at_ms` is `expected_ms`; queued: `queued_at_ms` is that, and no
                    run is open; None if a client asked for a run, which starts whatever else is open
    next_run_at_ms  where `due` moves the schedule
    due_ms          the fire time a run is for; of several missed ones the last
    run             None if there is none, with the reason in `error`, or if the fire time was missed
    alerts          alerts for operators about it
    """

    schedule_id: str
    expects: Literal["due", "queued"] | None
    expected_ms: int
    next_run_at_ms: int | None
    due_ms: int
    now_ms: int
    overlap: Overlap
    run: NewRun | None = None
    error: str | None = None
    alerts: tuple[AlertRow, ...] = ()


class Fired(Struct, frozen=True):
    outcome: FireOutcome
    run: RunRow | None = None


class Poll(Struct, frozen=True):
    """The result of one poll: `next_run_at_ms` is still `expected_ms`, or nothing is written.

    runs      those of the events that were found, in order
    state     where the source is after them; None leaves it as it is
    error     why the poll failed or what it could not read, None to clear it
    failures  why events started no run, for the list of fire times
    """

    schedule_id: str
    expected_ms: int
    next_run_at_ms: int
    now_ms: int
    runs: tuple[NewRun, ...] = ()
    state: bytes | None = None
    error: str | None = None
    failures: tuple[str, ...] = ()
    alerts: tuple[AlertRow, ...] = ()


def merged_schedule(old: ScheduleRow | None, new: ScheduleRow) -> ScheduleRow:
    """Return `new` with what outlives a change. A document that has the same `enabled` as before leaves what people
    set; the next fire time stays as long as the times are the same, so that none is lost that has come meanwhile. The
    state of a poll stays as long as its source is the same."""
    if old is None:
        return new if new.enabled else replace(new, next_run_at_ms=None)
    unchanged = new.declared is not None and new.declared == old.declared
    enabled = old.enabled if unchanged else new.enabled
    same_source = (old.poll is None) == (new.poll is None) and (new.poll is None or old.input == new.input)
    same_times = same_source and (old.cron, old.tz, old.enabled) == (new.cron, new.tz, True)
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
        poll=old.poll if same_source and old.enabled else new.poll,
        pushed_ms=old.pushed_ms if enabled and next_ms == old.next_run_at_ms else None,
    )


def outcome_of(fire: Fire, is_open: bool, is_queued: bool) -> FireOutcome:
    """`is_open`: a run of the schedule is open; `is_queued`: a fire time is queued already."""
    if fire.run is None:
        return "missed" if fire.error is None else "failed"
    if fire.expects is None or fire.overlap == "allow" or not is_open:
        return "started"
    return "queued" if fire.overlap == "queue" and not is_queued else "skipped"


SCHEDULE = columns(ScheduleRow, trigger="trigger_block")
FIRE = columns(FireRow)
_INSERT = insert("schedules", ScheduleRow, trigger="trigger_block")
ADD_SCHEDULE = f"{_INSERT} ON CONFLICT (id) DO NOTHING"
PUT_SCHEDULE = _INSERT + replacing(ScheduleRow, "id", trigger="trigger_block")
TAKE_SCHEDULE = f"UPDATE schedules SET error = error WHERE id = :id RETURNING {SCHEDULE}"
SCHEDULE_BY_ID = f"SELECT {SCHEDULE} FROM schedules WHERE id = :id"
SCHEDULES = f"SELECT {SCHEDULE} FROM schedules ORDER BY id LIMIT :limit"
SCHEDULES_OF = f"SELECT {SCHEDULE} FROM schedules WHERE workflow = :workflow ORDER BY id LIMIT :limit"
DECLARED_SCHEDULES = "SELECT id FROM schedules WHERE workflow = :workflow AND origin = 'document'"
DELETE_FIRES = "DELETE FROM fires WHERE schedule_id = :id"
SWITCH_SCHEDULE = f"""
UPDATE schedules SET enabled = :enabled, updated_at_ms = :now,
       next_run_at_ms = CASE WHEN :enabled = 1 THEN coalesce(next_run_at_ms, :next_run_at) END,
       queued_at_ms = CASE WHEN :enabled = 1 THEN queued_at_ms END,
       pushed_ms = CASE WHEN next_run_at_ms IS NOT NULL AND :enabled = 1 THEN pushed_ms END,
       poll = CASE WHEN poll IS NOT NULL AND enabled = 1 THEN poll WHEN poll IS NOT NULL THEN :new END
 WHERE id = :id AND (:enabled = 0 OR (cron = :cron AND tz = :tz)) RETURNING {SCHEDULE}"""
HAS_OPEN_RUN = f"""
EXISTS (SELECT 1 FROM fires AS f JOIN run_details AS r ON r.id = f.run_id
         WHERE f.schedule_id = schedules.id AND r.{OPEN})"""
DUE_SCHEDULES = f"""
SELECT * FROM (
SELECT {SCHEDULE} FROM schedules WHERE next_run_at_ms <= :now
UNION
SELECT {SCHEDULE} FROM schedules WHERE queued_at_ms IS NOT NULL AND NOT {HAS_OPEN_RUN}) AS due
 ORDER BY CASE WHEN queued_at_ms IS NULL OR next_run_at_ms < queued_at_ms THEN next_run_at_ms ELSE queued_at_ms END, id
 LIMIT :limit"""
NEXT_SCHEDULE = """
SELECT (SELECT next_run_at_ms FROM schedules WHERE next_run_at_ms IS NOT NULL ORDER BY next_run_at_ms LIMIT 1),
       EXISTS (SELECT 1 FROM schedules WHERE queued_at_ms IS NOT NULL)"""

# --- one fire time of a schedule. The first two are the fence: no row, and another process has handled it.

TAKE_DUE = """
UPDATE schedules SET next_run_at_ms = :next_run_at
 WHERE id = :id AND enabled = 1 AND next_run_at_ms = :expected RETURNING queued_at_ms"""
TAKE_QUEUED = f"""
UPDATE schedules SET queued_at_ms = NULL
 WHERE id = :id AND queued_at_ms = :expected AND NOT {HAS_OPEN_RUN} RETURNING queued_at_ms"""
TAKE_ANY = "UPDATE schedules SET error = error WHERE id = :id RETURNING queued_at_ms"
# The fence of a poll, which is claimed by moving its next time on. `:read` = 0: it is only claimed. After a delivery
# that came meanwhile, it is due at once.
TAKE_POLL = """
UPDATE schedules SET poll = coalesce(:state, poll),
       next_run_at_ms = CASE WHEN :read = 1 AND pushed_ms > 0 AND :next_run_at > :now THEN :now ELSE :next_run_at END,
       pushed_ms = CASE WHEN :read = 1 THEN NULL ELSE 0 END,
       error = CASE WHEN :read = 1 THEN :error ELSE error END
 WHERE id = :id AND enabled = 1 AND poll IS NOT NULL AND next_run_at_ms = :expected RETURNING id"""
NOTE_RUN = "UPDATE schedules SET last_run_at_ms = :now, last_run_id = :run, error = NULL WHERE id = :id"
ADD_FIRE = f"INSERT INTO fires (schedule_id, {FIRE}) VALUES (:id, :due, :now, :outcome, :run, :error)"
FORGET_FIRES = f"""
DELETE FROM fires
 WHERE schedule_id = :id
   AND n < (SELECT n FROM fires WHERE schedule_id = :id ORDER BY n DESC LIMIT 1 OFFSET :limit)
   AND NOT EXISTS (SELECT 1 FROM run_details AS r WHERE r.id = fires.run_id AND r.{OPEN})"""
FIRES = f"SELECT {FIRE} FROM fires WHERE schedule_id = :id ORDER BY n DESC LIMIT :limit"


async def get_schedule(readers: Readers, id: str) -> ScheduleRow | None:
    return await readers.fetch_one(ScheduleRow, SCHEDULE_BY_ID, {"id": id})


async def list_schedules(readers: Readers, workflow: str | None = None, limit: int = 1_000) -> list[ScheduleRow]:
    query = SCHEDULES if workflow is None else SCHEDULES_OF
    return await readers.fetch(ScheduleRow, query, {"workflow": workflow, "limit": limit})


async def due_schedules(readers: Readers, now_ms: int, limit: int) -> list[ScheduleRow]:
    """Return schedules with a fire time that has come, or with a queued one and no open run; longest due first."""
    return await readers.fetch(ScheduleRow, DUE_SCHEDULES, {"now": now_ms, "limit": limit})


async def next_schedule_ms(readers: Readers) -> tuple[int | None, bool]:
    """Return the earliest `next_run_at_ms`, and whether any fire time is queued."""
    row = await readers.one(NEXT_SCHEDULE)
    assert row is not None, "a SELECT without FROM has one row"
    return row[0], bool(row[1])


async def list_fires(readers: Readers, schedule_id: str, limit: int = FIRES_KEPT) -> list[FireRow]:
    return await readers.fetch(FireRow, FIRES, {"id": schedule_id, "limit": limit})


def put_schedule(tx: Tx, row: ScheduleRow) -> ScheduleRow:
    """Make it, or change it: see `merged_schedule` for what stays. Returns the row as it is now."""
    merged = merged_schedule(None, row)
    if tx.run(ADD_SCHEDULE, asdict(merged)) == 0:
        merged = merged_schedule(tx.fetch_one(ScheduleRow, TAKE_SCHEDULE, {"id": row.id}), row)
        tx.run(PUT_SCHEDULE, asdict(merged))
    return merged


def switch_schedule(
    tx: Tx, id: str, enabled: bool, next_run_at_ms: int | None, now_ms: int, times: tuple[str, str]
) -> ScheduleRow | None:
    """Switch a schedule on or off. Switching off deletes a queued fire time; a schedule that is on keeps its next fire
    time. A source is read from its present end on after it was off. `times` are the cron and tz that `next_run_at_ms`
    was calculated from; a schedule that has others by now is not switched on. Returns the row as it is now, or None if
    there is no such schedule."""
    change = {"id": id, "enabled": int(enabled), "next_run_at": next_run_at_ms, "now": now_ms, "new": UNREAD}
    switched = tx.fetch_one(ScheduleRow, SWITCH_SCHEDULE, {**change, "cron": times[0], "tz": times[1]})
    return switched or tx.fetch_one(ScheduleRow, SCHEDULE_BY_ID, {"id": id})


def delete_schedule(tx: Tx, id: str) -> bool:
    deleted = tx.run("DELETE FROM schedules WHERE id = :id", {"id": id}) == 1
    tx.run(DELETE_FIRES, {"id": id})
    return deleted


def fire(tx: Tx, fire: Fire) -> Fired | None:
    """Fire a schedule. Returns None, with nothing changed, if the schedule is not as the fire expects."""
    take = {"due": TAKE_DUE, "queued": TAKE_QUEUED, None: TAKE_ANY}[fire.expects]
    values = {"id": fire.schedule_id, "expected": fire.expected_ms, "next_run_at": fire.next_run_at_ms}
    if fire.run is not None:
        keep_workflow(tx, fire.run.workflow)
    if fire.expects == "queued":
        tx.run(TAKE_ANY, values)  # so that a run of it that another process has just started is seen
    found = tx.rows(take, values)
    if not found:
        return None
    (is_open,) = tx.row(f"SELECT {HAS_OPEN_RUN} FROM schedules WHERE id = :id", {"id": fire.schedule_id})
    outcome = outcome_of(fire, bool(is_open), found[0][0] is not None)
    run = None
    if outcome == "started":
        assert fire.run is not None
        run, _ = create_run(tx, fire.run)
        tx.run(NOTE_RUN, {"id": fire.schedule_id, "now": fire.now_ms, "run": run.id})
    elif outcome == "queued":
        tx.run("UPDATE schedules SET queued_at_ms = :due WHERE id = :id", {"id": fire.schedule_id, "due": fire.due_ms})
    elif outcome == "failed":
        tx.run("UPDATE schedules SET error = :error WHERE id = :id", {"id": fire.schedule_id, "error": fire.error})
    handled = {"id": fire.schedule_id, "due": fire.due_ms, "now": fire.now_ms, "outcome": outcome}
    tx.run(ADD_FIRE, {**handled, "run": run.id if run else None, "error": fire.error})
    tx.run(FORGET_FIRES, {"id": fire.schedule_id, "limit": FIRES_KEPT - 1})
    add_alerts(tx, fire.alerts)
    return Fired(outcome, run)


def claim_poll(tx: Tx, id: str, expected_ms: int, until_ms: int) -> bool:
    """Take a poll that is due for this process, until a time at which another one may take it."""
    values = {"id": id, "expected": expected_ms, "next_run_at": until_ms, "now": 0}
    values |= {"state": None, "error": None, "read": 0}
    return bool(tx.rows(TAKE_POLL, values))


def record_poll(tx: Tx, poll: Poll) -> list[RunRow] | None:
    """Create the runs of the events that a poll found, and move its state past them. Returns None, with nothing
    changed, if the poll is another process's, or its schedule was changed."""
    for workflow in {run.workflow for run in poll.runs}:
        keep_workflow(tx, workflow)
    values = {"id": poll.schedule_id, "expected": poll.expected_ms, "next_run_at": poll.next_run_at_ms}
    values["now"] = poll.now_ms
    if not tx.rows(TAKE_POLL, {**values, "state": poll.state, "error": poll.error, "read": 1}):
        return None
    base = {"id": poll.schedule_id, "due": poll.now_ms, "now": poll.now_ms}
    runs = []
    for run in poll.runs:
        row, created = create_run(tx, run)
        if created:
            runs.append(row)
            tx.run(ADD_FIRE, {**base, "outcome": "started", "run": row.id, "error": None})
    if runs:
        note = "UPDATE schedules SET last_run_at_ms = :now, last_run_id = :run WHERE id = :id"
        tx.run(note, {"id": poll.schedule_id, "now": poll.now_ms, "run": runs[-1].id})
    for error in poll.failures:
        tx.run(ADD_FIRE, {**base, "outcome": "failed", "run": None, "error": error})
    if runs or poll.failures:
        tx.run(FORGET_FIRES, {"id": poll.schedule_id, "limit": FIRES_KEPT - 1})
    add_alerts(tx, poll.alerts)
    return runs


def delete_schedules_of(tx: Tx, workflow: str) -> int:
    ids = tx.rows("DELETE FROM schedules WHERE workflow = :workflow RETURNING id", {"workflow": workflow})
    for (id,) in ids:
        tx.run(DELETE_FIRES, {"id": id})
    return len(ids)


def put_declared_schedules(tx: Tx, workflow: str, rows: Sequence[ScheduleRow]) -> None:
    """Part of making a version active: its schedules take the place of those of the version before."""
    ids = {row.id for row in rows}
    for (id,) in tx.rows(DECLARED_SCHEDULES, {"workflow": workflow}):
        if id not in ids:
            delete_schedule(tx, id)
    for row in rows:
        put_schedule(tx, row)
