from __future__ import annotations

import httpx

from executor.kernel.store.topics.memory import Conversation, MemoryTurn
from executor.open.engine import Engine

TURN = MemoryTurn("r1:a", "r1", 1_700_000_000_000, b'[{"role":"user","text":"Hi"},{"role":"assistant","text":"Hello"}]')


async def test_a_conversation_is_listed_shown_and_deleted(client: httpx.AsyncClient, engine: Engine) -> None:
    for place in (Conversation("chat", "", "a/b?c"), Conversation("", "team", "x")):
        await engine.store.remember(place, TURN)
    listed = (await client.get("/api/memory")).json()["conversations"]
    assert [(one["workflow"], one["scope"], one["key"], one["turns"]) for one in listed] == [
        ("", "team", "x", 1),
        ("chat", "", "a/b?c", 1),
    ]
    of = {"key": "a/b?c", "workflow": "chat"}
    assert len((await client.get("/api/memory", params={"workflow": "chat"})).json()["conversations"]) == 1
    [turn] = (await client.get("/api/memory/turns", params=of)).json()["turns"]
    assert turn["run"] == "r1" and turn["messages"][1] == {"role": "assistant", "text": "Hello"}
    assert (await client.delete("/api/memory", params=of)).json() == {"deleted": 1}
    assert (await client.delete("/api/memory", params=of)).json() == {"deleted": 0}
    assert (await client.get("/api/memory/turns", params=of)).json() == {"turns": []}
    assert (await client.get("/api/memory/turns", params={"key": "x", "scope": "team"})).status_code == 200


async def test_a_key_alone_names_no_conversation(client: httpx.AsyncClient) -> None:
    for where in ({"key": "x"}, {"key": "x", "workflow": "w", "scope": "s"}, {}):
        refused = await client.delete("/api/memory", params=where)
        assert (refused.status_code, refused.json()["code"]) == (400, "memory_owner")
