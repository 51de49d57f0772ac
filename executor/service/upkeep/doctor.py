"""`weft doctor`: checks a database while its servers are at work.

It has two kinds of results. Findings are broken promises (`invariants.py`): the data is not as it should be. Conditions
are about the place of the data and the machine around it; those without an effect so far are warnings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from executor.kernel.store.reading import Reading
from executor.service.upkeep.conditions import conditions_of_file, conditions_of_server
from executor.service.upkeep.findings import INVARIANTS, Condition, Evidence, Finding, Part
from executor.service.upkeep.invariants import EVERYTHING, PLACE, check

FINDINGS_MAX = 500  # kept; more are only counted
# Leases are taken over, messages sent and schedules kept within seconds: after this long no process does it.
STUCK_MS = 120_000
CLAIMS_IN_VAIN = 10  # about a minute of them


class Promise(Struct, frozen=True):
    """One invariant. `findings` is None if it was not checked, because it needs something this call did not have."""

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
        return not any(promise.findings for promise in self.promises) and all(
            condition.level != "error" for condition in self.conditions
        )


def examine(
    db: Reading,
    now_ms: int,
    *,
    run: str | None = None,
    evidence: Evidence | None = None,
    part: Part = EVERYTHING,
    seen: Callable[[str], None] = lambda id: None,
    note: Callable[[Finding], None] = lambda finding: None,
) -> Report:
    """Examine the database, a part of its runs, or one run. `now_ms` by its clock. `seen` is called with each checked
    run, `note` with each finding. Raises StoreError, on SQLite sqlite3.Error, ForeignDatabase, LookupError if there is
    no such run."""
    evidence = evidence or Evidence()
    needed = {"I10": evidence.transcripts, "I11": evidence.secrets}
    asked = [id for id in INVARIANTS if needed.get(id, True)]
    found_schema, newest = db.schema()
    place = conditions_of_file(Path(db.name)) if db.kind == "SQLite" else conditions_of_server(db)
    conditions = [*place, _schema(db, found_schema, newest)]
    if found_schema != newest:  # this code does not know the tables
        promises = tuple(Promise(id, title, None) for id, title in INVARIANTS.items())
        return Report(db.name, {}, 0, promises, tuple(conditions), ())
    if run is not None and not db.rows(_IS_RUN, {"run": run}):
        raise LookupError(run)
    found: list[Finding] = []
    counts: Counter[str] = Counter()
    for finding in check(db, run=run, only=asked, evidence=evidence, part=part, seen=seen):
        note(finding)
        counts[finding.invariant] += 1
        if len(found) < FINDINGS_MAX:
            found.append(finding)
    if evidence.keys:
        conditions.append(_key(db, evidence.keys))
    if run is None:
        conditions += _work(db, now_ms)
    with db.snapshot():
        runs: dict[str, int] = dict(db.rows(_RUNS))
        ((events,),) = db.rows(_EVENTS)
    return Report(
        database=db.name,
        runs=runs,
        events=events,
        promises=tuple(Promise(id, title, counts[id] if id in asked else None) for id, title in INVARIANTS.items()),
        conditions=tuple(conditions),
        findings=tuple(found),
    )


# --- the schema


def _schema(db: Reading, found: int, newest: int) -> Condition:
    place = PLACE[db.kind]
    if found > newest:
        what = f"the {place} has schema {found}, but this weft supports schemas up to {newest}"
        return Condition("schema", "error", what, "use the weft version that wrote it, or a newer one")
    if found < newest:
        what = f"the {place} has schema {found}, this weft has {newest}"
        return Condition("schema", "warning", what, "make a backup, then start `weft serve` to update it")
    return Condition("schema", "ok", f"schema {found}")


# --- is a worker active?


_IS_RUN = "SELECT 1 FROM runs WHERE id = :run"
_RUNS = "SELECT status, count(*) FROM runs GROUP BY status"
_EVENTS = "SELECT CAST(coalesce(sum(seq), 0) AS bigint) FROM runs"
# A claim that leads to anything adds an event. A process that lacks a block gives the run back without one, as waiting.
_GIVEN_BACK = """
SELECT count(*), min(id) FROM heads WHERE owner IS NULL AND status = 'waiting' AND epoch > seq + :claims"""
_PRESENT_KEY = "SELECT id FROM secret_keys WHERE until_ms IS NULL"
_LAPSED = "SELECT count(*) FROM heads AS h JOIN workers AS w ON w.id = h.owner WHERE w.until_ms < :since"
_OVERDUE = "SELECT count(*) FROM heads WHERE owner IS NULL AND blocked_by IS NULL AND due_ms < :since"
_UNSENT = "SELECT count(*) FROM notifications WHERE status = 'pending' AND due_at_ms < :since"
_FAILED_MESSAGES = "SELECT count(*) FROM notifications WHERE status = 'failed'"
_UNSENT_ALERTS = "SELECT count(*) FROM alert_messages WHERE status = 'pending' AND due_at_ms < :since"
_FAILED_ALERTS = "SELECT count(*) FROM alert_messages WHERE status = 'failed'"
_LATE_SCHEDULES = "SELECT count(*) FROM schedules WHERE enabled = 1 AND next_run_at_ms < :since"
_FAILED_SCHEDULES = "SELECT count(*) FROM schedules WHERE enabled = 1 AND error IS NOT NULL"
_ALERTS_FAIL = "alerts could not be delivered, or error workflows not be started"
_SEE_LOG = "the log of the server says why; see docs/howto/alerts.md"
# Each has a name, the query of a number that should be 0, what that counts, and the fix: by default to start a worker.
_COUNTED: Final = (
    ("leases", _LAPSED, "runs belong to a worker that has stopped, and no other worker claims them", ""),
    ("due runs", _OVERDUE, "runs are due, but no worker claims them", ""),
    ("messages", _UNSENT, "messages about waits are due, but are not being sent", ""),
    ("failed messages", _FAILED_MESSAGES, "messages could not be delivered", "`weft inbox` lists their links"),
    ("alerts", _UNSENT_ALERTS, "alerts are due, but are not being sent", ""),
    ("failed alerts", _FAILED_ALERTS, _ALERTS_FAIL, _SEE_LOG),
    ("schedules", _LATE_SCHEDULES, "schedules are due, but do not start runs", ""),
    (
        "failing schedules",
        _FAILED_SCHEDULES,
        "schedules failed to start their last run",
        "`weft cron ls` shows the errors",
    ),
)


def _key(db: Reading, keys: Sequence[str]) -> Condition:
    present = [str(id) for (id,) in db.rows(_PRESENT_KEY)]
    if not present or present[0] == keys[0]:
        return Condition("key", "ok", "the secret key is that of the database")
    if present[0] in keys:
        what = "the key has been changed, but not for what was made with the one before"
        return Condition("key", "warning", what, "restart all processes with the new key, then run `weft secret rekey`")
    what = "WEFT_SECRET_KEY or the key file is not the key of this database: no process can start with it"
    return Condition("key", "error", what, "use the key of the database; docs/howto/secrets.md has how to change it")


def _work(db: Reading, now_ms: int) -> Iterator[Condition]:
    workers = "`weft serve`" if db.kind == "SQLite" else "`weft serve` or `weft worker`"
    since = {"since": now_ms - STUCK_MS}
    for name, query, what, fix in _COUNTED:
        ((count,),) = db.rows(query, since if ":since" in query else {})
        if count:
            yield Condition(name, "warning", f"{count} {what}", fix or f"is {workers} running on this database?")
        else:
            yield Condition(name, "ok", "none")
        if name == "due runs":
            yield _blocks(db)


def _blocks(db: Reading) -> Condition:
    ((count, run),) = db.rows(_GIVEN_BACK, {"claims": CLAIMS_IN_VAIN})
    if not count:
        return Condition("blocks", "ok", "processes have what runs need")
    what = f"{count} runs need a block type or function that the processes that claim them lack, for example run {run}"
    fix = "`weft why RUN` or a worker's log names it (`which this process lacks`): start one that has it"
    return Condition("blocks", "warning", what, fix)
