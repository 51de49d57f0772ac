"""Test addresses: requests run a draft that is not published, for some minutes."""

from __future__ import annotations

from typing import Any

import httpx

from executor.open.engine import Engine
from executor.service.triggers.requests import sign

Json = dict[str, Any]


def hooked(**params: Any) -> Json:
    blocks = {
        "hook": {"type": "webhook", "params": params},
        "b": {"type": "set", "params": {"value": "<hook.body.n>"}},
    }
    return {"format": "weft/1", "name": "hooked", "blocks": blocks, "edges": [{"source": "hook", "target": "b"}]}


async def listen(client: httpx.AsyncClient, doc: Json, trigger: str = "hook") -> tuple[str, httpx.Response]:
    draft = (await client.post("/api/drafts", json={"document": doc})).json()["id"]
    return draft, await client.post(f"/api/drafts/{draft}/listen", json={"trigger": trigger})


async def test_a_request_runs_the_draft_as_it_is_then(client: httpx.AsyncClient) -> None:
    draft, answer = await listen(client, hooked(auth="none"))
    address = answer.json()
    assert (answer.status_code, address["auth"], address["secret"]) == (200, "none", None)
    path = httpx.URL(address["url"]).raw_path.decode()
    started = await client.post(path, json={"n": 7})
    assert started.status_code == 202, started.text
    run = (await client.get(f"/api/runs/{started.json()['run']}")).json()
    assert (run["draft_id"], run["draft_rev"], run["version"]) == (draft, 1, None)
    assert run["input"]["body"] == {"n": 7}
    assert (await client.get("/api/workflows")).json()["workflows"] == []
    assert (await client.get("/api/webhooks")).json()["webhooks"] == []

    await client.delete(f"/api/drafts/{draft}")
    assert (await client.post(path, json={})).status_code == 404


async def test_it_has_the_authentication_that_the_webhook_will_have(client: httpx.AsyncClient, engine: Engine) -> None:
    _, answer = await listen(client, hooked(auth="hmac"))
    path, body = httpx.URL(answer.json()["url"]).raw_path.decode(), b'{"n": 1}'
    assert (await client.post(path, content=body)).status_code == 401
    now_s = engine.parts.clock.now_ms() // 1000
    signed = {
        "content-type": "application/json",
        "x-weft-timestamp": str(now_s),
        "x-weft-signature": sign(answer.json()["secret"], body, now_s),
    }
    first = await client.post(path, content=body, headers=signed)
    assert first.status_code == 202, first.text
    again = await client.post(path, content=body, headers=signed)
    assert again.json()["run"] == first.json()["run"], "the same signature is the same request"


async def test_it_ends_and_cannot_be_made_by_others(client: httpx.AsyncClient, engine: Engine) -> None:
    draft, answer = await listen(client, hooked(auth="none"))
    path = httpx.URL(answer.json()["url"]).raw_path.decode()
    known, until = f"test:{draft}:hook", answer.json()["until_ms"]
    now_ms = engine.parts.clock.now_ms()
    assert now_ms < until <= now_ms + 10 * 60_000
    assert path.startswith(f"/hooks/{known}:{until}:")
    longer = path.replace(str(until), str(until + 1))
    for wrong in (longer, path[:-1], f"/hooks/{known}", "/hooks/test:", f"/hooks/{known}:x:y"):
        assert (await client.post(wrong, json={})).status_code == 404, wrong
    over = f"/hooks/{known}:{now_ms}:{engine.parts.links.page_token(known, now_ms)}"
    assert (await client.post(over, json={})).status_code == 410


async def test_only_webhooks_have_one(client: httpx.AsyncClient) -> None:
    _, answer = await listen(client, hooked(auth="none"), "b")
    assert (answer.status_code, answer.json()["code"], answer.json()["pointer"]) == (400, "not_a_webhook", "/trigger")
    assert (await client.post("/api/drafts/none/listen", json={"trigger": "hook"})).status_code == 404
