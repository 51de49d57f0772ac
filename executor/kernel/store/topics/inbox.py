"""Messages in the inbox of a run, and signals."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from executor.kernel.store.statements import HEAD_OF_ID, Readers, Tx, columns, insert, lock_run, those_of
from executor.kernel.store.topics.families import end_family


class InboxRow(Struct, frozen=True):
    """A message for the run's owner. `n` is unique per run and growing."""

    run_id: str
    n: int
    message: bytes


class SignalRow(Struct, frozen=True):
    run_id: str
    seq: int
    name: str
    correlation: str | None
    payload: bytes
    dedupe_key: str | None
    received_at_ms: int
    received_by: str | None
    consumed_by: str | None = None


# The next inbox number of an open run, which is due now. A run whose lease is live was due before: nothing changes
# for it, and its owner finds the message because RELEASE_LEASE looks into the inbox.
WAKE = f"""
UPDATE heads SET inbox_n = inbox_n + 1, due_ms = CASE WHEN due_ms < :now THEN due_ms ELSE :now END
 WHERE {HEAD_OF_ID} RETURNING inbox_n"""
WAKE_TO_CANCEL = WAKE.replace(
    "inbox_n = inbox_n + 1", "inbox_n = inbox_n + 1, cancel_n = inbox_n + 1, blocked_by = NULL"
)
ADD_MESSAGE = "INSERT INTO inbox (run_id, n, fact, plan_hash) VALUES (:run, :n, :message, :plan)"
INBOX = "SELECT run_id, n, fact FROM inbox WHERE run_id = :run ORDER BY n"
NEWEST_MESSAGE = "SELECT coalesce(max(n), 0) FROM inbox WHERE run_id = :run"
DELETE_MESSAGE = "DELETE FROM inbox WHERE run_id = :run AND n = :n"
# Messages that came too late: an ended run processes none.
DELETE_MESSAGES = "DELETE FROM inbox WHERE run_id = :run"


async def read_inbox(readers: Readers, run_id: str) -> list[InboxRow]:
    return await readers.fetch(InboxRow, INBOX, {"run": run_id})


def post_message(tx: Tx, run_id: str, message: bytes, now_ms: int, plan_hash: str | None = None) -> bool:
    """Append to the inbox and make the run due now. `plan_hash` is of the plan that the message asks the
    run to move to. Returns False if there is no such run, or it has ended."""
    return _post(tx, run_id, message, now_ms, WAKE, plan_hash)


def cancel_run(tx: Tx, run_id: str, message: bytes, now_ms: int) -> bool:
    """As `post_message`; the run cannot end before it has consumed this one. A root's family is then over."""
    posted = _post(tx, run_id, message, now_ms, WAKE_TO_CANCEL)
    end_family(tx, run_id)
    return posted


def _post(tx: Tx, run_id: str, message: bytes, now_ms: int, wake: str, plan: str | None = None) -> bool:
    woken = tx.rows(wake, {"id": run_id, "now": now_ms})
    if not woken:
        return False
    tx.do(ADD_MESSAGE, {"run": run_id, "n": woken[0][0], "message": message, "plan": plan})
    tx.messages = True
    return True


def delete_messages(tx: Tx, run_id: str, numbers: Sequence[int]) -> None:
    for n in numbers:
        tx.do(DELETE_MESSAGE, {"run": run_id, "n": n})


def delete_all_messages(tx: Tx, run_id: str) -> None:
    if _has_messages(tx):
        tx.do(DELETE_MESSAGES, {"run": run_id})


def newest_message(tx: Tx, run: str) -> int:
    if not _has_messages(tx):
        return 0
    (n,) = tx.look(NEWEST_MESSAGE, {"run": run})
    assert isinstance(n, int)
    return n


def _has_messages(tx: Tx) -> bool:
    """Return True if any inbox has messages: nearly always none has, so a group asks once."""
    if tx.messages is None:
        tx.messages = bool(tx.look("SELECT EXISTS (SELECT 1 FROM inbox)")[0])
    return tx.messages


# --- signals

SIGNAL = columns(SignalRow)
SIGNAL_BY_DEDUPE_KEY = f"SELECT {SIGNAL} FROM signals WHERE run_id = :run AND dedupe_key = :key"
ADD_SIGNAL = insert("signals", SignalRow)
CONSUME_SIGNAL = "UPDATE signals SET consumed_by = :consumer WHERE run_id = :run AND seq = :seq"
SIGNALS_UNCONSUMED = f"SELECT {SIGNAL} FROM signals WHERE run_id = :run AND consumed_by IS NULL ORDER BY seq"
# Signals of a run: SIGNALS, then any of the conditions, then SIGNALS_PAGE.
SIGNALS = f"SELECT {SIGNAL} FROM signals WHERE run_id = :run"
SIGNALS_OF_NAME = " AND name = :name"
SIGNALS_OF_CORRELATION = " AND correlation = :correlation"
SIGNALS_SINCE = " AND received_at_ms >= :since"
SIGNALS_PAGE = " ORDER BY seq LIMIT :limit"


async def unconsumed_signals(readers: Readers, run_id: str) -> list[SignalRow]:
    return await readers.fetch(SignalRow, SIGNALS_UNCONSUMED, {"run": run_id})


async def list_signals(
    readers: Readers,
    run_id: str,
    name: str | None = None,
    correlation: str | None = None,
    received_after_ms: int | None = None,
    limit: int = 200,
) -> list[SignalRow]:
    """In order of arrival, consumed ones too. `received_after_ms` is inclusive: two may be of one millisecond."""
    where = those_of((SIGNALS_OF_NAME, name), (SIGNALS_OF_CORRELATION, correlation), (SIGNALS_SINCE, received_after_ms))
    values = {"run": run_id, "name": name, "correlation": correlation, "since": received_after_ms, "limit": limit}
    return await readers.fetch(SignalRow, SIGNALS + where + SIGNALS_PAGE, values)


def post_signal(
    tx: Tx,
    run_id: str,
    name: str,
    correlation: str | None,
    payload: bytes,
    dedupe_key: str | None,
    by: str | None,
    message: bytes,
    now_ms: int,
) -> tuple[SignalRow, bool] | None:
    """Store the signal (seq = 1.. per run) and wake the run. A repeated dedupe_key returns the first row and False.
    Returns None if there is no such run, or it has ended."""
    lock_run(tx, run_id)  # so that no other signal of it gets the same number, or the same key
    if dedupe_key is not None:
        first = tx.fetch_one(SignalRow, SIGNAL_BY_DEDUPE_KEY, {"run": run_id, "key": dedupe_key})
        if first is not None:
            return first, False
    if not post_message(tx, run_id, message, now_ms):
        return None
    (last,) = tx.row("SELECT coalesce(max(seq), 0) FROM signals WHERE run_id = :run", {"run": run_id})
    row = SignalRow(run_id, last + 1, name, correlation, payload, dedupe_key, now_ms, by)
    tx.do(ADD_SIGNAL, msgspec.structs.asdict(row))
    return row, True


def add_signals(tx: Tx, signals: Sequence[SignalRow]) -> None:
    for signal in signals:
        tx.do(ADD_SIGNAL, msgspec.structs.asdict(signal))


def consume_signals(tx: Tx, run_id: str, consumed: Sequence[tuple[int, str]]) -> None:
    for seq, consumer in consumed:
        tx.do(CONSUME_SIGNAL, {"run": run_id, "seq": seq, "consumer": consumer})
