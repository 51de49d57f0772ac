"""What people who write Python are promised."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import weft
from server.client.async_client import AsyncClient
from tests.support.server import SyncServerProcess

TALKS: dict[str, Any] = {
    "format": "weft/1",
    "name": "talks",
    "blocks": {
        "start": {"type": "start"},
        "pause": {"type": "wait", "params": {"seconds": 1}},
        "say": {"type": "agent", "params": {"model": "dev:any", "prompt": "Say something long about the sea."}},
    },
    "edges": [{"source": "start", "target": "pause"}, {"source": "pause", "target": "say"}],
}


def test_a_followed_stream_has_the_text_that_a_model_writes(tmp_path: Path) -> None:
    server = SyncServerProcess(tmp_path, {}, options=["--dev-model"])
    try:
        with weft.Client(server.url) as client:
            first = client.start(TALKS)["run"]
            parts = [event for event in client.follow(first, text=True) if event.type == "node.delta"]
            written = client.get_run(first)["output"]
        assert parts and all(part.data["text"] and part.key == "say" and part.seq == 0 for part in parts)
        assert "".join(part.data["text"] for part in parts) in str(written)
        second = asyncio.run(_followed(server.url))
        assert second and all(text for text in second)
    finally:
        server.kill()


async def _followed(url: str) -> list[str]:
    async with AsyncClient(url) as client:
        run = (await client.start(TALKS))["run"]
        return [event.data["text"] async for event in client.follow(run, text=True) if event.type == "node.delta"]
