"""No statement of the store reads a table to its end that grows with the work done.

All changes and all reads are made on a small database, with every filter a read has, and each statement that SQLite was
asked for is explained. Without statistics the plan does not depend on how many rows there are.
"""

from __future__ import annotations

import inspect
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from importlib import import_module
from itertools import product
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, ClassVar

import executor.kernel.store as package
from executor.errors import WeftError
from executor.kernel.store.run_rows import EventFilter
from executor.kernel.store.sqlite.connection import Tx
from executor.kernel.store.sqlite.dialect import TEXTS
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.audit import EVERY_ROW, AuditFilter
from executor.kernel.store.topics.memory import Conversation
from tests.conformance.store.changes import CHANGES, furnish
from tests.support.rows import T0

# A scan that is right, by a part of the statement, and why.
ALLOWED = {
    "FROM heads AS h CROSS JOIN run_details": "open runs: as many as are under way, not as have been",
    "FROM heads AS h GROUP BY": "the same, counted",
    "FROM (SELECT status FROM heads LIMIT": "the same, and ends after so many",
    "FROM heads WHERE ready = 1 LIMIT": "an index of those alone, and ends after so many",
    "FROM notifications WHERE status = 'pending' ORDER BY due_at_ms LIMIT": "the same",
    "UPDATE heads SET seq = seq WHERE owner": "when the clock was set back",
    "UPDATE heads SET due_ms = CASE": "the same",
    "ELSE 0 END AS late": "the same",
    "FROM run_details AS d WHERE true ORDER BY d.created_at_ms DESC": "the newest runs, by an index in this order",
    "LIMIT :scan) AS d WHERE": "texts of runs: of so many, each found by an index in this order",
    "coalesce(b.value ->> 'name', '')": "the blocks of the documents of active versions",
    "WHERE length(d.input) <= :bytes_max ORDER BY": "their inputs: ends after so many",
    "SELECT due_at_ms FROM notifications WHERE status = 'pending' ORDER BY": "the first of an index in this order",
    "EXISTS (SELECT 1 FROM inbox)": "ends at the first row",
    " WHERE d.status = 'gone' LIMIT": "an index of those alone, which the sweep empties",
    "FROM slots INDEXED BY slots_freed WHERE freed = 1": "an index of those alone, which the next claim empties",
    "SELECT (SELECT count(*) FROM plans": "`weft gc --dry-run`, on request",
    "FROM agent_memory  GROUP BY": "the list of conversations, on request",
    "WHERE h.status = 'queued' ORDER BY h.n LIMIT": "open runs, in the order of their numbers; ends after a hundred",
    "SELECT DISTINCT hash, ": "each hour, by a reader: what nothing refers to",
}
# These do not grow with the work: what people make, and what is there as long as a process or a sign-in.
SMALL = {
    "workers",
    "writers",
    "secrets",
    "secret_keys",
    "upkeep",
    "connectors",
    "knowledge_collections",
    "sessions",
    "drafts",
    "schedules",
    "webhooks",
    "workflows",
    "active_versions",
    "refusals",
    "users",
    "api_tokens",
    "sign_in_codes",
    "hooks",
}
STATEMENT = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH) ")
READS: dict[str, dict[str, list[Any]]] = {
    "list_runs": {
        "workflow": [None, "expense"],
        "status": [None, "running", "failed"],
        "before": [None, "open"],
        "draft": [None, "d"],
        "parent": [None, "parent"],
        "since": [None, T0],
        "until": [None, T0],
        "text": [None, "held"],
        "by": [None, "user:ada"],
        "key": [None, "k"],
        "without": [{}, {"status": "succeeded", "workflow": "w", "by": "user:ada", "text": "held"}],
    },
    "list_cards": {"folder": [None, "Shop"], "text": [None, "stock"], "order": ["run", "changed", "name"]},
    "count_by_time": {"workflow": [None, "expense"]},
    "count_runs": {"workflow": [None, "expense"], "draft": [None, "d"]},
    "list_inputs": {"workflow": [None, "expense"], "draft": [None, "d"]},
    "list_waits": {
        "status": [None, "pending", "answered"],
        "run_id": [None, "open"],
        "kind": [None, "approval"],
        "workflow": [None, "expense"],
        "key": [None, "ask"],
        "before": [None, ("open", "ask!1")],
    },
    "count_waits": {"run_id": [None, "open"], "kind": [None, "approval"], "workflow": [None, "expense"]},
    "list_signals": {"name": [None, "go"], "correlation": [None, "c"], "received_after_ms": [None, T0]},
    "get_workflow": {"version": [None, 1]},
    "list_audit": {"before": [None, 5], "wanted": [EVERY_ROW, AuditFilter("user:ada", "text", T0, T0)]},
    "list_drafts": {"before": [None, "d"]},
    "list_memories": {"workflow": [None, "idle"]},
    "list_knowledge": {"name": [None, "book"]},
    "chunks_without_vector": {"first": [0]},
    "list_schedules": {"workflow": [None, "idle"]},
    "list_webhooks": {"workflow": [None, "idle"]},
    "usage_between": {"by": ["day", "workflow", "model"], "workflow": [None, "expense"]},
    "find_removable": {"keep": [0, 5], "after": [None, "done"]},
}
ARGUMENTS: dict[str, Any] = {
    "place": "here",
    "name": "idle",
    "text": "Idle",
    "workflow": "idle",
    "names": ["SECRET"],
    "since_ms": T0,
    "since": T0,
    "until": T0 + 10,
    "width": 5,
    "workflows": ["idle", "expense"],
    "services": ["tea"],
    "collection": "docs",
    "document": 1,
    "n": 1,
    "chunks": [1],
    "word": 7,
    "id": "d",
    "ids": ["d"],
    "identity": "https://i ada",
    "hash": "lone",
    "run_id": "open",
    "root_id": "parent",
    "wait_id": "ask!1",
    "token_hash": "t",
    "drafts": ["d"],
    "run_ids": ["open"],
    "now_ms": T0,
    "limit": 10,
    "first_day": 5,
    "last_day": 9,
    "pool": "default",
    "upto": 10,
    "key": "key",
    "node": "n",
    "waits": [("open", "ask!1")],
    "schedule_id": "s",
    "before_ms": T0,
    "message_id": "m",
    "asker": "p1",
    "keys": ["k", "other"],
    "webhook_id": "h",
    "ended_before_ms": T0,
    "unused_since_ms": T0,
    "first": "chat:0",
    "last": "chat:9",
    "conversation": Conversation("idle", "", "ada"),
    "where": EventFilter(node="draft", types=("node.succeeded",), since_ms=T0),
}


async def test_no_statement_reads_a_growing_table_to_its_end(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "weft.db", connect=_recording, connect_reader=_reading)
    await store.open()
    Recorded.asked.clear()  # what made the schema
    await furnish(store)
    for name, arguments in _reads(store):
        await getattr(store, name)(**arguments)
    await store.claim_notifications(T0 + 10**9, 1, 1)
    await store.delete_orphans(T0)
    await store.ping()
    await store.close()
    with closing(_recording(store.path)) as db:
        for change in CHANGES.values():
            db.execute("BEGIN")
            with suppress(WeftError, sqlite3.IntegrityError):
                change(Tx(db))
            db.execute("ROLLBACK")
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")} - SMALL
        views = " ".join(sql for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE type = 'view'"))
        statements = {sql for sql in Recorded.asked if STATEMENT.match(sql)}
        statements |= {text for text in _written() if not any(text.strip() in sql for sql in statements)}
        scans = {sql: found for sql in statements if (found := list(_scans(db, sql, tables, views)))}
    wrong = {sql: found for sql, found in scans.items() if not any(part in sql for part in ALLOWED)}
    assert not wrong, "\n\n".join(f"{sql.strip()}\n--> {found}" for sql, found in wrong.items())
    for part, reason in ALLOWED.items():
        assert any(part in sql for sql in scans), f"no statement scans with {part!r}: {reason}"


def _written() -> Iterator[str]:
    """The statements that the modules of the store have: some are for what was not done here."""
    for info in walk_packages(package.__path__, f"{package.__name__}."):
        if info.name.startswith(f"{package.__name__}.postgres"):
            continue
        for value in vars(import_module(info.name)).values():
            texts = value.__code__.co_consts if inspect.isfunction(value) else value
            for text in texts if isinstance(texts, tuple) else (texts,):
                if isinstance(text, str) and STATEMENT.match(text) and "{" not in text:
                    yield TEXTS[text]


def _scans(db: sqlite3.Connection, sql: str, tables: set[str], views: str) -> Iterator[str]:
    """The steps that go through a whole table, or a whole index of it."""
    names = {alias: table for table, alias in re.findall(r"\b(\w+)\s+AS\s+(\w+)", f"{views} {sql}") if table in tables}
    for *_, step in db.execute(f"EXPLAIN QUERY PLAN {sql}", _Nulls() if ":" in sql else (None,) * sql.count("?")):
        scanned = re.match(r"SCAN (\w+)", step)
        if scanned and (scanned[1] in tables or scanned[1] in names):
            yield step


def _reads(store: SQLiteStore) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every method that reads, with every filter on and off."""
    for name, method in inspect.getmembers(SQLiteStore, inspect.isfunction):
        query = inspect.getclosurevars(method).nonlocals.get("query")
        if query is None:
            continue
        fields = list(inspect.signature(query).parameters)[1:]
        filters = READS.get(name, {})
        for values in product(*filters.values()):
            arguments = {field: ARGUMENTS[field] for field in fields if field in ARGUMENTS and field not in filters}
            yield name, arguments | dict(zip(filters, values, strict=True))


class Recorded(sqlite3.Connection):
    asked: ClassVar[set[str]] = set()

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        self.asked.add(sql)
        return super().execute(sql, *parameters)

    def executemany(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        self.asked.add(sql)
        return super().executemany(sql, *parameters)


class _Nulls(dict[str, None]):
    def __missing__(self, key: str) -> None:
        return None


def _recording(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, factory=Recorded)


def _reading(path: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None, factory=Recorded)
