"""Agents under kill -9: no step that has finished is done again, what was in flight is at most paid for twice, and each
reader of a stream gets the journal, across all lost connections."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from contextlib import suppress
from typing import Any

import httpx
import orjson
import pytest

from tests.e2e.crash.conftest import Servers
from tests.support.dev_model import dev_model
from tests.support.documents import document
from tests.support.endpoints import Request, answer, http
from tests.support.follow import Follower, Transcript
from tests.support.journal import Journal, key_of
from tests.support.mcp_server import Shop, mcp_shop

IN_SOAK = "WEFT_SOAK_SECONDS" in os.environ
KILLS = int(os.environ.get("WEFT_CRASH_KILLS", "150" if IN_SOAK else "50")) // 5
STRETCH = 9  # kills, then the agents come to their end: a block that was lost at ten of them is asked about
SEED = int(os.environ.get("WEFT_CRASH_SEED") or random.SystemRandom().randrange(10**6))
AGENTS = 3
MODEL_CALLS, STEPS = 4, 17  # of one agent, if nothing is killed: 4 replies, 4 requests, two approvals at the same time,
# three runs at the same time, its memory, and of an MCP server the list of its tools and a call
PAID, NAPS = (3, 7), (0.1, 0.4, 0.8)
ID: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
RULES: list[dict[str, Any]] = [
    {
        "when": {"round": 0},
        "calls": [
            *({"name": "fetch", "arguments": {"id": n}} for n in (1, 2)),
            {"name": "shop_find", "arguments": {"id": 5}},
        ],
        "pause_ms": 200,
    },
    {"when": {"round": 1}, "calls": [{"name": "pay", "arguments": {"id": n}} for n in PAID], "pause_ms": 200},
    {"when": {"round": 2}, "calls": [{"name": "nap", "arguments": {"s": s}} for s in NAPS], "pause_ms": 200},
    {"when": {"round": 3}, "text": "All of it is done: {{tool}}", "pause_ms": 200},
]


def agent(url: str, shop: Shop, number: int) -> dict[str, Any]:
    place = f"{url}/{number}/{{{{id}}}}"
    fetch = {"name": "fetch", "block": "http", "params": {"url": place}, "arguments": ID}
    pay_params = {"url": place, "method": "POST", "idempotency_header": "Idempotency-Key"}
    pay = {**fetch, "name": "pay", "params": pay_params, "approve": "always"}
    nap = {"name": "nap", "workflow": "napping", "arguments": {"properties": {"s": {"type": "number"}}}}
    of_shop = {"name": "shop", "mcp": {"url": shop.url}}
    # All have one memory, of which the model gets no turn: the rules count replies.
    remembered = {"memory": "kill", "memory_scope": "crash", "memory_messages": 1}
    params = {"model": "dev:m", "prompt": f"Work {number}", "tools": [fetch, pay, nap, of_shop], **remembered}
    blocks = {"start": {"type": "start"}, "a": {"type": "agent", "params": params}}
    return document(f"agent-{number}", "start a", blocks=blocks)


@pytest.mark.proof
@pytest.mark.soak
@pytest.mark.timeout(120 + 8 * KILLS)
async def test_agents_under_kill_9(servers: Servers) -> None:
    print(f"WEFT_CRASH_SEED={SEED} WEFT_CRASH_KILLS={KILLS * 5}")
    choose = random.Random(SEED)
    targets: Counter[str] = Counter()

    async def service(request: Request) -> bytes:
        targets[request.target] += 1
        await asyncio.sleep(0.05)
        return answer(200, b'{"ok": true}', content_type="application/json")

    runs: list[str] = []
    transcripts: dict[str, Transcript] = {}
    async with dev_model(*RULES) as model, http(service) as tools, mcp_shop() as shop:
        shop.pause_s = 0.1
        allowed = f"{tools.place},{shop.place}"
        servers._environ |= {"WEFT_MODEL_DEV": model.url, "WEFT_ALLOW_PRIVATE": allowed}
        server = await servers.start()
        async with httpx.AsyncClient(base_url=server.url, timeout=20, trust_env=False) as client:
            nap = {"type": "wait", "params": {"seconds": "<start.s>"}}
            child = document("napping", "start a", blocks={"start": {"type": "start"}, "a": nap})
            (await client.post("/api/workflows", json={"document": child})).raise_for_status()
            follower = Follower(
                client, Counter(), url=lambda: "", busy=(503,), again_s=0.2, timeout=httpx.Timeout(20, connect=5)
            )
            answering = asyncio.create_task(_answer_all(client))
            following: list[asyncio.Task[None]] = []
            try:
                for before in range(0, KILLS, STRETCH):
                    for _ in range(AGENTS):
                        sent = await client.post("/api/runs", json={"document": agent(tools.url, shop, len(runs))})
                        runs.append(sent.raise_for_status().json()["run"])
                        transcripts[runs[-1]] = []
                        following.append(asyncio.create_task(follower.follow(runs[-1], transcripts[runs[-1]])))
                    for _ in range(min(STRETCH, KILLS - before)):
                        await asyncio.sleep(choose.uniform(0.2, 1.2))
                        await server.kill()
                        server = await servers.start()
                    async with asyncio.timeout(60):
                        await asyncio.gather(*following)
            finally:
                for task in (answering, *following):
                    task.cancel()
                await asyncio.gather(answering, *following, return_exceptions=True)
            for run in runs:
                view = (await client.get(f"/api/runs/{run}")).raise_for_status().json()
                assert view["status"] == "succeeded", view
                assert [one["status"] for one in view["children"]] == ["succeeded"] * len(NAPS), "a run was repeated"
            memory = {"key": "kill", "scope": "crash"}
            turns = (await client.get("/api/memory/turns", params=memory)).raise_for_status().json()["turns"]
        await server.kill()
        billed = len(await model.calls())
    journal = Journal(servers.db)
    repeated, lost = _steps(journal, runs)
    assert repeated == 0
    assert all(_approvals(journal, run) == len(PAID) for run in runs), "a person was asked twice"
    assert sorted(turn["run"] for turn in turns) == sorted(runs), "a turn was lost or written twice"
    assert len(runs) * MODEL_CALLS <= billed <= len(runs) * MODEL_CALLS + KILLS * AGENTS
    assert set(targets) == {f"/{number}/{id}" for number in range(len(runs)) for id in (1, 2, *PAID)}
    assert sum(targets.values()) + shop.called["find", 5] + billed <= len(runs) * (MODEL_CALLS + 5) + lost
    assert shop.called["find", 5] >= len(runs)
    for run, transcript in transcripts.items():
        got = [(event["seq"], event["at_ms"], event["type"], event["key"], event["attempt"]) for event in transcript]
        assert got == [
            (row["seq"], row["at_ms"], row["type"], key_of(row) or None, row["attempt"]) for row in journal.events[run]
        ], run


async def _answer_all(client: httpx.AsyncClient) -> None:
    """Approves what is asked, whatever becomes of the server."""
    while True:
        with suppress(httpx.HTTPError, KeyError, ValueError):
            for wait in (await client.get("/api/waits")).raise_for_status().json()["waits"]:
                if wait.get("link"):
                    headers = {"accept": "application/json"}
                    await client.post(wait["link"], json={"action": "approve"}, headers=headers)
        await asyncio.sleep(0.1)


def _steps(journal: Journal, runs: list[str]) -> tuple[int, int]:
    """Steps that began again after they had finished, and those that were under way when a process ended."""
    repeated = lost = 0
    for run in runs:
        began: Counter[int] = Counter()
        finished: set[int] = set()
        for event in journal.events[run]:
            if event["type"] not in ("step.started", "step.finished"):
                continue
            n = orjson.loads(event["data"])["n"]
            if event["type"] == "step.started":
                repeated += n in finished
                began[n] += 1
            else:
                repeated += n in finished
                finished.add(n)
        assert finished == set(range(1, STEPS + 1)), (run, finished)
        lost += sum(began.values()) - len(began)
    return repeated, lost


def _approvals(journal: Journal, run: str) -> int:
    """How often a person was asked whether a tool may be called."""
    opened = [orjson.loads(each["data"]) for each in journal.events[run] if each["type"] == "wait.opened"]
    return sum(each["kind"] == "approval" for each in opened)
