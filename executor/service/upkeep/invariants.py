"""Checks the promises I1 to I12 of a database. Works on a live one: read-only, one snapshot per run, one run in memory
at a time and of its journal one event.

    with closing(open_reading(path)) as db:
        findings = list(check(db))

`findings.INVARIANTS` explains each number. Some need `Evidence` from outside and find nothing without it: I10 and I11
altogether; of I1, the check that an acknowledged run exists.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from typing import Any

import msgspec
import orjson

from compiler import plan as plans
from compiler.keys import format_wait, join_key
from compiler.plan import Plan
from executor.errors import RESTORE
from executor.kernel.core.state import State
from executor.kernel.store.batches import JOURNAL, damaged
from executor.kernel.store.reading import Reading
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.store.statements import OPEN, TERMINAL
from executor.service.upkeep.findings import INVARIANTS, Evidence, Finding, Part
from executor.service.upkeep.journal import OUR_BUG, SEE_JOURNAL, JournalCheck, check_snapshot, run_of
from executor.service.upkeep.secrets_scan import scan

EVERYTHING = Part()
RUNS_PAGE = 500
SEQ_MAX = 2**53
PLANS_MAX = 64
PLACE = {"SQLite": "file", "PostgreSQL": "database"}
INTEGRITY_MAX = 100  # findings of the database's own checks

_RUN_IDS = "SELECT id FROM run_details WHERE id > :after ORDER BY id LIMIT :limit"
_OF_PART = "finished_at_ms IS NULL OR finished_at_ms >= :since OR id > :done"
_IDS_OF_PART = f"SELECT id FROM run_details WHERE id > :after AND ({_OF_PART}) ORDER BY id LIMIT :limit"  # noqa: S608 - a constant
_COUNT_OF_PART = f"SELECT count(*) FROM run_details WHERE {_OF_PART}"  # noqa: S608 - a constant
_BY_HASH = {"documents": "document", "blobs": "bytes"}  # the hash is that of these bytes
_DECIDING = frozenset(("node.succeeded", "node.failed", "node.skipped", "region.sized", "region.exited"))
_WAITS = "SELECT id, node, path, status FROM waits WHERE run_id = :run"
_CHILD = "SELECT id, status FROM runs WHERE parent_run_id = :run AND parent_key = :key"
_IS_RUN = "SELECT 1 FROM runs WHERE id = :run"
_CANCEL = "SELECT cancel_n FROM runs WHERE id = :run"
_VERSION = "SELECT 1 FROM workflows WHERE name = :name AND version = :version"
_BLOB_REF = "SELECT 1 FROM blob_refs WHERE run_id = :run AND hash = :hash"
_MESSAGE = "SELECT 1 FROM inbox WHERE run_id = :run AND n = :n"
_FAMILIES = f"""
SELECT r.root_id, f.open, f.runs, count(*) FILTER (WHERE r.{OPEN}), count(*)
  FROM run_details AS r LEFT JOIN families AS f ON f.root_id = r.root_id
 WHERE r.root_id IS NOT NULL GROUP BY r.root_id, f.open, f.runs"""  # noqa: S608 - a constant
_INBOX = "SELECT fact FROM inbox WHERE run_id = :run ORDER BY n"
# The states that the row of a wait may have after its wait.closed. An answer that came too late keeps its status.
_ROW_AFTER = {
    "answered": ("answered", "cancelled"),  # cancelled by a person: the block fails or continues
    "fired": ("answered",),
    "expired": ("expired",),
    "cancelled": ("cancelled", "answered", "expired"),
}


def check(
    db: Reading,
    *,
    run: str | None = None,
    only: Collection[str] = frozenset(INVARIANTS),
    evidence: Evidence | None = None,
    part: Part = EVERYTHING,
    seen: Callable[[str], None] = lambda id: None,
) -> Iterator[Finding]:
    """Yield every violation, as it is found. `run` leaves out checks of the whole database. `seen` is called with each
    checked run. Raises StoreError, on SQLite sqlite3.Error; damage of a part is a finding, the last one."""
    try:
        for finding in _everything(db, run, frozenset(only), evidence or Evidence(), part, seen):
            if finding.invariant in only:
                yield finding
    except Exception as error:
        what = db.damage(error)
        if what is None or "I12" not in only:
            raise
        yield Finding("I12", f"{what}; the rest of the {PLACE[db.kind]} was not checked", RESTORE)


def run_ids(db: Reading, part: Part = EVERYTHING) -> Iterator[str]:
    """Yield all ids, or those of a part, page by page: no long read."""
    yield from part.named
    query = _RUN_IDS if part.is_all else _IDS_OF_PART
    values = {"after": "", "since": part.since_ms, "done": part.done, "limit": RUNS_PAGE}
    while page := [id for (id,) in db.rows(query, values)]:
        yield from (id for id in page if id not in part.named)
        values["after"] = page[-1]


def count_runs(db: Reading, part: Part) -> int:
    ((count,),) = db.rows(_COUNT_OF_PART, {"since": part.since_ms, "done": part.done})
    return int(count) + len(part.named)


def sample(db: Reading, after: str, limit: int) -> list[str]:
    """Return the runs that follow, from the beginning again at the end."""
    found = db.rows(_RUN_IDS, {"after": after, "limit": limit}) or db.rows(_RUN_IDS, {"after": "", "limit": limit})
    return [id for (id,) in found]


def _everything(
    db: Reading,
    run: str | None,
    only: frozenset[str],
    evidence: Evidence,
    part: Part,
    seen: Callable[[str], None],
) -> Iterator[Finding]:
    checker = _Checker(db)
    if run is None and "I12" in only:
        yield from _sound(db, part.since_ms)
    if "I1" in only:
        for id in evidence.acknowledged:
            if run in (None, id) and not db.rows(_IS_RUN, {"run": id}):
                yield Finding("I1", "it was acknowledged, but is missing", OUR_BUG, id)
    if only - {"I11"}:
        for id in [run] if run is not None else run_ids(db, part):
            with db.snapshot():
                yield from checker.run(id)
            seen(id)
    if "I10" in only:
        for id, events in evidence.transcripts.items():
            if run in (None, id):
                with db.snapshot():
                    yield from _transcript(db, id, events)
    if "I11" in only and evidence.secrets:
        yield from scan(db, evidence.secrets, run, 0 if part.done else part.since_ms)


# --- the whole file


def _sound(db: Reading, since_ms: int) -> Iterator[Finding]:
    for what in db.unsound(INTEGRITY_MAX):
        yield Finding("I12", what, RESTORE)
    for table, column in _BY_HASH.items():
        query = f"SELECT hash, {column} FROM {table} WHERE used_at_ms >= :since"  # noqa: S608 - constants of this file
        for hash, data in db.each(query, {"since": since_ms}):
            if hashlib.sha256(data).hexdigest() != hash.rpartition("_")[2]:  # hashes of files have a prefix
                yield Finding("I12", f"the bytes of {hash} in {table} do not match their checksum", RESTORE)
    yield from _families(db)
    for name, version, hash, document in db.each("SELECT name, version, hash, document FROM workflows"):
        if _hash_of_workflow(document) != hash:
            what = f"version {version} of workflow '{name}' does not match its checksum"
            yield Finding("I12", what, RESTORE)


def _families(db: Reading) -> Iterator[Finding]:
    """Check the counts of the runs below a root. One statement: one moment."""
    for root, counted, made, open, there in db.each(_FAMILIES):
        if counted is None:
            yield Finding("I12", f"the {there} runs below it are not counted", OUR_BUG, root)
        elif counted != open or made < there:
            what = f"its family counts {made} runs, {counted} of them open; there are {there}, {open} of them open"
            yield Finding("I12", what, OUR_BUG, root)


def _hash_of_workflow(document: bytes) -> str | None:
    """Hash the document as when it was saved: independent of the order of its keys."""
    try:
        return hashlib.sha256(orjson.dumps(orjson.loads(document), option=orjson.OPT_SORT_KEYS)).hexdigest()
    except orjson.JSONDecodeError:
        return None


def _transcript(db: Reading, run: str, events: Collection[Any]) -> Iterator[Finding]:
    """The client may have left early: then its transcript is the beginning of the journal."""
    records = (record for found, _ in _journal(db, run) for record in found)
    for n, seen in enumerate(events, 1):
        record = next(records, None)
        if record is None:
            yield Finding("I10", f"a client got {len(events)} events, the journal has {n - 1}", OUR_BUG, run)
            return
        stored = {name: getattr(record, name) for name in ("seq", "at_ms", "type", "node", "path", "attempt")}
        wrong = {name: value for name, value in stored.items() if name in seen and seen[name] != value}
        if wrong:
            got = {name: seen[name] for name in wrong}
            yield Finding("I10", f"the {n}. event a client got has {got}, the journal has {wrong}", OUR_BUG, run)
            return


def _journal(db: Reading, run: str) -> Iterator[tuple[list[Record], str | None]]:
    return damaged(run, db.each(JOURNAL, {"run": run, "after": 0, "upto": SEQ_MAX}))


# --- one run


class _Twice:
    def __init__(self) -> None:
        self.decided: dict[tuple[str, str], list[int]] = {}
        self.closed: dict[tuple[str, str, int], list[int]] = {}
        self.outcomes: list[tuple[int, str, str, int, str | None]] = []

    def see(self, record: Record) -> None:
        node = record.node or ""
        if record.type in _DECIDING:
            self.decided.setdefault((node, record.path), []).append(record.seq)
        elif record.type == "wait.closed":
            self.closed.setdefault((node, record.path, record.attempt), []).append(record.seq)
            outcome = (_object(record.data) or {}).get("outcome")
            self.outcomes.append((record.seq, node, record.path, record.attempt, outcome))

    def findings(self, run: str) -> Iterator[Finding]:
        for (node, path), seqs in self.decided.items():
            if len(seqs) > 1:
                what = f"it ended {len(seqs)} times, in events {','.join(map(str, seqs))}"
                yield Finding("I3", what, OUR_BUG, run, _key(node, path))
        for (node, path, _), seqs in self.closed.items():
            if len(seqs) > 1:
                what = f"its wait was closed {len(seqs)} times, in events {','.join(map(str, seqs))}"
                yield Finding("I9", what, OUR_BUG, run, _key(node, path))


class _Checker:
    def __init__(self, db: Reading) -> None:
        self._db = db
        self._plans: OrderedDict[str, Plan | None] = OrderedDict()

    def run(self, id: str) -> Iterator[Finding]:
        """Check one run, in the snapshot of the caller. A run that was deleted is not a finding."""
        run = run_of(self._db, id)
        if run is None:
            return
        plan = self._plan(run.plan_hash)
        yield from self._references(run, plan)
        twice = _Twice()
        if plan is not None:
            journal = JournalCheck(id, plan)
            last = None
            for records, wrong in _journal(self._db, id):
                if wrong is not None:
                    one = records[0] if len(records) == 1 else None
                    yield Finding("I12", wrong, RESTORE, id, _key(one.node, one.path) if one is not None else "")
                for last in records:
                    twice.see(last)
                    yield from journal.see(last)
                    yield from self._blob(run, last)
            yield from journal.end(run.seq)
            yield from self._end(run, last)
            if journal.folds:
                yield from self._folded(run, journal, twice)
                if run.status not in TERMINAL:
                    yield from check_snapshot(self._db, run, plan)
        yield from twice.findings(id)
        yield from self._owner(run)

    def _plan(self, hash: str) -> Plan | None:
        if hash not in self._plans:
            rows = self._db.rows("SELECT ir FROM plans WHERE hash = :hash", {"hash": hash})
            whole = bool(rows) and hashlib.sha256(rows[0][0]).hexdigest() == hash
            try:
                self._plans[hash] = plans.decode(rows[0][0]) if whole else None
            except msgspec.MsgspecError:
                self._plans[hash] = None
            if len(self._plans) > PLANS_MAX:
                self._plans.popitem(last=False)
        return self._plans[hash]

    def _references(self, run: RunRow, plan: Plan | None) -> Iterator[Finding]:
        if plan is None:
            yield Finding("I12", f"its plan {run.plan_hash} is missing or damaged", RESTORE, run.id)
        if run.document_hash is not None and not self._there("documents", "hash", run.document_hash):
            yield Finding("I12", f"its document {run.document_hash} is missing", RESTORE, run.id)
        version = {"name": run.workflow, "version": run.version}
        if run.version is not None and not self._db.rows(_VERSION, version):
            yield Finding("I12", f"version {run.version} of workflow '{run.workflow}' is missing", RESTORE, run.id)

    def _blob(self, run: RunRow, record: Record) -> Iterator[Finding]:
        if record.data is None or b'"blob"' not in record.data:
            return
        hash = (_object(record.data) or {}).get("blob")
        if not isinstance(hash, str):
            return
        if not self._there("blobs", "hash", hash):
            what = f"the output of event {record.seq} (blob {hash}) is missing"
            yield Finding("I12", what, RESTORE, run.id, _key(record.node, record.path))
        elif not self._db.rows(_BLOB_REF, {"run": run.id, "hash": hash}):
            what = (
                f"`weft gc` would delete the output of event {record.seq} (blob {hash}): it is missing from blob_refs"
            )
            yield Finding("I12", what, RESTORE, run.id, _key(record.node, record.path))

    def _there(self, table: str, column: str, value: str) -> bool:
        query = f"SELECT 1 FROM {table} WHERE {column} = :value"  # noqa: S608 - both are constants of this file
        return bool(self._db.rows(query, {"value": value}))

    def _end(self, run: RunRow, last: Record | None) -> Iterator[Finding]:
        finished = None
        if last is not None and last.type == "run.finished":
            finished = (_object(last.data) or {}).get("status")
        if finished is None and run.status in TERMINAL:
            yield Finding("I2", f"its row says {run.status}, but its journal has no end", OUR_BUG, run.id)
        elif finished is not None and run.status != finished:
            yield Finding("I2", f"its journal ends as {finished}, but its row says {run.status}", OUR_BUG, run.id)
        if finished is not None and last is not None:
            if finished == "succeeded" and last.output not in (None, run.output):
                yield Finding("I2", "the output in its row differs from its journal", OUR_BUG, run.id)
            if _object(run.error) != ((_object(last.data) or {}).get("error") or {}):
                yield Finding("I2", "the error in its row differs from its journal", OUR_BUG, run.id)
        if (run.finished_at_ms is not None) != (run.status in TERMINAL):
            yield Finding(
                "I2", f"its row says {run.status}, but finished_at_ms is {run.finished_at_ms}", OUR_BUG, run.id
            )

    def _owner(self, run: RunRow) -> Iterator[Finding]:
        held = run.lease_owner is not None
        if held != (run.lease_until_ms is not None):
            yield Finding("I7", f"its owner {run.lease_owner} has no lease", OUR_BUG, run.id)
        if held and run.status != "running":
            yield Finding("I7", f"it is {run.status}, but {run.lease_owner} holds its lease", OUR_BUG, run.id)
        if (run.status == "queued") != (run.epoch == 0) and run.status not in TERMINAL:
            yield Finding("I7", f"it is {run.status}, but was claimed {run.epoch} times", OUR_BUG, run.id)
        if run.status in TERMINAL and run.next_run_at_ms is not None:
            yield Finding("I7", f"it is {run.status}, but due at {run.next_run_at_ms} ms", OUR_BUG, run.id)

    # --- the rows against the folded journal

    def _folded(self, run: RunRow, journal: JournalCheck, twice: _Twice) -> Iterator[Finding]:
        state = journal.state
        inbox = [_object(message) for (message,) in self._db.rows(_INBOX, {"run": run.id})]
        messages = [message for message in inbox if message is not None]
        if len(messages) < len(inbox):
            yield Finding("I12", "a message in its inbox cannot be read", RESTORE, run.id)
        if run.status == "waiting" and not state.parked:
            yield Finding("I4", "its row says waiting, but its journal does not end with run.parked", OUR_BUG, run.id)
        if run.status in TERMINAL and messages:
            what = f"it has ended, but its inbox still has {len(messages)} messages"
            yield Finding("I1", what, "they arrived when it ended; `weft gc` deletes them with the run", run.id)
        yield from self._cancelled(run, journal)
        yield from self._alarm(run, state, bool(messages))
        yield from self._waits(run, journal, messages, twice)
        yield from self._children(run, journal, messages)

    def _cancelled(self, run: RunRow, journal: JournalCheck) -> Iterator[Finding]:
        """Check that an acknowledged cancel is in the inbox, or that the run has processed it."""
        ((cancel_n,),) = self._db.rows(_CANCEL, {"run": run.id})
        if cancel_n is None or journal.cancelling:
            return
        if run.status in TERMINAL:
            yield Finding("I1", "its cancel request was accepted, but it ended without processing it", OUR_BUG, run.id)
        elif not self._db.rows(_MESSAGE, {"run": run.id, "n": cancel_n}):
            fix = f"`weft cancel {run.id}`"
            yield Finding("I1", "its cancel request was accepted, but it has not processed it", fix, run.id)

    def _alarm(self, run: RunRow, state: State, messages: bool) -> Iterator[Finding]:
        """Check that an open run will be continued: by its owner, or by the next claim."""
        if run.status in TERMINAL:
            return
        wake = f"wake it, for example with `weft signal {run.id} wake`"
        due_ms = state.due_ms()
        if run.next_run_at_ms is None:
            if messages:
                yield Finding("I1", "its inbox has messages, but not scheduled to wake", wake, run.id)
            elif run.status != "waiting" or due_ms is not None:
                until = "" if due_ms is None else f"; it is due at {due_ms} ms"
                yield Finding("I8", f"it is {run.status}, but not scheduled to wake{until}", wake, run.id)
        elif run.lease_owner is None and state.parked and due_ms is not None and run.next_run_at_ms > due_ms:
            late_ms = run.next_run_at_ms - due_ms
            yield Finding("I8", f"its timer is due {late_ms} ms before the run", wake, run.id)

    def _waits(
        self, run: RunRow, journal: JournalCheck, messages: list[dict[str, Any]], twice: _Twice
    ) -> Iterator[Finding]:
        open_ids = {
            journal.codec.wait_id(key, wait.attempt): journal.codec.key_text(key)
            for key, wait in journal.state.open_waits()
        }
        on_the_way = {message.get("wait") for message in messages}
        rows = {}
        for id, node, path, status in self._db.rows(_WAITS, {"run": run.id}):
            rows[id] = status
            key = _key(node, path)
            is_open = open_ids.pop(id, None) is not None
            if status == "pending" and not is_open:
                yield Finding("I9", f"wait {id} is pending, but not open in the journal", OUR_BUG, run.id, key)
            elif is_open and status != "pending" and id not in on_the_way:
                what = f"wait {id} was {status}, but the run has not processed it"
                yield Finding("I1", what, SEE_JOURNAL.format(run=run.id), run.id, key)
        for id, key in open_ids.items():
            yield Finding("I9", f"wait {id} is open in the journal, but has no row", OUR_BUG, run.id, key)
        for seq, node, path, attempt, outcome in twice.outcomes:
            status = rows.get(format_wait(_key(node, path), attempt))
            copied = status is None and seq < journal.forked_at  # rows of waits stay with the run they were of
            if not copied and status not in _ROW_AFTER.get(outcome or "", ()):
                what = f"event {seq} closes its wait as {outcome}, but the row of the wait says {status or 'nothing'}"
                yield Finding("I9", what, OUR_BUG, run.id, _key(node, path))

    def _children(self, run: RunRow, journal: JournalCheck, messages: list[dict[str, Any]]) -> Iterator[Finding]:
        """Check that only the end of a child closes the wait for it."""
        on_the_way = {message.get("wait") for message in messages}
        for node, wait in journal.state.open_waits():
            key = journal.codec.key_text(node)
            id = format_wait(key, wait.attempt)
            if wait.kind != "child" or id in on_the_way:
                continue
            children = self._db.rows(_CHILD, {"run": run.id, "key": id})
            fix = f"`weft cancel {run.id}`, then `weft retry {run.id} {key}`"
            if not children:
                yield Finding("I8", "it waits for a child run that does not exist", fix, run.id, key)
            elif children[0][1] in TERMINAL:
                what = f"its child run {children[0][0]} has ended, but it has not processed that"
                yield Finding("I1", what, fix, run.id, key)


def _object(data: bytes | None) -> dict[str, Any] | None:
    try:
        value = orjson.loads(data or b"{}")
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _key(node: str | None, path: str) -> str:
    return join_key(node or "", path)
