"""Files over kill -9: what was uploaded comes back, and a run that is killed between its blocks has its files."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import httpx

from executor.kernel.store.topics.contents import PART_BYTES
from tests.e2e.crash.conftest import Servers
from tests.support.api import ended
from tests.support.until import until

RAW = {"content-type": "application/octet-stream"}
DOCUMENT: dict[str, Any] = {
    "format": "weft/1",
    "name": "files",
    "input": {"type": "object", "properties": {"a": {"format": "file"}}},
    "blocks": {
        "start": {"type": "start"},
        "made": {"type": "file", "params": {"name": "made.txt", "content": "<input.a.name>"}},
        "pause": {"type": "wait", "params": {"seconds": 3}},
        "read": {"type": "function", "params": {"files": "text", "code": "return <made>.text"}},
        "all": {"type": "set", "params": {"value": {"a": "<input.a>", "made": "<made>", "text": "<read.result>"}}},
    },
    "edges": [
        {"source": "start", "target": "made"},
        {"source": "made", "target": "pause"},
        {"source": "pause", "target": "read"},
        {"source": "read", "target": "all"},
    ],
}


async def test_files_are_there_after_kill_9(servers: Servers) -> None:
    content = os.urandom(3 * PART_BYTES + 17)
    server = await servers.start()
    async with httpx.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as client:
        file = (await client.post("/api/files", params={"name": "a.bin"}, content=content, headers=RAW)).json()
        run = (await client.post("/api/runs", json={"document": DOCUMENT, "input": {"a": file}})).json()["run"]
        await until(lambda: _waits(client, run), within_s=60)
        await server.kill()
        await servers.start()
        output = (await ended(client, run))["output"]
        assert output["text"] == "a.bin" and output["a"] == file
        back = await client.get(f"/api/files/{file['id']}")
        assert hashlib.sha256(back.content).digest() == hashlib.sha256(content).digest()
        assert (await client.get(f"/api/files/{output['made']['id']}")).text == "a.bin"


async def _waits(client: httpx.AsyncClient, run: str) -> bool:
    found: dict[str, Any] = (await client.get(f"/api/runs/{run}")).json()
    return bool(found["status"] == "waiting")
