"""2,000 idle streams cost 38 % of a core, as each looked at the file once a second; and an EventSource came back
every two seconds to a run that had ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from executor.kernel.read import cursor as lookout
from executor.kernel.store.sqlite.dialect import TEXTS
from executor.kernel.store.sqlite.readers import Readers
from executor.kernel.store.topics.runs import LAST_SEQS
from executor.open.engine import Engine
from server.app import build_engine, create_app
from server.settings import Settings
from tests.support.blocks import Hold
from tests.support.documents import chain
from tests.support.runs import engine_on, until_event
from tests.support.until import until

READERS = 50
LOOKS = 10
VERSION = "PRAGMA data_version"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookout, "LOOK_S", 0.02)


async def read_to_end(engine: Engine, run: str) -> list[int]:
    return [record.seq async for records in engine.follow(run) for record in records]


async def test_idle_readers_share_one_look_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "weft.db"
    async with engine_on(path, hold := Hold()) as engine, engine_on(path, Hold(), work=False) as front:
        runs = [(await engine.submit(chain("a", a={"type": "hold"}))).run for _ in range(3)]
        for run in runs:
            await until_event(engine, run, "node.started", "a")
        readers = [asyncio.create_task(read_to_end(front, runs[n % 3])) for n in range(READERS)]
        asked: list[str] = []
        whole = Readers._ask

        async def count(self: Any, connection: int, sql: str, *values: Any) -> Any:
            if self is front.store._readers:
                asked.append(sql)
            return await whole(self, connection, sql, *values)

        monkeypatch.setattr(Readers, "_ask", count)
        # First each reads what there is, and all runs are looked at together. From then on the version is looked at.
        await until(lambda: len(asked) > READERS and all(sql == VERSION for sql in asked[-LOOKS:]))
        assert [sql for sql in asked if sql != VERSION][-1] == TEXTS[LAST_SEQS]
        hold.free.set()
        async with asyncio.timeout(60):
            found = await asyncio.gather(*readers)
        assert all(seqs == list(range(1, len(seqs) + 1)) and seqs for seqs in found)


async def test_nothing_looks_when_nothing_is_read(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with engine_on(path, hold := Hold()) as engine, engine_on(path, Hold(), work=False) as front:
        run = (await engine.submit(chain("a", a={"type": "hold"}))).run
        await until_event(engine, run, "node.started", "a")
        reader = asyncio.create_task(read_to_end(front, run))
        hold.free.set()
        await reader
        await until(lambda: not (any(task.get_name() == "lookout" for task in asyncio.all_tasks())))


async def test_a_commit_of_another_process_is_signalled(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    params = {"title": "Go on?"}
    async with engine_on(path) as engine, engine_on(path, work=False) as front:
        run = (await engine.submit(chain("a", a={"type": "approval", "params": params}))).run
        await until_event(engine, run, "run.parked")
        cursor = front.events.cursor(run, 0)
        while await cursor.next_records():
            pass
        await engine.cancel(run)
        await until_event(engine, run, "run.finished")
        async with asyncio.timeout(60):
            await cursor.wait()
        cursor.close()


async def test_an_event_source_that_reconnects_at_the_end_gets_204(tmp_path: Path) -> None:
    settings = Settings(db_path=str(tmp_path / "weft.db"), secret_key="a secret for tests only")
    engine = await build_engine(settings)
    transport = httpx.ASGITransport(app=create_app(settings, engine))
    document = {"format": "weft/1", "name": "hello", "blocks": {"start": {"type": "start"}}, "edges": []}
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
            run = (await client.post("/api/runs?wait=60", json={"document": document})).json()["run"]
            last = (await client.get(f"/api/runs/{run}")).json()["seq"]
            stream = f"/api/runs/{run}/events"
            assert (await client.get(stream, headers={"last-event-id": str(last)})).status_code == 204
            behind = await client.get(stream, headers={"last-event-id": str(last - 1)})
            assert behind.status_code == 200 and "run.finished" in behind.text
    finally:
        await engine.close()
