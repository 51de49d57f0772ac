"""Durable pauses."""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from executor.store.rows import Answered, WaitRow, WaitStatus, WaitUpdate
from executor.store.sqlite.conditions import BY_STATUS, narrowed
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.families import BELOW
from executor.store.sqlite.inbox import post_message
from executor.store.sqlite.readers import Readers

WAIT = (
    "run_id, id, node, path, kind, token_hash, request, schema, status, opened_at_ms, expires_at_ms, on_expire, name,"
    " correlation, response, answered_by, answered_at_ms"
)
_VALUES = ", ".join(f":{name}" for name in WaitRow.__struct_fields__)
ADD_WAIT = f"""INSERT INTO waits ({WAIT}, workflow)
VALUES ({_VALUES}, (SELECT workflow FROM runs WHERE id = :run_id))"""
CLOSE_WAIT = """
UPDATE waits SET status = ?, response = ?, answered_by = ?, answered_at_ms = ?
 WHERE run_id = ? AND id = ? AND status = 'pending'"""
# A run that has ended waits for nothing.
# Of one run, `IS TRUE` keeps SQLite from the index of all pending waits.
CANCEL_WAITS = """
UPDATE waits SET status = 'cancelled', answered_at_ms = ?
 WHERE run_id = ? AND (status = 'pending') IS TRUE"""
WAIT_BY_TOKEN = f"SELECT {WAIT} FROM waits WHERE token_hash = ?"
WAIT_BY_ID = f"SELECT {WAIT} FROM waits WHERE run_id = ? AND id = ?"
# Oldest first: WAITS, then any of the conditions, then WAITS_PAGE.
WAITS = f"SELECT {WAIT} FROM waits WHERE true"
WAITS_OF_STATUS = " AND status = ?"
WAITS_OF_STATUS_IN_RUN = " AND (status = ?) IS TRUE"
WAITS_OF_RUN = " AND run_id = ?"
WAITS_OF_KIND = " AND kind = ?"
WAITS_OF_KEY = " AND rtrim(id, '0123456789') = ? || '!'"  # an id is the node key, `!`, and the attempt
WAITS_OF_WORKFLOW = " AND workflow = ?"
WAITS_BEHIND = (
    " AND (opened_at_ms, run_id, id) > (SELECT opened_at_ms, run_id, id FROM waits WHERE run_id = ? AND id = ?)"
)
WAITS_PAGE = " ORDER BY opened_at_ms, run_id, id LIMIT ?"
# By status: COUNT_WAITS, then any of the conditions but that of the status, then BY_STATUS.
COUNT_WAITS = "SELECT status, count(*) FROM waits WHERE true"
WAITS_BELOW = f"""{BELOW}
SELECT {WAIT} FROM waits WHERE run_id IN below AND (status = 'pending') IS TRUE AND kind <> 'child'
 ORDER BY opened_at_ms, run_id, id LIMIT ?2"""


async def find_wait(readers: Readers, token_hash: str) -> WaitRow | None:
    row = await readers.one(WAIT_BY_TOKEN, (token_hash,))
    return None if row is None else WaitRow(*row)


async def get_wait(readers: Readers, run_id: str, wait_id: str) -> WaitRow | None:
    row = await readers.one(WAIT_BY_ID, (run_id, wait_id))
    return None if row is None else WaitRow(*row)


async def list_waits(
    readers: Readers,
    status: WaitStatus | None = "pending",
    run_id: str | None = None,
    limit: int = 200,
    *,
    kind: str | None = None,
    workflow: str | None = None,
    key: str | None = None,
    before: tuple[str, str] | None = None,
) -> list[WaitRow]:
    where, values = narrowed(
        (WAITS_OF_STATUS if run_id is None else WAITS_OF_STATUS_IN_RUN, status),
        (WAITS_OF_RUN, run_id),
        (WAITS_OF_KEY, key),
        (WAITS_OF_KIND, kind),
        (WAITS_OF_WORKFLOW, workflow),
    )
    if before is not None:
        where, values = where + WAITS_BEHIND, [*values, *before]
    return [WaitRow(*row) for row in await readers.all(WAITS + where + WAITS_PAGE, (*values, limit))]


async def count_waits(
    readers: Readers, run_id: str | None = None, kind: str | None = None, workflow: str | None = None
) -> dict[str, int]:
    where, values = narrowed((WAITS_OF_RUN, run_id), (WAITS_OF_KIND, kind), (WAITS_OF_WORKFLOW, workflow))
    return dict(await readers.all(COUNT_WAITS + where + BY_STATUS, tuple(values)))


async def list_waits_below(readers: Readers, run_id: str, limit: int = 200) -> list[WaitRow]:
    return [WaitRow(*row) for row in await readers.all(WAITS_BELOW, (run_id, limit))]


def answer_wait(
    tx: Tx, token_hash: str, response: bytes, by: str | None, message: bytes, now_ms: int
) -> Answered | None:
    found = tx.db.execute(WAIT_BY_TOKEN, (token_hash,)).fetchall()
    if not found:
        return None
    wait = WaitRow(*found[0])
    if wait.status != "pending":
        return Answered(False, wait)
    # Ending a run cancels its waits, so a pending one has an open run.
    posted = post_message(tx, wait.run_id, message, now_ms)
    assert posted, f"wait {wait.id} of run {wait.run_id} is pending, but the run has ended"
    tx.db.execute(CLOSE_WAIT, ("answered", response, by, now_ms, wait.run_id, wait.id))
    return Answered(
        True,
        msgspec.structs.replace(wait, status="answered", response=response, answered_by=by, answered_at_ms=now_ms),
    )


def cancel_wait(tx: Tx, run_id: str, wait_id: str, by: str | None, message: bytes, now_ms: int) -> Answered | None:
    found = tx.db.execute(WAIT_BY_ID, (run_id, wait_id)).fetchall()
    if not found:
        return None
    wait = WaitRow(*found[0])
    if wait.status != "pending":
        return Answered(False, wait)
    posted = post_message(tx, run_id, message, now_ms)
    assert posted, f"wait {wait_id} of run {run_id} is pending, but the run has ended"
    tx.db.execute(CLOSE_WAIT, ("cancelled", None, by, now_ms, run_id, wait_id))
    return Answered(True, msgspec.structs.replace(wait, status="cancelled", answered_by=by, answered_at_ms=now_ms))


def expire_wait(tx: Tx, run_id: str, wait_id: str, message: bytes, now_ms: int) -> bool:
    if tx.db.execute(CLOSE_WAIT, ("expired", None, None, now_ms, run_id, wait_id)).rowcount != 1:
        return False
    posted = post_message(tx, run_id, message, now_ms)
    assert posted, f"wait {wait_id} of run {run_id} was pending, but the run has ended"
    return True


def add_waits(tx: Tx, waits: Sequence[WaitRow]) -> None:
    """Part of an append, and of creating a run."""
    for wait in waits:
        tx.db.execute(ADD_WAIT, msgspec.structs.asdict(wait))


def close_waits(tx: Tx, run_id: str, closed: Sequence[WaitUpdate]) -> None:
    """Part of an append."""
    for wait in closed:
        tx.db.execute(CLOSE_WAIT, (wait.status, wait.response, wait.answered_by, wait.at_ms, run_id, wait.id))


def cancel_waits(tx: Tx, run_id: str, now_ms: int) -> None:
    """Part of the append that ends the run."""
    tx.db.execute(CANCEL_WAITS, (now_ms, run_id))
