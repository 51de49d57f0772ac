"""The record of who did what: a row in the transaction of the change, each with the hash of the row before it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
import orjson
from msgspec import Struct

from executor.kernel.process.acting import Act
from executor.kernel.store.statements import Readers, Tx, columns, insert

FIRST_HASH: Final = ""  # before the first row


class AuditRow(Struct, frozen=True):
    """`hash` is of the row, and of the hash of the row before it."""

    n: int
    at_ms: int
    actor: str
    via: str
    action: str
    object: str
    detail: str
    hash: str


class AuditFilter(Struct, frozen=True):
    """Rows of one actor; with a text in action, object or detail, whatever its case; of a time, `since_ms` included."""

    actor: str | None = None
    text: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None


EVERY_ROW: Final = AuditFilter()


class AuditHead(Struct, frozen=True):
    n: int
    hash: str


def chained(before: str, n: int, act: Act) -> AuditRow:
    """Return row number `n`, after one with the hash `before`."""
    row = AuditRow(n, act.at_ms, act.actor, act.via, act.action, act.object, act.detail, "")
    return msgspec.structs.replace(row, hash=hash_of(before, row))


def hash_of(before: str, row: AuditRow) -> str:
    """Return the hash of a row after one with the hash `before`."""
    content = [before, row.n, row.at_ms, row.actor, row.via, row.action, row.object, row.detail]
    return hashlib.sha256(orjson.dumps(content)).hexdigest()


def has_changed(result: object) -> bool:
    """Returns True if an audited change has changed something, by what it returned."""
    if isinstance(result, tuple) and result and isinstance(result[-1], bool):
        return result[-1]
    won = getattr(result, "won", None)
    return won if isinstance(won, bool) else result is not None and result is not False and result != 0


T = TypeVar("T")

AUDIT = columns(AuditRow)
# First: where several processes write at once, the others wait here until this transaction is over.
NEXT = """
INSERT INTO audit_head (id, n, hash) VALUES (1, 1, :first) ON CONFLICT (id) DO UPDATE SET n = audit_head.n + 1"""
HEAD = "SELECT n, hash FROM audit_head WHERE id = 1"
ADD = insert("audit", AuditRow)
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


def record_act(tx: Tx) -> bool:
    """Add the row of the present act, which changes nothing else in the database."""
    return True


def add(tx: Tx, act: Act) -> None:
    tx.run(NEXT, {"first": FIRST_HASH})
    n, before = tx.row(HEAD)
    row = chained(before, n, act)
    tx.run(ADD, msgspec.structs.asdict(row))
    tx.run("UPDATE audit_head SET hash = :hash WHERE id = 1", {"hash": row.hash})


async def read_audit(readers: Readers, after: int = 0, limit: int = 1_000) -> list[AuditRow]:
    return await readers.fetch(AuditRow, READ, {"after": after, "limit": limit})


async def list_audit(
    readers: Readers, before: int | None = None, limit: int = 200, wanted: AuditFilter = EVERY_ROW
) -> list[AuditRow]:
    """Return audit rows below `before`, newest first."""
    only = {name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not None}
    statement = LIST.format("".join(WANTED[name] for name in only))
    if wanted.text is not None:
        only["text"] = f"%{_literally(wanted.text)}%"
    values = {"before": N_MAX if before is None else before, "limit": limit, **only}
    return await readers.fetch(AuditRow, statement, values)


def _literally(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)


async def audit_head(readers: Readers) -> AuditHead | None:
    return await readers.fetch_one(AuditHead, HEAD)
