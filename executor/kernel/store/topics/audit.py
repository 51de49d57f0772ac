"""The record of who did what: a row in the transaction of the change, each with the hash of the row before it."""

# ruff: noqa: S608  (the pieces put together here are constants of this package, never values)

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from executor.kernel.store.people import (
    EVERY_ROW,
    FIRST_HASH,
    Act,
    AuditFilter,
    AuditHead,
    AuditRow,
    chained,
    has_changed,
)
from executor.kernel.store.tx import Readers, Tx

T = TypeVar("T")

AUDIT = "n, at_ms, actor, via, action, object, detail, hash"
# First: where several processes write at once, the others wait here until this transaction is over.
NEXT = """
INSERT INTO audit_head (id, n, hash) VALUES (1, 1, :first) ON CONFLICT (id) DO UPDATE SET n = audit_head.n + 1"""
HEAD = "SELECT n, hash FROM audit_head WHERE id = 1"
ADD = f"INSERT INTO audit ({AUDIT}) VALUES (:n, :at_ms, :actor, :via, :action, :object, :detail, :hash)"
SET_HASH = "UPDATE audit_head SET hash = :hash WHERE id = 1"
READ = f"SELECT {AUDIT} FROM audit WHERE n > :after ORDER BY n LIMIT :limit"
LIST = f"SELECT {AUDIT} FROM audit WHERE n < :before{{}} ORDER BY n DESC LIMIT :limit"
WANTED = {
    "actor": " AND actor = :actor",
    "text": r" AND lower(action || ' ' || object || ' ' || detail) LIKE lower(:text) ESCAPE '\'",
    "since_ms": " AND at_ms >= :since_ms",
    "until_ms": " AND at_ms < :until_ms",
}
N_MAX = 2**62


def audited(tx: Tx, act: Act, change: Callable[..., T], args: tuple[Any, ...]) -> T:
    """Make a change, and write an audit row if it changed something. Returns what `change` returns."""
    result = change(tx, *args)
    if has_changed(result):
        add(tx, act)
    return result


def note_act(tx: Tx) -> bool:
    """For an act that changes nothing in the database: the row is all there is."""
    return True


def add(tx: Tx, act: Act) -> None:
    tx.run(NEXT, {"first": FIRST_HASH})
    n, before = tx.row(HEAD)
    row = chained(before, n, act)
    tx.run(ADD, msgspec.structs.asdict(row))
    tx.run(SET_HASH, {"hash": row.hash})


async def read_audit(readers: Readers, after: int = 0, limit: int = 1_000) -> list[AuditRow]:
    return [AuditRow(*row) for row in await readers.all(READ, {"after": after, "limit": limit})]


async def list_audit(
    readers: Readers, before: int | None = None, limit: int = 200, wanted: AuditFilter = EVERY_ROW
) -> list[AuditRow]:
    only = {name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not None}
    statement = LIST.format("".join(WANTED[name] for name in only))
    if wanted.text is not None:
        only["text"] = f"%{_literally(wanted.text)}%"
    values = {"before": N_MAX if before is None else before, "limit": limit, **only}
    return [AuditRow(*row) for row in await readers.all(statement, values)]


def _literally(text: str) -> str:
    """Escape a text for LIKE."""
    return re.sub(r"([\\%_])", r"\\\1", text)


async def audit_head(readers: Readers) -> AuditHead | None:
    row = await readers.one(HEAD)
    return None if row is None else AuditHead(*row)
