"""Who cannot sign does not get in the way of who can. A signed delivery counts once, however old."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from contextlib import closing
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from server.http.rates import HOOKS, REFUSED_HOOKS, Rates
from server.http.request import parse_json
from server.settings import Settings
from tests.unit.server.api.test_webhooks_hooks import HOOK, headers_of, orders, post, store


async def test_refused_requests_do_not_use_up_the_rate_of_signed_ones(
    client: httpx.AsyncClient, app: Starlette
) -> None:
    """Behind a proxy all have one address."""
    secret = await store(client, orders())
    app.state.auth.rates = Rates(lambda: 0.0)
    answered = [(await client.post(HOOK, json={})).status_code for _ in range(2 * HOOKS)]
    assert answered.count(401) == REFUSED_HOOKS and answered.count(429) == len(answered) - REFUSED_HOOKS
    assert (await post(client, secret, {"n": 1})).status_code == 202


async def test_signed_requests_are_counted_by_webhook(client: httpx.AsyncClient, app: Starlette) -> None:
    secret = await store(client, orders())
    now_s = 0.0
    app.state.auth.rates = Rates(lambda: now_s)
    body = b"1"
    headers = headers_of(secret, body)
    answered = [(await client.post(HOOK, content=body, headers=headers)).status_code for _ in range(HOOKS + 1)]
    assert answered == [202, *[409] * (HOOKS - 1), 429]
    assert (await client.post(HOOK, json={})).status_code == 401, "a measure of its own"
    now_s += 1.0
    assert (await post(client, secret, {"n": 2})).status_code == 202


async def test_the_signature_is_checked_before_the_body_is_parsed(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = await store(client, orders())
    parsed: list[bytes] = []

    def note(data: bytes, *rest: Any) -> Any:
        parsed.append(data)
        return parse_json(data, *rest)

    monkeypatch.setattr("server.api.webhooks.parse_json", note)
    wide = b"[" + b"[]," * 200_000 + b"[]]"
    refused = await client.post(HOOK, content=wide, headers={"content-type": "application/json"})
    assert (refused.status_code, refused.json()["code"], parsed) == (401, "signature_missing", [])
    broken = b"{"
    told = await client.post(HOOK, content=broken, headers=headers_of(secret, broken))
    assert (told.status_code, told.json()["code"], parsed) == (400, "malformed_json", [broken])


async def test_a_captured_github_delivery_is_not_accepted_again_after_a_day(
    client: httpx.AsyncClient, settings: Settings
) -> None:
    secret = await store(client, orders(auth="github"))

    async def push(n: int) -> httpx.Response:
        body = b"%d" % n
        signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {"x-hub-signature-256": f"sha256={signature}", "content-type": "application/json"}
        return await client.post(HOOK, content=body, headers=headers)

    runs = [(await push(n)).json()["run"] for n in range(55)]
    with closing(sqlite3.connect(settings.db_path, isolation_level=None, timeout=60)) as db:
        db.execute("UPDATE deliveries SET at_ms = at_ms - 25 * 3600000")
    assert (await push(99)).status_code == 202
    replayed = await push(0)
    assert (replayed.status_code, replayed.json()["code"], replayed.json()["run"]) == (
        409,
        "delivery_replayed",
        runs[0],
    )
