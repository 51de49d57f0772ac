"""How long runs are kept, by workflow; and what is left of a run that was deleted: nothing that it held."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from executor.blocks.http.client import GuardedClient
from executor.blocks.llm.endpoints import Endpoints
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.handler.needs import AlertSettings
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from executor.service.upkeep.gc import DAY_MS, Rule, dropped_before
from tests.support.clock import ManualClock
from tests.support.dev_model import dev_model
from tests.support.runs import settled

CANARY = "c4nary-5f1e77"


@asynccontextmanager
async def engine_on(db: Path, clock: ManualClock, model: str | None = None) -> AsyncIterator[Engine]:
    sandbox = Sandbox(threads=1)
    alerts = AlertSettings(("ops@example.org",), error_workflow="none")
    endpoints = Endpoints({"DEV": model} if model else None)
    services = Services(sandbox, GuardedClient(), alerts=alerts, endpoints=endpoints)
    registry = Registry.load(sandbox=sandbox)
    engine = await Engine.open(SQLiteStore(db), registry=registry, services=services, secret=b"k" * 32, clock=clock)
    try:
        yield engine
    finally:
        await engine.close(grace_s=1)


def document(name: str, code: str = "return <input.text>", **settings: Any) -> dict[str, Any]:
    blocks = {"start": {"type": "start"}, "do": {"type": "function", "params": {"code": code}}}
    edges = [{"source": "start", "target": "do"}]
    return {"format": "weft/1", "name": name, "settings": settings, "blocks": blocks, "edges": edges}


async def counts(engine: Engine) -> dict[str, int]:
    names = [row.workflow for row in await engine.store.list_runs(limit=200)]
    return {name: names.count(name) for name in sorted(set(names))}


async def test_a_workflow_has_its_own_rule(tmp_path: Path) -> None:
    clock = ManualClock()
    async with engine_on(tmp_path / "db", clock) as engine:
        rules: dict[str, dict[str, Any]] = {
            "plain": {},
            "long": {"retention": {"days": 100}},
            "short": {"retention": {"days": 1}},
            "newest": {"retention": {"days": 0, "keep": 2}},
            "some": {"retention": {"keep": 1}},
        }
        for name, settings in rules.items():
            await engine.workflows.save(document(name, "return 1", **settings))
        for _ in range(3):
            for name in rules:
                await engine.run(name, timeout_s=30)
            clock.advance(1)
        clock.advance(2 * DAY_MS)
        would = await engine.upkeep.collect(30 * DAY_MS, dry_run=True)
        assert would.runs == 4
        assert (await engine.upkeep.collect(30 * DAY_MS)).runs == 4
        assert await counts(engine) == {"long": 3, "newest": 2, "plain": 3, "some": 3}
        clock.advance(30 * DAY_MS)
        await engine.upkeep.collect(None)
        assert await counts(engine) == {"long": 3, "newest": 2, "plain": 3, "some": 1}
        await engine.upkeep.collect(30 * DAY_MS)
        assert await counts(engine) == {"long": 3, "newest": 2, "some": 1}
        await engine.workflows.save(document("long", "return 1"))
        await engine.upkeep.collect(30 * DAY_MS)
        assert await counts(engine) == {"newest": 2, "some": 1}, "the rule is that of the active version"


def test_whole_days_are_dropped_when_no_rule_keeps_more() -> None:
    rest = Rule(5, 0, None, ("a",))
    assert dropped_before([rest], 100) == 95
    assert dropped_before([Rule(3, 0, "a"), rest], 100) == 95
    assert dropped_before([Rule(30, 0, "a"), rest], 100) == 70
    assert dropped_before([Rule(3, 1, "a"), rest], 100) is None
    assert dropped_before([Rule(3, 0, "a")], 100) is None, "runs of the others are kept"
    assert dropped_before([], 100) is None


async def test_nothing_of_a_deleted_run_is_left(tmp_path: Path) -> None:
    """In no table, and after a vacuum in no byte of the files. What it sent elsewhere is not here."""
    db, clock = tmp_path / "weft.db", ManualClock()
    large = CANARY * 40_000  # in a blob
    async with engine_on(db, clock) as engine:
        await engine.workflows.save(document("keep", "return <input.text>"))
        await engine.workflows.save(document("fail", "throw new Error(<input.text>)"))
        runs = [
            (await engine.run(name, {"text": text}, timeout_s=30)).id
            for name in ("keep", "fail")
            for text in (f"{CANARY}-{name}", large)
        ]
        asking = {
            "format": "weft/1",
            "name": "ask",
            "blocks": {
                "start": {"type": "start"},
                "ask": {"type": "approval", "params": {"title": f"{CANARY}?", "notify": {"email": "a@example.org"}}},
            },
            "edges": [{"source": "start", "target": "ask"}],
        }
        view = await settled(engine, (await engine.submit(asking, input={"text": CANARY})).run)
        assert view.waits[0].link is not None
        await engine.answer(view.waits[0].link, {}, action="approve", by=CANARY)
        await engine.wait_finished(view.id, 30)
        runs.append(view.id)
        with closing(sqlite3.connect(db)) as found:
            assert tables_with(found) >= {"run_details", "batches", "blobs", "waits", "documents"}
        for run in runs:
            assert await engine.upkeep.delete_run(run) == 1
        clock.advance(2 * 3_600_000)
        await engine.upkeep.collect(None)
        async with asyncio.timeout(10):
            while any([await engine.store.get_run(run) for run in runs]):
                await asyncio.sleep(0.01)
    with closing(sqlite3.connect(db)) as found:
        assert tables_with(found) == set()
        found.execute("VACUUM")
        assert found.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    for path in tmp_path.iterdir():
        assert CANARY.encode() not in path.read_bytes(), path


async def test_nothing_of_a_deleted_workflow_is_left(tmp_path: Path) -> None:
    """A chat with an agent, its memory, files, cached results and an alert: of the runs there is left what the docs say
    (what the agent remembers, what is cached), and of the workflow nothing."""
    db, clock = tmp_path / "weft.db", ManualClock()
    agent = {"model": "dev:m", "prompt": "<chat.message>", "memory": CANARY, "system": f"{CANARY}: be brief."}
    cached = {"code": "return { text: <chat.message>, id: 1 }"}
    chat = {
        "format": "weft/1",
        "name": "chat",
        "blocks": {
            "chat": {"type": "chat_trigger", "params": {"title": CANARY}},
            "look": {"type": "function", "params": cached, "policy": {"cache": {"ttl_s": 86_400}}},
            "file": {"type": "file", "params": {"name": f"{CANARY}.txt", "content": f"{CANARY} in a file"}},
            "agent": {"type": "agent", "params": agent},
            "fail": {"type": "function", "params": {"code": "throw new Error(<look.result.text>)"}},
        },
        "edges": [{"source": one, "target": two} for one, two in pairwise(("chat", "look", "file", "agent", "fail"))],
    }
    async with dev_model({"text": f"{CANARY} {{{{last}}}}"}) as model, engine_on(db, clock, model.url) as engine:
        await engine.workflows.save(chat)
        [page] = await engine.webhooks.all("chat")
        name, token = page.id.removeprefix("chat:"), page.url.rpartition("/")[2]
        assert await engine.chats.send(name, token, f"{CANARY}-of-a-conversation", 1, f"{CANARY} said")

        async def upload() -> AsyncIterator[bytes]:
            yield CANARY.encode() * 200_000

        sent = await engine.parts.files.save(upload(), f"{CANARY}.bin")
        other = await engine.run(
            "chat", {"message": f"{CANARY} again", "conversation": "b", "turn": 1, "x": sent.value}
        )
        runs = [row.id for row in await engine.store.list_runs(workflow="chat")]
        assert other.status == "failed" and len(runs) == 2
        for run in runs:
            view = await engine.wait_finished(run, 30)
            assert [node.key for node in view.nodes if node.status == "failed"] == ["fail"], view.error
        with closing(sqlite3.connect(db)) as found:
            assert tables_with(found) >= {"run_details", "batches", "blobs", "agent_memory", "cache", "workflows"}
            assert found.execute("SELECT count(*) FROM usage").fetchone() == (2,)
            assert found.execute("SELECT count(DISTINCT run_id) FROM alerts").fetchone() == (2,)
        for run in runs:
            await engine.upkeep.delete_run(run)
        clock.advance(2 * 3_600_000)
        await engine.upkeep.collect(None)
        with closing(sqlite3.connect(db)) as found:
            assert found.execute("SELECT count(*) FROM alerts").fetchone() == (0,)
            kept = {"agent_memory", "cache", "plans", "workflows"}
            assert tables_with(found) - {"blobs"} <= kept, "what belongs to the workflow"
        await engine.workflows.delete("chat")
        clock.advance(2 * 3_600_000)
        await engine.upkeep.collect(None)
        with closing(sqlite3.connect(db)) as found:
            sums = found.execute("SELECT workflow, sum(calls) FROM usage").fetchall()
            assert sums == [("chat", 2)], "costs stay, without content"
            assert tables_with(found) == set()
    # The engine has closed it: a reader would keep the log from being emptied.
    with closing(sqlite3.connect(db)) as found:
        found.execute("VACUUM")
        assert found.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    for path in tmp_path.iterdir():
        assert CANARY.encode() not in path.read_bytes(), path


def tables_with(db: sqlite3.Connection) -> set[str]:
    """Tables in which the canary is, in any column."""
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found = set()
    for table in tables:
        for row in db.execute(f'SELECT * FROM "{table}"'):
            held = [value.encode() if isinstance(value, str) else value for value in row]
            if any(isinstance(value, bytes) and CANARY.encode() in value for value in held):
                found.add(table)
    return found
