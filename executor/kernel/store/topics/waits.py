"""Durable pauses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from executor.kernel.store.statements import COUNT_MAX, Readers, Tx, columns, those_of
from executor.kernel.store.topics.families import BELOW
from executor.kernel.store.topics.inbox import post_message

WaitStatus = Literal["pending", "answered", "cancelled", "expired"]


class WaitRow(Struct, frozen=True):
    """One opening of a durable pause. `id` is unique per run and opening (node key text + '!' + attempt).
    `name` and `correlation` are for signals. `request` is what is shown, `schema` the form, both JSON."""

    run_id: str
    id: str
    node: str
    path: str
    kind: str
    token_hash: str
    request: bytes
    schema: bytes | None
    status: WaitStatus
    opened_at_ms: int
    expires_at_ms: int | None = None
    on_expire: str = "fail"
    name: str | None = None
    correlation: str | None = None
    response: bytes | None = None
    answered_by: str | None = None
    answered_at_ms: int | None = None


class WaitUpdate(Struct, frozen=True):
    id: str
    status: Literal["cancelled", "expired", "answered"]
    response: bytes | None = None
    answered_by: str | None = None
    at_ms: int | None = None


class Answered(Struct, frozen=True):
    """Outcome of `answer_wait`: `won` is True if this call closed the wait; `wait` is the row as it is now."""

    won: bool
    wait: WaitRow


WAIT = columns(WaitRow)
_VALUES = ", ".join(f":{name}" for name in WaitRow.__struct_fields__)
ADD_WAIT = f"""INSERT INTO waits ({WAIT}, workflow)
VALUES ({_VALUES}, (SELECT workflow FROM run_details WHERE id = :run_id))"""
# No row: it was closed before, or there is none.
CLOSE_WAIT = f"""
UPDATE waits SET status = :status, response = :response, answered_by = :by, answered_at_ms = :now
 WHERE run_id = :run AND id = :id AND status = 'pending' RETURNING {WAIT}"""
# Its link may have been made anew since it was found.
CLOSE_WAIT_OF_LINK = CLOSE_WAIT.replace(" RETURNING", " AND token_hash = :token RETURNING")
# A run that has ended waits for nothing.
# `IS TRUE` keeps SQLite from the index of all pending waits: these are waits of one run.
CANCEL_WAITS = """
UPDATE waits SET status = 'cancelled', answered_at_ms = :now
 WHERE run_id = :run AND (status = 'pending') IS TRUE"""
WAIT_BY_TOKEN = f"SELECT {WAIT} FROM waits WHERE token_hash = :token"
WAIT_BY_ID = f"SELECT {WAIT} FROM waits WHERE run_id = :run AND id = :id"
# Oldest first: WAITS, then any of the conditions, then WAITS_PAGE.
WAITS = f"SELECT {WAIT} FROM waits WHERE true"
# Pending ones are few. All others are in indexes with a condition, which a query must repeat literally.
STATUSES: tuple[WaitStatus, ...] = ("pending", "answered", "expired", "cancelled")
WAITS_OF_STATUS = {
    each: f" AND status = '{each}'" + ("" if each == "pending" else " AND status <> 'pending'") for each in STATUSES
}
WAITS_OF_STATUS_IN_RUN = " AND (status = :status) IS TRUE"
WAITS_OF_RUN = " AND run_id = :run"
WAITS_OF_KIND = " AND kind = :kind"
WAITS_OF_KEY = " AND rtrim(id, '0123456789') = :key || '!'"  # an id is the node key, `!`, and the attempt
WAITS_OF_WORKFLOW = " AND workflow = :workflow"
WAITS_BEHIND = """
 AND (opened_at_ms, run_id, id) >
     (SELECT opened_at_ms, run_id, id FROM waits WHERE run_id = :before_run AND id = :before_id)"""
WAITS_PAGE = " ORDER BY opened_at_ms, run_id, id LIMIT :limit"
# By status, none counted further than COUNT_MAX: of each COUNT_WAITS, any of the conditions, and COUNT_TO_MAX.
COUNT_WAITS = "SELECT '{status}', count(*) FROM (SELECT 1 FROM waits WHERE true"
COUNT_TO_MAX = f" LIMIT {COUNT_MAX}) AS counted"
BY_STATUS = " GROUP BY status"
WAITS_BELOW = f"""{BELOW}
SELECT {WAIT} FROM waits
 WHERE run_id IN (SELECT id FROM below) AND (status = 'pending') IS TRUE AND kind <> 'child'
 ORDER BY opened_at_ms, run_id, id LIMIT :limit"""


async def find_wait(readers: Readers, token_hash: str) -> WaitRow | None:
    return await readers.fetch_one(WaitRow, WAIT_BY_TOKEN, {"token": token_hash})


async def get_wait(readers: Readers, run_id: str, wait_id: str) -> WaitRow | None:
    return await readers.fetch_one(WaitRow, WAIT_BY_ID, {"run": run_id, "id": wait_id})


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
    """Oldest first (opened_at, run id, id), over all runs unless narrowed. `key`: of the node that waits.
    `before`: run and wait id that ended the previous page."""
    where = those_of(
        (WAITS_OF_RUN, run_id),
        (WAITS_OF_KEY, key),
        (WAITS_OF_KIND, kind),
        (WAITS_OF_WORKFLOW, workflow),
        (WAITS_BEHIND, before),
    )
    if run_id is not None:
        query = WAITS + those_of((WAITS_OF_STATUS_IN_RUN, status)) + where + WAITS_PAGE
    elif status is not None:
        query = WAITS + WAITS_OF_STATUS[status] + where + WAITS_PAGE
    else:  # the first of each status, and of those the first
        pages = [
            f"SELECT * FROM ({WAITS}{of_status}{where}{WAITS_PAGE}) AS page" for of_status in WAITS_OF_STATUS.values()
        ]
        query = f"SELECT * FROM ({' UNION ALL '.join(pages)}) AS pages{WAITS_PAGE}"
    values = {"status": status, "run": run_id, "key": key, "kind": kind, "workflow": workflow, "limit": limit}
    values["before_run"], values["before_id"] = before or (None, None)
    return await readers.fetch(WaitRow, query, values)


async def count_waits(
    readers: Readers, run_id: str | None = None, kind: str | None = None, workflow: str | None = None
) -> dict[str, int]:
    """Count waits by status; a status without waits is left out, and COUNT_MAX means that number or more."""
    where = those_of((WAITS_OF_KIND, kind), (WAITS_OF_WORKFLOW, workflow))
    if run_id is not None:
        query = "SELECT status, count(*) FROM waits WHERE run_id = :run" + where + BY_STATUS
    else:
        query = " UNION ALL ".join(
            COUNT_WAITS.format(status=status) + of_status + where + COUNT_TO_MAX
            for status, of_status in WAITS_OF_STATUS.items()
        )
    counts = await readers.all(query, {"run": run_id, "kind": kind, "workflow": workflow})
    return {status: min(count, COUNT_MAX) for status, count in counts if count}


async def list_waits_below(readers: Readers, run_id: str, limit: int = 200) -> list[WaitRow]:
    return await readers.fetch(WaitRow, WAITS_BELOW, {"run": run_id, "limit": limit})


def answer_wait(
    tx: Tx, token_hash: str, response: bytes, by: str | None, message: bytes, now_ms: int
) -> Answered | None:
    """pending -> answered once, with a message for the run. Returns None if there is no such wait."""
    answered = close_by_link(tx, token_hash, response, by, now_ms)
    if answered is not None and answered.won:
        post_to_open(tx, answered.wait.run_id, message, now_ms)
    return answered


def close_by_link(tx: Tx, token_hash: str, response: bytes, by: str | None, now_ms: int) -> Answered | None:
    """pending -> answered once; the message for the run is to follow. Returns None if there is no such wait."""
    wait = tx.fetch_one(WaitRow, WAIT_BY_TOKEN, {"token": token_hash})
    if wait is None:
        return None
    answered = _close(tx, wait.run_id, WaitUpdate(wait.id, "answered", response, by, now_ms), token_hash)
    return answered if answered is not None and answered.wait.token_hash == token_hash else None


def post_to_open(tx: Tx, run_id: str, message: bytes, now_ms: int) -> None:
    """Post a message about a wait that was pending just now: ending a run cancels its waits, so the run is open."""
    posted = post_message(tx, run_id, message, now_ms)
    assert posted, f"a wait of run {run_id} was pending, but the run has ended"


def cancel_wait(tx: Tx, run_id: str, wait_id: str, by: str | None, message: bytes, now_ms: int) -> Answered | None:
    """pending -> cancelled once, returned as by `answer_wait`; None if there is no such wait."""
    closed = _close(tx, run_id, WaitUpdate(wait_id, "cancelled", None, by, now_ms))
    if closed is not None and closed.won:
        post_to_open(tx, run_id, message, now_ms)
    return closed


def expire_wait(tx: Tx, run_id: str, wait_id: str, message: bytes, now_ms: int) -> bool:
    """pending -> expired once, with a message for the run. Returns False if it was not pending."""
    closed = _close(tx, run_id, WaitUpdate(wait_id, "expired", at_ms=now_ms))
    if closed is None or not closed.won:
        return False
    post_to_open(tx, run_id, message, now_ms)
    return True


def _close(tx: Tx, run_id: str, change: WaitUpdate, token_hash: str | None = None) -> Answered | None:
    """Close a wait once, by the link `token_hash` if it is given. Returns None if there is none."""
    tx.lock(run_id)
    closed = _close_wait(tx, run_id, change, token_hash)
    if closed is not None:
        return Answered(True, closed)
    found = tx.fetch_one(WaitRow, WAIT_BY_ID, {"run": run_id, "id": change.id})
    return None if found is None else Answered(False, found)


def _close_wait(tx: Tx, run_id: str, change: WaitUpdate, token_hash: str | None = None) -> WaitRow | None:
    values = {"run": run_id, "id": change.id, "status": change.status, "response": change.response}
    of_link = {} if token_hash is None else {"token": token_hash}
    statement = CLOSE_WAIT_OF_LINK if of_link else CLOSE_WAIT
    return tx.fetch_one(WaitRow, statement, {**values, "by": change.answered_by, "now": change.at_ms, **of_link})


def add_waits(tx: Tx, waits: Sequence[WaitRow]) -> None:
    tx.add_rows(ADD_WAIT, [msgspec.structs.asdict(wait) for wait in waits])


def close_waits(tx: Tx, run_id: str, closed: Sequence[WaitUpdate]) -> None:
    """Part of an append. One that was closed before stays as it is."""
    for wait in closed:
        _close_wait(tx, run_id, wait)


def cancel_waits(tx: Tx, run_id: str, now_ms: int) -> None:
    tx.do(CANCEL_WAITS, {"run": run_id, "now": now_ms})
