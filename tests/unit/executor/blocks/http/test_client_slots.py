"""Waiting for one of this server's connections is not the silence of the other side."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from tests.support.endpoints import Request, answer, http

RUNS, POSTS, CONNECTIONS, ANSWERS_AFTER_S = 60, 5, 10, 0.2
# A third of the time for which the last POST has to wait.
LIMIT_S = RUNS * POSTS * ANSWERS_AFTER_S / CONNECTIONS / 3


def _posting(url: str) -> dict[str, Any]:
    return {
        "format": "weft/1",
        "name": "posting",
        "blocks": {
            "start": {"type": "start"},
            "fan": {"type": "parallel", "params": {"count": POSTS}},
            "post": {
                "type": "http",
                "parent": "fan",
                "params": {"url": url, "method": "POST", "timeout_s": LIMIT_S},
                "policy": {"timeout_s": LIMIT_S, "retry": {"max_attempts": 3, "initial_ms": 10}},
            },
        },
        "edges": [{"source": "start", "target": "fan"}, {"source": "fan", "handle": "body", "target": "post"}],
    }


async def test_a_queue_for_connections_fails_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    async def slow(request: Request) -> bytes:
        await asyncio.sleep(ANSWERS_AFTER_S)
        return answer(200)

    async with http(slow) as service:
        sandbox = Sandbox(threads=1)
        client = GuardedClient([service.place], connections=CONNECTIONS)
        engine = await Engine.open(
            SQLiteStore(tmp_path / "weft.db"),
            registry=Registry.load(sandbox=sandbox),
            services=Services(sandbox=sandbox, http=client),
        )
        try:
            document = _posting(service.url)
            views = await asyncio.gather(*(engine.run(document, timeout_s=300) for _ in range(RUNS)))
        finally:
            await engine.close(grace_s=1)
    assert Counter(view.status for view in views) == {"succeeded": RUNS}
    made = Counter(request.headers["idempotency-key"] for request in service.seen)
    assert len(made) == RUNS * POSTS and set(made.values()) == {1}, made.most_common(3)
