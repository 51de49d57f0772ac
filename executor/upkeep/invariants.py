"""The promises I1 to I12, asked of a database file. Works on a live one: read-only, one snapshot per run, one run in
memory at a time and of its journal one event.

    with closing(open_read_only(path)) as db:
        findings = list(check(db))

`findings.INVARIANTS` says what each number means. Some need `Evidence` from outside and say nothing without it: I10 and
I11 altogether; of I1, whether a run that was acknowledged is there.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections import OrderedDict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import msgspec
import orjson
from msgspec import Struct

from compiler import plan as plans
from compiler.keys import format_wait, join_key
from compiler.plan import Plan
from executor.core.state import State
from executor.errors import RESTORE
from executor.store.rows import TERMINAL, Record
from executor.store.sqlite.batches import JOURNAL, damaged
from executor.store.sqlite.connection import check_log
from executor.store.sqlite.statements import OPEN
from executor.upkeep.findings import INVARIANTS, Evidence, Finding
from executor.upkeep.journal import OUR_BUG, SEE_JOURNAL, JournalCheck
from executor.upkeep.secrets_scan import scan

RUNS_PAGE = 500
SEQ_MAX = 2**53
PLANS_MAX = 64
INTEGRITY_MAX = 100  # findings of SQLite's own checks

_RUN_IDS = "SELECT id FROM runs WHERE id > ? ORDER BY id LIMIT ?"
_RUN = """
SELECT id, workflow, version, plan_hash, status, seq, epoch, lease_owner, lease_until_ms, next_run_at_ms,
       finished_at_ms, document_hash, cancel_n, root_id FROM runs WHERE id = ?"""
_BY_HASH = {"documents": "document", "blobs": "bytes"}  # the hash is that of these bytes
_DECIDING = frozenset(("node.succeeded", "node.failed", "node.skipped", "region.sized", "region.exited"))
_WAITS = """
SELECT e.seq, e.node, e.path, json_extract(CAST(e.data AS TEXT), '$.outcome'), w.status
  FROM events AS e LEFT JOIN waits AS w
    ON w.run_id = e.run_id AND w.id = e.node || iif(e.path = '', '', '@' || e.path) || '!' || e.attempt
 WHERE e.run_id = ? AND e.type = 'wait.closed'"""
_WAITS = "SELECT id, node, path, status FROM waits WHERE run_id = ?"
_CHILD = "SELECT id, status FROM runs WHERE parent_run_id = ? AND parent_key = ?"
_FAMILIES = f"""
SELECT r.root_id, f.open, f.runs, count(*) FILTER (WHERE r.{OPEN}), count(*)
  FROM run_details AS r LEFT JOIN families AS f ON f.root_id = r.root_id
 WHERE r.root_id IS NOT NULL GROUP BY r.root_id"""  # noqa: S608 - a constant
_INBOX = "SELECT fact FROM inbox WHERE run_id = ? ORDER BY n"
# What the row of a wait may say after its wait.closed. An answer that came too late to be taken keeps its row.
_ROW_AFTER = {
    "answered": ("answered", "cancelled"),  # cancelled by a person: the block fails or continues
    "fired": ("answered",),
    "expired": ("expired",),
    "cancelled": ("cancelled", "answered", "expired"),
}


class _Run(Struct, frozen=True):
    id: str
    workflow: str
    version: int | None
    plan_hash: str
    status: str
    seq: int
    epoch: int
    lease_owner: str | None
    lease_until_ms: int | None
    next_run_at_ms: int | None
    finished_at_ms: int | None
    document_hash: str | None
    cancel_n: int | None
    root_id: str | None


def open_read_only(path: str | os.PathLike[str], busy_timeout_ms: int = 5_000) -> sqlite3.Connection:
    """A connection that can write nothing. Raises sqlite3.OperationalError when there is no such file,
    DatabaseUnavailable when only its log is there."""
    check_log(os.fspath(path))
    db = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True, isolation_level=None)
    db.execute(f"PRAGMA busy_timeout = {busy_timeout_ms:d}")
    db.execute("PRAGMA query_only = 1")
    return db


def check(
    db: sqlite3.Connection,
    *,
    run: str | None = None,
    only: Collection[str] = frozenset(INVARIANTS),
    evidence: Evidence | None = None,
) -> Iterator[Finding]:
    """Every violation there is, as it is found. `run` narrows it to one run (and leaves out what is about the whole
    file); `only` to some invariants. Raises sqlite3.Error when the file cannot be read; that a part of it is damaged
    is a finding, the last one."""
    try:
        for finding in _everything(db, run, frozenset(only), evidence or Evidence()):
            if finding.invariant in only:
                yield finding
    except sqlite3.DatabaseError as error:
        damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT
        if not damaged or "I12" not in only:
            raise
        yield Finding("I12", f"SQLite: {error}; the rest of the file was not checked", RESTORE)


def run_ids(db: sqlite3.Connection) -> Iterator[str]:
    """All of them, page by page: no long read."""
    after = ""
    while page := [id for (id,) in db.execute(_RUN_IDS, (after, RUNS_PAGE)).fetchall()]:
        yield from page
        after = page[-1]


def _everything(db: sqlite3.Connection, run: str | None, only: frozenset[str], evidence: Evidence) -> Iterator[Finding]:
    checker = _Checker(db)
    if run is None and "I12" in only:
        yield from _sound(db)
    if "I1" in only:
        yield from _acknowledged(db, evidence.acknowledged, run)
    if only - {"I11"}:
        for id in [run] if run is not None else run_ids(db):
            with _snapshot(db):
                yield from checker.run(id)
    if "I10" in only:
        for id, events in evidence.transcripts.items():
            if run in (None, id):
                with _snapshot(db):
                    yield from _transcript(db, id, events)
    if "I11" in only and evidence.secrets:
        yield from scan(db, evidence.secrets, run)


@contextmanager
def _snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """All reads inside see one moment. A caller who has a transaction open has chosen the moment."""
    if db.in_transaction:
        yield
        return
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


# --- the whole file


def _sound(db: sqlite3.Connection) -> Iterator[Finding]:
    for (line,) in db.execute(f"PRAGMA integrity_check({INTEGRITY_MAX:d})"):
        if line != "ok":
            yield Finding("I12", f"SQLite: {line}", RESTORE)
    for count, (table, rowid, parent, _) in enumerate(db.execute("PRAGMA foreign_key_check")):
        if count == INTEGRITY_MAX:
            return
        what = f"row {rowid} of {table} refers to a missing row of {parent}"
        yield Finding("I12", what, RESTORE)
    for table, column in _BY_HASH.items():
        for hash, data in db.execute(f"SELECT hash, {column} FROM {table}"):  # noqa: S608 - constants of this file
            if hashlib.sha256(data).hexdigest() != hash:
                yield Finding("I12", f"the bytes of {hash} in {table} do not match their checksum", RESTORE)
    yield from _families(db)
    for name, version, hash, document in db.execute("SELECT name, version, hash, document FROM workflows"):
        if _hash_of_workflow(document) != hash:
            what = f"version {version} of workflow '{name}' does not match its checksum"
            yield Finding("I12", what, RESTORE)


def _families(db: sqlite3.Connection) -> Iterator[Finding]:
    """What is counted of the runs below a root. One statement: one moment."""
    for root, counted, made, open, there in db.execute(_FAMILIES):
        if counted is None:
            yield Finding("I12", f"the {there} runs below it are not counted", OUR_BUG, root)
        elif counted != open or made < there:
            what = f"its family counts {made} runs, {counted} of them open; there are {there}, {open} of them open"
            yield Finding("I12", what, OUR_BUG, root)


def _hash_of_workflow(document: bytes) -> str | None:
    """As it was when it was saved: whatever the order of its keys."""
    try:
        return hashlib.sha256(orjson.dumps(orjson.loads(document), option=orjson.OPT_SORT_KEYS)).hexdigest()
    except orjson.JSONDecodeError:
        return None


def _acknowledged(db: sqlite3.Connection, ids: Collection[str], run: str | None) -> Iterator[Finding]:
    for id in ids:
        if run in (None, id) and not db.execute("SELECT 1 FROM runs WHERE id = ?", (id,)).fetchall():
            yield Finding("I1", "it was acknowledged, but is missing", OUR_BUG, id)


def _transcript(db: sqlite3.Connection, run: str, events: Collection[Any]) -> Iterator[Finding]:
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


def _journal(db: sqlite3.Connection, run: str) -> Iterator[tuple[list[Record], str | None]]:
    """Row by row, the events of each and what is wrong with it."""
    return damaged(run, db.execute(JOURNAL, {"run": run, "after": 0, "upto": SEQ_MAX}))


# --- one run


class _Twice:
    """What may happen once only."""

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
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._plans: OrderedDict[str, Plan | None] = OrderedDict()

    def run(self, id: str) -> Iterator[Finding]:
        """Everything about one run, in the snapshot of the caller. A run that is not there any more is no finding."""
        row = self._db.execute(_RUN, (id,)).fetchone()
        if row is None:
            return
        run = _Run(*row)
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
        yield from twice.findings(id)
        yield from self._owner(run)

    def _plan(self, hash: str) -> Plan | None:
        if hash not in self._plans:
            row = self._db.execute("SELECT ir FROM plans WHERE hash = ?", (hash,)).fetchone()
            whole = row is not None and hashlib.sha256(row[0]).hexdigest() == hash
            try:
                self._plans[hash] = plans.decode(row[0]) if whole else None
            except msgspec.MsgspecError:
                self._plans[hash] = None
            if len(self._plans) > PLANS_MAX:
                self._plans.popitem(last=False)
        return self._plans[hash]

    def _references(self, run: _Run, plan: Plan | None) -> Iterator[Finding]:
        if plan is None:
            yield Finding("I12", f"its plan {run.plan_hash} is missing or damaged", RESTORE, run.id)
        if run.document_hash is not None and not self._there("documents", "hash", run.document_hash):
            yield Finding("I12", f"its document {run.document_hash} is missing", RESTORE, run.id)
        if run.version is not None:
            query = "SELECT 1 FROM workflows WHERE name = ? AND version = ?"
            if not self._db.execute(query, (run.workflow, run.version)).fetchall():
                yield Finding("I12", f"version {run.version} of workflow '{run.workflow}' is missing", RESTORE, run.id)

    def _blob(self, run: _Run, record: Record) -> Iterator[Finding]:
        if record.data is None or b'"blob"' not in record.data:
            return
        hash = (_object(record.data) or {}).get("blob")
        if not isinstance(hash, str):
            return
        if not self._there("blobs", "hash", hash):
            what = f"the output of event {record.seq} (blob {hash}) is missing"
            yield Finding("I12", what, RESTORE, run.id, _key(record.node, record.path))
        elif not self._db.execute("SELECT 1 FROM blob_refs WHERE run_id = ? AND hash = ?", (run.id, hash)).fetchall():
            what = (
                f"`weft gc` would delete the output of event {record.seq} (blob {hash}): it is missing from blob_refs"
            )
            yield Finding("I12", what, RESTORE, run.id, _key(record.node, record.path))

    def _there(self, table: str, column: str, value: str) -> bool:
        query = f"SELECT 1 FROM {table} WHERE {column} = ?"  # noqa: S608 - both are constants of this file
        return bool(self._db.execute(query, (value,)).fetchall())

    def _end(self, run: _Run, last: Record | None) -> Iterator[Finding]:
        """The last event and the row say the same about the end."""
        finished = None
        if last is not None and last.type == "run.finished":
            finished = (_object(last.data) or {}).get("status")
        if finished is None and run.status in TERMINAL:
            yield Finding("I2", f"its row says {run.status}, but its journal has no end", OUR_BUG, run.id)
        elif finished is not None and run.status != finished:
            yield Finding("I2", f"its journal ends as {finished}, but its row says {run.status}", OUR_BUG, run.id)
        if finished == "succeeded" and last is not None and last.output is not None:
            output = self._db.execute("SELECT output FROM runs WHERE id = ?", (run.id,)).fetchone()
            if output != (last.output,):
                yield Finding("I2", "the output in its row differs from its journal", OUR_BUG, run.id)
        if finished is not None and last is not None:
            (error,) = self._db.execute("SELECT error FROM runs WHERE id = ?", (run.id,)).fetchone()
            if _object(error) != ((_object(last.data) or {}).get("error") or {}):
                yield Finding("I2", "the error in its row differs from its journal", OUR_BUG, run.id)
        if (run.finished_at_ms is not None) != (run.status in TERMINAL):
            yield Finding(
                "I2", f"its row says {run.status}, but finished_at_ms is {run.finished_at_ms}", OUR_BUG, run.id
            )

    def _owner(self, run: _Run) -> Iterator[Finding]:
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

    def _folded(self, run: _Run, journal: JournalCheck, twice: _Twice) -> Iterator[Finding]:
        state = journal.state
        inbox = [_object(message) for (message,) in self._db.execute(_INBOX, (run.id,))]
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

    def _cancelled(self, run: _Run, journal: JournalCheck) -> Iterator[Finding]:
        """A cancel that was acknowledged is in the inbox, or the run has heard of it."""
        if run.cancel_n is None or journal.cancelling:
            return
        on_the_way = "SELECT 1 FROM inbox WHERE run_id = ? AND n = ?"
        if run.status in TERMINAL:
            yield Finding("I1", "its cancel request was accepted, but it ended without processing it", OUR_BUG, run.id)
        elif not self._db.execute(on_the_way, (run.id, run.cancel_n)).fetchall():
            fix = f"`weft cancel {run.id}`"
            yield Finding("I1", "its cancel request was accepted, but it has not processed it", fix, run.id)

    def _alarm(self, run: _Run, state: State, messages: bool) -> Iterator[Finding]:
        """An open run will be continued: by its owner, or by the next claim."""
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
        self, run: _Run, journal: JournalCheck, messages: list[dict[str, Any]], twice: _Twice
    ) -> Iterator[Finding]:
        open_ids = {
            journal.codec.wait_id(key, wait.attempt): journal.codec.key_text(key)
            for key, wait in journal.state.waits.items()
        }
        on_the_way = {message.get("wait") for message in messages}
        rows = {}
        for id, node, path, status in self._db.execute(_WAITS, (run.id,)):
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

    def _children(self, run: _Run, journal: JournalCheck, messages: list[dict[str, Any]]) -> Iterator[Finding]:
        """Only the end of a child closes the wait for it."""
        on_the_way = {message.get("wait") for message in messages}
        for node, wait in journal.state.waits.items():
            key = journal.codec.key_text(node)
            id = format_wait(key, wait.attempt)
            if wait.kind != "child" or id in on_the_way:
                continue
            child = self._db.execute(_CHILD, (run.id, id)).fetchone()
            fix = f"`weft cancel {run.id}`, then `weft retry {run.id} {key}`"
            if child is None:
                yield Finding("I8", "it waits for a child run that does not exist", fix, run.id, key)
            elif child[1] in TERMINAL:
                what = f"its child run {child[0]} has ended, but it has not processed that"
                yield Finding("I1", what, fix, run.id, key)


def _object(data: bytes | None) -> dict[str, Any] | None:
    """None when it is damaged."""
    try:
        value = orjson.loads(data or b"{}")
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _key(node: str | None, path: str) -> str:
    return join_key(node or "", path)
