"""Python functions that do not return leave everything else alone, the end of the server included."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.server import SyncServerProcess

PLACE = "tests.e2e.functions"
FUNCTIONS = ",".join(f"{PLACE}:{name}" for name in ("quick", "asleep", "spin", "aside", "block"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SyncServerProcess]:
    process = SyncServerProcess(tmp_path, {"WEFT_FUNCTIONS": FUNCTIONS}, log=tmp_path / "log")
    yield process
    if process.running:
        process.kill()


def _call(function: str, timeout_s: float = 60, count: int = 1, **arguments: Any) -> dict[str, Any]:
    params = {"function": function, "arguments": arguments}
    return {
        "format": "weft/1",
        "name": function,
        "blocks": {
            "start": {"type": "start"},
            "fan": {"type": "parallel", "params": {"count": count}},
            "call": {"type": "python", "parent": "fan", "params": params, "policy": {"timeout_s": timeout_s}},
        },
        "edges": [{"source": "start", "target": "fan"}, {"source": "fan", "handle": "body", "target": "call"}],
    }


async def _run(client: httpx.AsyncClient, document: dict[str, Any]) -> dict[str, Any]:
    response = await client.post("/api/runs?wait=60", json={"document": document})
    return dict(response.json())


def _large(blocks: int) -> dict[str, Any]:
    names = [f"b{number}" for number in range(blocks)]
    return {
        "format": "weft/1",
        "name": "large",
        "blocks": {"start": {"type": "start"}, **{name: {"type": "set", "params": {"value": 1}} for name in names}},
        "edges": [{"source": a, "target": b} for a, b in zip(["start", *names], names, strict=False)],
    }


async def test_functions_left_behind_starve_nothing(server: SyncServerProcess) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=100) as client:
        left = await _run(client, _call("asleep", 1, 40, seconds=600))
        assert left["status"] == "failed" and left["error"]["code"] == "timeout"

        assert (await _run(client, _call("quick")))["status"] == "succeeded"
        large = _large(400)
        assert (await client.post("/api/validate", json={"document": large})).status_code == 200
        assert (await _run(client, large))["status"] == "succeeded"
        checked = _call("quick")
        checked["blocks"]["call"] = {
            "type": "set",
            "parent": "fan",
            "params": {"value": "x" * 20_000},
            "output_schema": {"type": "string"},
        }
        assert (await _run(client, checked))["status"] == "succeeded"


async def test_the_time_of_a_function_begins_with_it(server: SyncServerProcess) -> None:
    """100 calls of a second, 32 at the same time: the last ones wait longer than their time limit."""
    async with httpx.AsyncClient(base_url=server.url, timeout=100) as client:
        began = time.monotonic()
        run = await _run(client, _call("asleep", 2.5, 100, seconds=1))
        assert run["status"] == "succeeded", run["error"]
        assert time.monotonic() - began >= 3, "no more than the limit run at the same time"


async def test_a_stop_ends_and_names_what_holds_on(server: SyncServerProcess) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=100) as client:
        failed = await _run(client, _call("spin", 1))
        assert failed["status"] == "failed" and failed["error"]["code"] == "timeout"
    assert server.stop(timeout_s=100) == 0
    log = (server.folder / "log").read_text()
    assert re.search(
        rf"Python function spin \(run {failed['run']}, block call@fan\[0\]\) has not returned after \d+ s", log
    )


async def test_a_stop_ends_although_a_function_left_a_thread_of_its_own(server: SyncServerProcess) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=100) as client:
        failed = await _run(client, _call("aside", 1))
        assert failed["status"] == "failed" and failed["error"]["code"] == "timeout"
    assert server.stop(timeout_s=100) == 0
    assert "threads have not ended after 5 s" in (server.folder / "log").read_text()


async def test_a_second_signal_ends_a_server_whose_event_loop_is_held(server: SyncServerProcess) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=100) as client:
        await client.post("/api/runs", json={"document": _call("block")})
    await asyncio.sleep(2)
    server.signal_stop()
    await asyncio.sleep(1.5)
    assert server.running
    assert server.stop(timeout_s=100) == 1
    assert "second signal" in (server.folder / "log").read_text()
