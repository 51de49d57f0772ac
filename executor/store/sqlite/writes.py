"""What the SQLite store writes: one function per change, run by the writer inside a group's transaction.

The rule of the group: raise a WeftError only before the first write. A function reads and writes through `tx.db`;
journal rows go to `tx.events`, which is written just before the commit (nothing here reads events).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from executor.errors import Fenced, Unheard
from executor.store.rows import (
    TERMINAL,
    Answered,
    Append,
    Appended,
    DraftRow,
    Mended,
    NewRun,
    Record,
    RunRow,
    RunStatus,
    SignalRow,
    WaitRow,
)
from executor.store.sqlite import statements as sql
from executor.store.sqlite.cache import put_cached
from executor.store.sqlite.checksum import checksum
from executor.store.sqlite.children import add_to_family, append_to_family, check_family, end_family
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.lifecycle import check_sources, move_run
from executor.store.sqlite.notifications import add_notifications
from executor.store.sqlite.upkeep import ADD_BLOB_REF, add_copied_blob_refs


def append(tx: Tx, change: Append) -> Appended:
    """See Store.append. The fence comes first: without its row nothing has been written."""
    db = tx.db
    run = change.run_id
    seq = change.expected_seq + len(change.records)
    finished = change.finished or change.status in TERMINAL
    assert not finished or change.status in TERMINAL, f"run {run} cannot finish as {change.status}"
    if change.children:
        check_family(tx, change)
    if change.status is None and change.output is None and change.error is None:
        fence = db.execute(sql.ADVANCE, (seq, run, change.epoch, change.expected_seq))
    else:
        fence = db.execute(
            sql.ADVANCE_AND_FINISH if finished else sql.ADVANCE_AND_CHANGE,
            {
                "seq": seq,
                "id": run,
                "epoch": change.epoch,
                "expected_seq": change.expected_seq,
                "status": change.status,
                "output": change.output,
                "error": change.error,
                "now": change.now_ms,
                "consumed": msgspec.json.encode(change.consumed_inbox).decode() if finished else None,
            },
        )
    if fence.rowcount != 1:
        if finished and db.execute(sql.IS_CURRENT, (run, change.epoch, change.expected_seq)).fetchall():
            raise Unheard(f"run {run} has not processed its cancel request", run=run)
        raise Fenced(f"run {run}: epoch {change.epoch} at seq {change.expected_seq} is no longer current", run=run)
    _add_events(tx, run, change.expected_seq, change.records)
    for wait in change.waits:
        db.execute(sql.ADD_WAIT, msgspec.structs.astuple(wait))
    for closed in change.closed_waits:
        db.execute(sql.CLOSE_WAIT, (closed.status, closed.response, closed.answered_by, closed.at_ms, run, closed.id))
    for n in change.consumed_inbox:
        db.execute(sql.DELETE_FACT, (run, n))
    for signal, consumer in change.consumed_signals:
        db.execute(sql.CONSUME_SIGNAL, (consumer, run, signal))
    for blob in change.blobs:
        db.execute(sql.ADD_BLOB, blob)
        db.execute(ADD_BLOB_REF, (run, blob[0]))
    add_notifications(tx, change.notifications)
    for child in change.children:
        create_run(tx, child)
    for target, fact in change.posts:
        post_fact(tx, target, fact, change.now_ms)
    for target, fact in change.cancels:
        cancel_run(tx, target, fact, change.now_ms)
    put_cached(tx, change.cached)
    move_run(tx, run, change.move)
    if finished:
        db.execute(sql.CANCEL_WAITS, (change.now_ms, run))
        db.execute(sql.DELETE_FACTS, (run,))
    return Appended(seq, 0 if finished else _newest_fact(tx, run), append_to_family(tx, change, finished))


def _newest_fact(tx: Tx, run: str) -> int:
    """One look for the whole group says that there is none: that is nearly always so."""
    if tx.facts is None:
        tx.facts = bool(tx.db.execute(sql.ANY_FACT).fetchone()[0])
    if not tx.facts:
        return 0
    (n,) = tx.db.execute(sql.NEWEST_FACT, (run,)).fetchone()
    assert isinstance(n, int)
    return n


def put_draft(
    tx: Tx, id: str, expected_rev: int, name: str, document: bytes, now_ms: int, base_version: int | None
) -> tuple[DraftRow | None, bool]:
    old = _draft(tx, id)
    if expected_rev != (0 if old is None else old.rev):
        return old, False
    if old is None:
        based = base_version is not None
        new = DraftRow(
            id, name, 1, name if based else None, base_version, 1 if based else None, now_ms, now_ms, document
        )
        tx.db.execute(sql.ADD_DRAFT, msgspec.structs.astuple(new))
        return new, True
    new = msgspec.structs.replace(old, name=name, rev=expected_rev + 1, updated_at_ms=now_ms, document=document)
    tx.db.execute(sql.REVISE_DRAFT, (name, new.rev, now_ms, document, id, expected_rev))
    return new, True


def rebase_draft(tx: Tx, id: str, rev: int, workflow: str, version: int) -> DraftRow | None:
    tx.db.execute(sql.REBASE_DRAFT, (workflow, version, rev, id))
    return _draft(tx, id)


def delete_draft(tx: Tx, id: str, expected_rev: int | None) -> bool:
    if expected_rev is None:
        return tx.db.execute(sql.DELETE_DRAFT, (id,)).rowcount == 1
    return tx.db.execute(sql.DELETE_DRAFT_AT_REV, (id, expected_rev)).rowcount == 1


def _draft(tx: Tx, id: str) -> DraftRow | None:
    found = tx.db.execute(sql.DRAFT_BY_ID, (id,)).fetchall()
    return DraftRow(*found[0]) if found else None


def create_run(tx: Tx, run: NewRun) -> tuple[RunRow, bool]:
    if run.idempotency_key is not None:
        found = tx.db.execute(sql.RUN_BY_IDEMPOTENCY_KEY, (run.workflow, run.idempotency_key)).fetchall()
        if found:
            return RunRow(*found[0]), False
    check_sources(tx, run.sources)
    root = None if run.parent_run_id is None else add_to_family(tx, run.parent_run_id)
    tx.db.execute(sql.ADD_PLAN, (run.plan_hash, run.plan))
    if run.document is not None:
        assert run.document_hash is not None
        tx.db.execute(sql.ADD_DOCUMENT, (run.document_hash, run.document))
    tx.db.execute(
        sql.ADD_RUN,
        {
            "id": run.id,
            "workflow": run.workflow,
            "version": run.version,
            "plan_hash": run.plan_hash,
            "input": run.input,
            "seq": len(run.records),
            "now": run.now_ms,
            "idempotency_key": run.idempotency_key,
            "request_hash": run.request_hash,
            "parent_run_id": run.parent_run_id,
            "parent_key": run.parent_key,
            "document_hash": run.document_hash,
            "draft_id": run.draft_id,
            "draft_rev": run.draft_rev,
            "root_id": root,
        },
    )
    _add_events(tx, run.id, 0, run.records)
    for wait in run.waits:
        tx.db.execute(sql.ADD_WAIT, msgspec.structs.astuple(wait))
    for signal in run.signals:
        tx.db.execute(sql.ADD_SIGNAL, msgspec.structs.astuple(signal))
    for blob in run.blobs:
        tx.db.execute(sql.ADD_BLOB, blob)
    add_copied_blob_refs(tx, run.id, run.records)
    return RunRow(*tx.db.execute(sql.RUN_BY_ID, (run.id,)).fetchone()), True


def claim(tx: Tx, owner: str, now_ms: int, lease_ms: int, limit: int, run_id: str | None) -> list[RunRow]:
    if run_id is None:
        found = tx.db.execute(sql.FIND_CLAIMABLE, (now_ms, limit)).fetchall()
    else:
        found = tx.db.execute(sql.FIND_CLAIMABLE_RUN, (run_id, now_ms)).fetchall()[:limit]
    rows = [RunRow(*row) for row in found]
    gone = {row.former_owner for row in rows if row.former_owner is not None}
    held: dict[str | None, int] = {}
    if gone:
        held = dict(tx.db.execute(sql.COUNT_HELD, (msgspec.json.encode(sorted(gone)).decode(),)).fetchall())
    return [_take_lease(tx, row, owner, now_ms, lease_ms, held.get(row.former_owner, 0) > 1) for row in rows]


def _take_lease(tx: Tx, run: RunRow, owner: str, now_ms: int, lease_ms: int, together: bool) -> RunRow:
    run = msgspec.structs.replace(
        run,
        lease_owner=owner,
        lease_until_ms=now_ms + lease_ms,
        epoch=run.epoch + 1,
        stalls=run.stalls + 1,
        status="running",
        started_at_ms=now_ms if run.started_at_ms is None else run.started_at_ms,
        lost_together=together,
        orphaned=bool(run.orphaned),
    )
    tx.db.execute(
        sql.TAKE_LEASE, (run.lease_owner, run.lease_until_ms, run.epoch, run.stalls, run.started_at_ms, run.id)
    )
    return run


def mend_clock(tx: Tx, now_ms: int, lease_max_ms: int) -> Mended:
    times = {"now": now_ms, "latest": now_ms + lease_max_ms}
    mended = Mended(*tx.db.execute(sql.FIND_OTHER_TIMES, times).fetchone())
    if mended.runs:
        tx.db.execute(sql.MEND_CLOCK, times)
    return mended


def renew(tx: Tx, owner: str, run_ids: Sequence[str], now_ms: int, lease_ms: int) -> set[str]:
    wanted = msgspec.json.encode(list(run_ids)).decode()
    rows = tx.db.execute(sql.RENEW_LEASES, {"until": now_ms + lease_ms, "runs": wanted, "owner": owner}).fetchall()
    return {run_id for (run_id,) in rows}


def release(tx: Tx, run_id: str, epoch: int, seq: int, next_run_at_ms: int | None, status: RunStatus) -> bool:
    change = {"id": run_id, "epoch": epoch, "seq": seq, "next_run_at": next_run_at_ms, "status": status}
    return tx.db.execute(sql.RELEASE_LEASE, change).rowcount == 1


def post_fact(tx: Tx, run_id: str, fact: bytes, now_ms: int, wake: str = sql.WAKE) -> bool:
    woken = tx.db.execute(wake, {"id": run_id, "now": now_ms}).fetchall()
    if not woken:
        return False
    tx.db.execute(sql.ADD_FACT, (run_id, woken[0][0], fact))
    tx.facts = True
    return True


def cancel_run(tx: Tx, run_id: str, fact: bytes, now_ms: int) -> bool:
    end_family(tx, run_id)
    return post_fact(tx, run_id, fact, now_ms, sql.WAKE_TO_CANCEL)


def answer_wait(tx: Tx, token_hash: str, response: bytes, by: str | None, fact: bytes, now_ms: int) -> Answered | None:
    found = tx.db.execute(sql.WAIT_BY_TOKEN, (token_hash,)).fetchall()
    if not found:
        return None
    wait = WaitRow(*found[0])
    if wait.status != "pending":
        return Answered(False, wait)
    # Ending a run cancels its waits, so a pending one has an open run.
    posted = post_fact(tx, wait.run_id, fact, now_ms)
    assert posted, f"wait {wait.id} of run {wait.run_id} is pending, but the run has ended"
    tx.db.execute(sql.CLOSE_WAIT, ("answered", response, by, now_ms, wait.run_id, wait.id))
    return Answered(
        True,
        msgspec.structs.replace(wait, status="answered", response=response, answered_by=by, answered_at_ms=now_ms),
    )


def cancel_wait(tx: Tx, run_id: str, wait_id: str, by: str | None, fact: bytes, now_ms: int) -> Answered | None:
    found = tx.db.execute(sql.WAIT_BY_ID, (run_id, wait_id)).fetchall()
    if not found:
        return None
    wait = WaitRow(*found[0])
    if wait.status != "pending":
        return Answered(False, wait)
    posted = post_fact(tx, run_id, fact, now_ms)
    assert posted, f"wait {wait_id} of run {run_id} is pending, but the run has ended"
    tx.db.execute(sql.CANCEL_WAIT, (by, now_ms, run_id, wait_id))
    return Answered(True, msgspec.structs.replace(wait, status="cancelled", answered_by=by, answered_at_ms=now_ms))


def expire_wait(tx: Tx, run_id: str, wait_id: str, fact: bytes, now_ms: int) -> bool:
    if tx.db.execute(sql.CLOSE_WAIT, ("expired", None, None, now_ms, run_id, wait_id)).rowcount != 1:
        return False
    posted = post_fact(tx, run_id, fact, now_ms)
    assert posted, f"wait {wait_id} of run {run_id} was pending, but the run has ended"
    return True


def post_signal(
    tx: Tx,
    run_id: str,
    name: str,
    correlation: str | None,
    payload: bytes,
    dedupe_key: str | None,
    by: str | None,
    fact: bytes,
    now_ms: int,
) -> tuple[SignalRow, bool] | None:
    if dedupe_key is not None:
        found = tx.db.execute(sql.SIGNAL_BY_DEDUPE_KEY, (run_id, dedupe_key)).fetchall()
        if found:
            return SignalRow(*found[0]), False
    if not post_fact(tx, run_id, fact, now_ms):
        return None
    (last,) = tx.db.execute(sql.SIGNAL_LAST_SEQ, (run_id,)).fetchone()
    row = SignalRow(run_id, last + 1, name, correlation, payload, dedupe_key, now_ms, by)
    tx.db.execute(sql.ADD_SIGNAL, msgspec.structs.astuple(row))
    return row, True


def ping(tx: Tx) -> None:
    tx.db.execute(sql.PING_WRITE)


def _add_events(tx: Tx, run_id: str, after: int, records: Sequence[Record]) -> None:
    """The store numbers the rows; what `Record.seq` says does not matter here."""
    for seq, r in enumerate(records, after + 1):
        row = (run_id, seq, r.at_ms, r.type, r.node, r.path, r.attempt, r.data, r.output)
        tx.events.append((*row, checksum(row)))
