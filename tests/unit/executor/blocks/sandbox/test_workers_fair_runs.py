"""Programs of one run keep no other run waiting."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.values.payload import Bound
from executor.open.engine import Engine


async def test_another_runs_program_starts_while_eight_endless_ones_run() -> None:
    sandbox = Sandbox(threads=4)

    async def program(owner: str, source: str, timeout_ms: int) -> object:
        result, _ = await sandbox.run_code(Bound(source, {}), now_ms=0, seed="s", timeout_ms=timeout_ms, owner=owner)
        return result

    try:
        endless = [asyncio.create_task(program("greedy", "for (;;) {}", 60_000)) for _ in range(8)]
        await asyncio.sleep(0.5)
        assert await asyncio.gather(*(program("other", f"return {n}", 30_000) for n in range(20))) == list(range(20))
        assert not any(task.done() for task in endless), "not even two of them have ended"
        for task in endless:
            task.cancel()
        await asyncio.wait(endless)
        assert await program("greedy", "return 'again'", 30_000) == "again"
    finally:
        sandbox.close()


def _fan(code: str, count: int, **policy: Any) -> dict[str, Any]:
    function = {"type": "function", "parent": "fan", "params": {"code": code, "timeout_s": 60}, "policy": policy}
    return {
        "format": "weft/1",
        "blocks": {"start": {"type": "start"}, "fan": {"type": "parallel", "params": {"count": count}}, "f": function},
        "edges": [{"source": "start", "target": "fan"}, {"source": "fan", "handle": "body", "target": "f"}],
    }


async def test_runs_take_turns_and_a_late_block_says_that_it_queued(tmp_path: Path) -> None:
    sandbox = Sandbox(threads=2)
    services = Services(sandbox=sandbox, http=GuardedClient())
    store = SQLiteStore(tmp_path / "weft.db")
    engine = await Engine.open(store, registry=Registry.load(sandbox=sandbox), services=services)
    try:
        greedy = (await engine.submit(_fan("for (;;) {}", 8, timeout_s=4))).run
        assert (await engine.run(_fan("return 1", 10), timeout_s=100)).status == "succeeded"
        async for _ in engine.follow(greedy):
            pass
        said = [event.data["error"]["message"] async for event in engine.stream(greedy) if event.type == "node.failed"]
        assert any("longer than 4 s, " in text and "s of it in the queue" in text for text in said), said
    finally:
        await engine.close(grace_s=1)
