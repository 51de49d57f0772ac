"""Steps as functions on a real server: deployed, killed with kill -9 in a step, resumed, approved, and read back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from executor.blocks.types.python import load_module
from tests.support.server import SyncServerProcess

FLOW = '''
import json
import time
from dataclasses import dataclass
from pathlib import Path

import weft

HERE = Path(__file__).parent


@dataclass
class Line:
    item: str
    price: float


def once_slow(name: str) -> None:
    """The first call of this name never ends; each leaves a mark."""
    mark = HERE / f"{name}.calls"
    calls = len(mark.read_text()) if mark.exists() else 0
    mark.write_text("x" * (calls + 1))
    if calls == 0:
        time.sleep(600)


@weft.step(effect="read", retries=1)
def load(order: str) -> list[Line]:
    once_slow("load")
    return [Line("tea", 2.5), Line("milk", 1)]


@weft.step(effect="none")
def price(line: Line, factor: int) -> float:
    return line.price * factor


@weft.step(effect="none")
def total(prices: list[float]) -> float:
    return sum(prices)


@weft.step
def pay(amount: float) -> str:
    once_slow("pay")
    return f"paid {amount}"


@weft.workflow(name="weft-test-orders")
async def orders(order: str, factor: int = 2):
    """Pays an order."""
    lines = await load(order)
    amount = await total(await weft.each(lines, lambda line: price(line, factor)))
    answer = await weft.approve(f"Pay {amount} for {order}?")
    return await weft.when(answer.action == "approve", lambda: pay(amount), lambda: "not paid")
'''


async def test_a_run_survives_kills_in_its_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "weft_test_orders.py"
    file.write_text(FLOW)
    monkeypatch.syspath_prepend(tmp_path)
    document = load_module(str(file)).orders.document()

    server = _server(tmp_path, file)
    async with _client(server) as client:
        saved = (await client.post("/api/workflows", json={"document": document})).json()
        assert (saved["version"], saved["diagnostics"]) == (1, [])
        stored = (await client.get("/api/workflows/weft-test-orders")).json()["document"]
        assert stored == json.loads(json.dumps(document))
        run = (await client.post("/api/workflows/weft-test-orders/runs", json={"input": {"order": "a"}})).json()["run"]
        await _until(lambda: _calls(tmp_path, "load") == 1)
        server.kill()

    server = _server(tmp_path, file)
    async with _client(server) as client:
        wait = await _open_wait(client, run, "approval")
        assert (wait["title"], _calls(tmp_path, "load")) == ("Pay 7.0 for a?", 2)  # effect read: it was repeated
        assert (await client.post(f"/resume/{_token(wait)}", json={"action": "approve"})).status_code == 200
        await _until(lambda: _calls(tmp_path, "pay") == 1)
        server.kill()

    server = _server(tmp_path, file)
    async with _client(server) as client:
        wait = await _open_wait(client, run, "attention")  # effect write: a person decides
        assert _calls(tmp_path, "pay") == 1
        answer = {"action": "retry"}
        assert (await client.post(f"/resume/{_token(wait)}", json=answer)).status_code == 200
        shown = await _ended(client, run)
        assert (shown["status"], shown["output"]) == ("succeeded", "paid 7.0")
        assert (_calls(tmp_path, "load"), _calls(tmp_path, "pay")) == (2, 2)
    server.stop()


def _server(folder: Path, file: Path) -> SyncServerProcess:
    return SyncServerProcess(folder, {"WEFT_FUNCTIONS": str(file), "WEFT_LEASE_MS": "1000"})


def _client(server: SyncServerProcess) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=server.url, timeout=60)


def _calls(folder: Path, name: str) -> int:
    mark = folder / f"{name}.calls"
    return len(mark.read_text()) if mark.exists() else 0


def _token(wait: dict[str, Any]) -> str:
    return str(wait["link"]).rpartition("/")[2]


async def _until(holds: Any) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.02)


async def _open_wait(client: httpx.AsyncClient, run: str, kind: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            for wait in (await client.get("/api/waits")).json()["waits"]:
                if wait["run"] == run and wait["kind"] == kind:
                    return dict(wait)
            await asyncio.sleep(0.05)


async def _ended(client: httpx.AsyncClient, run: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while (shown := (await client.get(f"/api/runs/{run}")).json())["status"] in ("running", "waiting", "queued"):
            await asyncio.sleep(0.05)
    return dict(shown)
