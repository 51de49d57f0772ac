"""kill -9 in the midst of a long attempt: the next one continues from its checkpoint and repeats nothing."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.crash.conftest import Servers
from tests.e2e.crash.test_resume import ended
from tests.support.documents import in_a_row
from tests.support.journal import Journal, log_is_clean
from tests.support.server import ROOT

pytestmark = pytest.mark.proof

ITEMS = ["one", "two", "three", "four", "five"]
STOP = 3


def work(function: str, file: Path) -> dict[str, Any]:
    block = {
        "type": "python",
        "params": {"function": function, "arguments": {"items": ITEMS, "file": str(file), "stop": STOP}},
        "policy": {"on_lost": "retry"},
    }
    return in_a_row("items", {"work": block})


@pytest.mark.parametrize("function", ["in_the_loop", "in_a_thread"])
async def test_a_long_attempt_continues_from_its_checkpoint(servers: Servers, tmp_path: Path, function: str) -> None:
    servers.offer("tests.e2e.crash.items:in_the_loop", "tests.e2e.crash.items:in_a_thread")
    done = tmp_path / "done"
    first = await servers.start()
    async with httpx.AsyncClient(base_url=first.url, timeout=60, trust_env=False) as client:
        run = (await client.post("/api/runs", json={"document": work(function, done)})).json()["run"]
        async with asyncio.timeout(60):
            while (kept := await checkpoint(client, run)) is None or kept["value"] < STOP:
                await asyncio.sleep(0.02)
    assert (kept["attempt"], kept["value"], kept["value_truncated"]) == (1, STOP, False)
    assert done.read_text().split() == ITEMS[:STOP]
    said = await why(first.url, run)
    assert re.fullmatch(
        r"work  running\n(  .*\n)*  attempt 1 saved a checkpoint at \d{4}-\d\d-\d\d [\d:]{8}: 3\n", said
    ), said
    await first.kill()

    second = await servers.start()
    view = await ended(second, run)
    assert (view["status"], view["output"]) == ("succeeded", {"began": STOP, "attempt": 2})
    assert done.read_text().split() == ITEMS
    async with httpx.AsyncClient(base_url=second.url, timeout=60, trust_env=False) as client:
        kept = await checkpoint(client, run)
    assert kept is not None and (kept["attempt"], kept["value"]) == (2, len(ITEMS))
    assert await second.stop(timeout_s=30) == 0
    journal = Journal(servers.db)
    journal.is_sound()
    journal.is_dense()
    journal.results_are_recorded_once()
    assert journal.lost_attempts() == {(run, "work"): 1}
    log_is_clean(servers.log)


async def why(url: str, run: str) -> str:
    command = (sys.executable, "-m", "server", "--url", url, "why", run, "work")
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode()


async def checkpoint(client: httpx.AsyncClient, run: str) -> dict[str, Any] | None:
    answer: dict[str, Any] = (await client.get(f"/api/runs/{run}/nodes/work")).json()
    kept: dict[str, Any] | None = answer["checkpoint"]
    return kept
