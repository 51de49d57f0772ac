"""Deliveries of services over HTTP."""

from __future__ import annotations

import httpx

from executor.open.engine import Engine
from tests.support.until import until

MAIL = {"credential": "not-a-real-token", "base_url": "http://127.0.0.1:1", "delivery": "push"}


async def test_a_service_is_answered_as_it_expects(client: httpx.AsyncClient, engine: Engine) -> None:
    document = {"format": "weft/1", "name": "mail", "blocks": {"new": {"type": "event.outlook", "params": MAIL}}}
    saved = await client.post("/api/workflows", json={"name": "mail", "document": document})
    assert saved.status_code == 201, saved.text
    await engine.store.add_hook("h1", "mail:new", "mail", (await _push(engine)), 1)
    (row,) = await until(engine.store.list_hooks)
    address = f"/hooks/push:{row.id}"
    echo = await client.post(address, params={"validationToken": "a <b>"})
    assert (echo.status_code, echo.text, echo.headers["content-type"]) == (200, "a <b>", "text/plain; charset=utf-8")
    secret = engine.parts.links.webhook_secret(f"push:{row.id}", 0)
    for given, status in ((secret, 200), ("wrong", 401)):
        assert (await client.post(address, json={"value": [{"clientState": given}]})).status_code == status
    push = (await client.get("/api/schedules/mail:new")).json()["push"]
    assert push["delivered_at_ms"] is not None and not push["registered"]
    assert (await client.post("/hooks/push:none", json={})).status_code == 404
    await client.post("/api/schedules/mail:new/disable")
    if await engine.store.get_hook(row.id) is not None:  # it is removed when this is noticed
        answer = await client.post(address, json={"value": [{"clientState": secret}]})
        assert answer.status_code in (404, 410)


async def _push(engine: Engine) -> bytes:
    row = await engine.store.get_schedule("mail:new")
    assert row is not None and row.push is not None
    return row.push
