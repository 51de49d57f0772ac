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
            shown = list(client.follow(first, text=True))
            parts = [event for event in shown if isinstance(event, weft.TextDelta)]
            written = client.get_run(first)["output"]
        assert parts and all(part.text and part.key == "say" for part in parts)
        assert "".join(part.text for part in parts) in str(written)
        assert isinstance(shown[-1], weft.RunFinished) and shown[-1].status == "succeeded"
        second = asyncio.run(_followed(server.url))
        assert second and all(text for text in second)
    finally:
        server.kill()


async def _followed(url: str) -> list[str]:
    async with AsyncClient(url) as client:
        run = (await client.start(TALKS))["run"]
        return [event.text async for event in client.follow(run, text=True) if isinstance(event, weft.TextDelta)]
