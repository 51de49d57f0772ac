"""Error workflows and alerts of a real server that is killed again and again: none is lost, none is started twice."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.endpoints import answer, http
from tests.support.server import SyncServerProcess

Start = Callable[..., SyncServerProcess]
pytestmark = pytest.mark.timeout(300)
RUNS, KILLS = 40, 4


def document(name: str, code: str) -> dict[str, Any]:
    blocks = {"start": {"type": "start"}, "do": {"type": "function", "params": {"code": code}}}
    return {"format": "weft/1", "name": name, "blocks": blocks, "edges": [{"source": "start", "target": "do"}]}


async def test_over_kill_9_each_failed_run_has_one_error_run_and_one_alert(start_server: Start, tmp_path: Path) -> None:
    chance = random.Random(7)
    async with http(lambda request: answer(204)) as hook, httpx.AsyncClient(timeout=60, trust_env=False) as client:
        environ = {
            "WEFT_ERROR_WORKFLOW": "on-error",
            "WEFT_ALERT_WEBHOOK": f"{hook.url}/alerts",
            "WEFT_ALLOW_PRIVATE": "127.0.0.1",
            "WEFT_LEASE_MS": "1000",
        }
        server = start_server(**environ)
        for name, code in (("on-error", "return <input.run>"), ("pay", "throw new Error('no money')")):
            put = await client.post(f"{server.url}/api/workflows", json={"document": document(name, code)})
            put.raise_for_status()
        started: list[str] = []
        for _ in range(KILLS):
            asked = [
                client.post(f"{server.url}/api/workflows/pay/runs", json={"input": {}}) for _ in range(RUNS // KILLS)
            ]
            started += [(await each).json()["run"] for each in asked]
            await asyncio.sleep(chance.random() * 0.15)
            server.kill()
            server = start_server(**environ)

        async def error_runs() -> list[dict[str, Any]]:
            page = await client.get(f"{server.url}/api/runs", params={"workflow": "on-error", "limit": 200})
            return [run for run in page.json()["runs"] if run["status"] == "succeeded"]

        async with asyncio.timeout(120):
            while len(await error_runs()) < RUNS:
                await asyncio.sleep(0.2)
        await asyncio.sleep(1.0)
        outputs = []
        for run in await error_runs():
            outputs.append((await client.get(f"{server.url}/api/runs/{run['id']}")).json()["output"]["result"])
        assert sorted(outputs) == sorted(started), "one for each, and no other"
        told: dict[str, dict[str, Any]] = {}
        for request in hook.seen:
            body = json.loads(request.body)
            assert told.setdefault(body["id"], body)["count"] == body["count"], "a repetition says the same"
        counted = sum(body["count"] for body in told.values())
        assert server.stop() == 0
        assert counted <= RUNS and len(told) <= 2, "the others wait for the next message"
        with closing(sqlite3.connect(tmp_path / "weft.db")) as db:
            alerts = db.execute("SELECT run_id, message_id FROM alerts").fetchall()
            pending = {id for (id,) in db.execute("SELECT id FROM alert_messages WHERE status = 'pending'")}
        assert sorted(run for run, _ in alerts) == sorted(started), "one for each, sent or not"
        # A server that is killed as it sends leaves its message pending: another server sends it after the lease.
        assert {message for _, message in alerts if message} <= {*told, *pending}
