"""Reads journals of runs of durable functions from a database. It needs no server, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
import orjson

from compiler.tracing.durable import BODY, TYPE
from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.errors import NotFound
from executor.kernel.journal.reader import Records, output_of
from executor.kernel.process.extras import needs_psycopg
from executor.kernel.store.read_only import ReadOnlyStore
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from executor.open.engine import Engine
from executor.service.replay.journals import Journal
from executor.service.upkeep.sql import open_reading


async def stored_journals(database: Path | str, workflows: Iterable[str], last: int) -> list[Journal]:
    """Return those of the newest runs of each workflow; `database` is a SQLite file or a postgresql:// address. Raises
    WeftError."""
    store = ReadOnlyStore(_store(database), lambda: open_reading(database))
    services = Services(Sandbox(threads=1), GuardedClient())
    engine = await Engine.open(store, registry=Registry.load(), services=services, work=False)
    try:
        rows = [row for name in workflows for row in await engine.runs.list(name, limit=last)]
        found = [await _journal(engine, row.id, row.workflow, row.status) for row in rows]
        return [one for one in found if one is not None]
    finally:
        await engine.close()


async def _journal(engine: Engine, run: str, workflow: str, status: str) -> Journal | None:
    """Return None for a run of something else, or one that has not begun the function."""
    try:
        node = await engine.runs.node(run, BODY)
    except NotFound:
        return None
    if node.type != TYPE or node.input is None:
        return None
    params = orjson.loads(bytes(node.input))
    records = [
        msgspec.structs.replace(record, output=await output_of(engine.store, record))
        async for record in Records(engine.store, run)
    ]
    return Journal(run, workflow, status, params.get("arguments") or {}, tuple(records), params.get("code") or "")


def _store(database: Path | str) -> Store:
    if isinstance(database, Path):
        return SQLiteStore(database)
    with needs_psycopg():
        from executor.kernel.store.postgres.store import PostgresStore
    return PostgresStore(database)
