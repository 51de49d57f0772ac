"""A 429 with Retry-After burns no attempt."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from tests.support.endpoints import Request, answer, http


async def _run(db: Path, url: str, place: str, attempts: int) -> tuple[Any, list[Any]]:
    retry = {"max_attempts": attempts, "initial_ms": 10}
    document = {
        "format": "weft/1",
        "name": "calling",
        "blocks": {
            "start": {"type": "start"},
            "call": {"type": "http", "params": {"url": url}, "policy": {"retry": retry}},
        },
        "edges": [{"source": "start", "target": "call"}],
    }
    sandbox = Sandbox(threads=1)
    services = Services(sandbox=sandbox, http=GuardedClient([place]))
    engine = await Engine.open(SQLiteStore(db), registry=Registry.load(sandbox=sandbox), services=services)
    try:
        view = await engine.run(document, timeout_s=100)
        return view, [event async for event in engine.stream(view.id) if event.type == "retry.scheduled"]
    finally:
        await engine.close(grace_s=1)


def _always(given: bytes, request: Request) -> bytes:
    return given


async def test_429_with_retry_after_uses_up_no_attempt(tmp_path: Path) -> None:
    def limited(request: Request) -> bytes:
        return answer(429, retry_after="1") if len(service.seen) <= 3 else answer(200)

    async with http(limited) as service:
        view, retries = await _run(tmp_path / "weft.db", service.url, service.place, attempts=2)
        assert (view.status, len(service.seen)) == ("succeeded", 4)
    assert [(event.data["deferred"], event.data["pause_ms"]) for event in retries] == [("asked", 1000)] * 3


async def test_429_without_retry_after_and_other_answers_count(tmp_path: Path) -> None:
    for number, refusal in enumerate((answer(429), answer(503, retry_after="0"))):
        async with http(partial(_always, refusal)) as service:
            view, retries = await _run(tmp_path / f"{number}.db", service.url, service.place, attempts=2)
            assert (view.status, len(service.seen)) == ("failed", 2)
            assert "deferred" not in retries[0].data
