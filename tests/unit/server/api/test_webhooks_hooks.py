"""Webhooks over HTTP: the address that others post to, and the API around it."""

from __future__ import annotations

import time
from typing import Any

import httpx
import orjson
import pytest
from starlette.applications import Starlette

from executor.service.triggers.requests import sign
from server.api import webhooks as hooks
from server.http.rates import REFUSED_HOOKS, Rates

HOOK = "/hooks/orders:order"
API = "/api/webhooks/orders:order"
Json = dict[str, Any]


def orders(after: Json | None = None, **params: Any) -> Json:
    """`after`: the block that the webhook leads to."""
    return {
        "format": "weft/1",
        "name": "orders",
        "blocks": {
            "order": {"type": "webhook", "params": params},
            "then": after or {"type": "set", "params": {"value": "<order.body>"}},
        },
        "edges": [{"source": "order", "target": "then"}],
    }


async def store(client: httpx.AsyncClient, document: Json) -> str:
    """Store it; returns the webhook's secret, '' without one."""
    saved = await client.post("/api/workflows", json=document)
    assert saved.status_code == 201, saved.text
    return (await client.get(API)).json()["secret"] or ""


def headers_of(secret: str, body: bytes, **more: str) -> dict[str, str]:
    now_s = int(time.time())
    stamp = {"x-weft-timestamp": str(now_s), "x-weft-signature": sign(secret, body, now_s)}
    return {"content-type": "application/json", **stamp, **{name.replace("_", "-"): v for name, v in more.items()}}


async def post(client: httpx.AsyncClient, secret: str, body: Any, **more: str) -> httpx.Response:
    data = orjson.dumps(body)
    return await client.post(HOOK, content=data, headers=headers_of(secret, data, **more))


async def test_a_signed_request_starts_a_run(client: httpx.AsyncClient) -> None:
    secret = await store(client, orders())
    started = await post(client, secret, {"n": 1}, x_weft_delivery="d-1")
    assert started.status_code == 202, started.text
    run = started.json()["run"]
    assert started.json() == {
        "run": run,
        "status": "queued",
        "delivery": "d-1",
        "status_url": f"/api/runs/{run}",
    }
    assert started.headers["weft-run"] == run
    again = await post(client, secret, {"n": 1}, x_weft_delivery="d-1")
    assert (again.status_code, again.json()["code"], again.json()["run"]) == (409, "delivery_replayed", run)
    shown = (await client.get(API)).json()
    assert [(one["outcome"], one["run"]) for one in shown["deliveries"]] == [
        ("delivery_replayed", run),
        ("started", run),
    ]
    assert shown["last_run_id"] == run
    assert shown["url"].endswith(HOOK)


async def test_what_is_not_signed_starts_nothing(client: httpx.AsyncClient) -> None:
    secret = await store(client, orders())
    body = b'{"n": 1}'
    for headers, code in (
        ({}, "signature_missing"),
        ({"authorization": f"Bearer {secret}"}, "signature_missing"),
        ({"x-weft-timestamp": "1", "x-weft-signature": sign(secret, body, 1)}, "signature_expired"),
        (headers_of("other", body), "signature_invalid"),
        (headers_of(secret, body + b" "), "signature_invalid"),
    ):
        refused = await client.post(HOOK, content=body, headers={"content-type": "application/json", **headers})
        assert (refused.status_code, refused.json()["code"]) == (401, code)
    # Only headers count.
    signed = headers_of(secret, body)
    query = {"X-Weft-Signature": signed.pop("x-weft-signature"), "signature": "x", "auth": "none"}
    assert (await client.post(HOOK, content=body, headers=signed, params=query)).status_code == 401
    assert (await client.get("/api/runs")).json()["runs"] == []


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE"])
async def test_other_methods_do_nothing(client: httpx.AsyncClient, method: str) -> None:
    await store(client, orders(auth="none"))
    for path in (HOOK, "/hooks/unknown"):
        assert (await client.request(method, path)).status_code == 405
    assert (await client.get("/api/runs")).json()["runs"] == []


async def test_unknown_and_switched_off(client: httpx.AsyncClient) -> None:
    secret = await store(client, orders())
    unknown = await client.post("/hooks/orders:other", json={})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "webhook_not_found")
    assert (await client.post(f"{API}/disable")).json()["enabled"] is False
    off = await post(client, secret, 1)
    assert (off.status_code, off.json()["code"]) == (410, "webhook_disabled")
    assert (await client.post(HOOK, json=1)).status_code == 401
    assert (await client.post(f"{API}/enable")).json()["enabled"] is True
    assert (await post(client, secret, 1)).status_code == 202


async def test_the_answer_of_the_run(client: httpx.AsyncClient) -> None:
    answer = {
        "type": "response",
        "params": {"status": 201, "headers": {"X-Own": "yes"}, "body": {"got": "<order.body>"}},
    }
    await store(client, orders(answer, auth="none", respond="run", timeout_s=60))
    answered = await client.post(HOOK, json={"n": 1})
    assert (answered.status_code, answered.json(), answered.headers["x-own"]) == (201, {"got": {"n": 1}}, "yes")
    run = answered.headers["weft-run"]
    assert (await client.get(f"/api/runs/{run}")).json()["status"] == "succeeded"


async def test_a_run_without_a_response_block(client: httpx.AsyncClient) -> None:
    await store(client, orders(auth="none", respond="run"))
    answered = await client.post(HOOK, json={"n": 1}, headers={"x-weft-delivery": "d-1"})
    assert answered.status_code == 200
    assert {k: v for k, v in answered.json().items() if k != "run"} == {
        "status": "succeeded",
        "delivery": "d-1",
        "output": {"n": 1},
    }


async def test_a_run_that_fails_tells_strangers_no_more_than_that(client: httpx.AsyncClient) -> None:
    broken = {"type": "function", "params": {"code": "throw new Error('a secret of the house')"}}
    await store(client, orders(broken, auth="none", respond="run"))
    answered = await client.post(HOOK, json={})
    assert (answered.status_code, answered.json()["code"]) == (502, "run_failed")
    assert "secret of the house" not in answered.text
    run = (await client.get(f"/api/runs/{answered.json()['run']}")).json()
    assert "secret of the house" in run["error"]["message"]


async def test_a_run_that_takes_longer(client: httpx.AsyncClient) -> None:
    wait = {"type": "wait", "params": {"seconds": 3600}}
    await store(client, orders(wait, auth="none", respond="run", timeout_s=60))
    answered = await client.post(HOOK, json={})
    assert (answered.status_code, answered.json()["status"]) == (202, "waiting")


async def test_any_kind_of_body(client: httpx.AsyncClient) -> None:
    await store(client, orders(auth="none", respond="run"))
    for media, body, seen in (
        ("text/plain", b"hello", "hello"),
        ("application/x-www-form-urlencoded", b"a=1&b=2", "a=1&b=2"),
        ("application/xml", b"<a/>", "<a/>"),
        ("application/vnd.github+json", b"[1]", [1]),
    ):
        answered = await client.post(HOOK, content=body, headers={"content-type": media})
        assert (answered.status_code, answered.json()["output"]) == (200, seen), media
    empty = await client.post(HOOK)
    assert (empty.status_code, empty.json()["output"]) == (200, None)
    for media, body, status, code in (
        ("application/json", b"{", 400, "malformed_json"),
        ("application/json", b"[" * 100 + b"]" * 100, 400, "json_too_deep"),
        ("image/png", b"\x89PNG\xff", 400, "body_not_text"),
        ("text/plain", b"x" * (1024 * 1024 + 1), 413, "body_too_large"),
    ):
        refused = await client.post(HOOK, content=body, headers={"content-type": media})
        assert (refused.status_code, refused.json()["code"]) == (status, code), media
    assert (await client.post(HOOK, content=b"x" * 1024 * 1024)).status_code == 200


async def test_an_open_webhook_is_still_not_for_pages_of_other_sites(client: httpx.AsyncClient) -> None:
    await store(client, orders(auth="none"))
    for foreign in ({"origin": "http://evil.test"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        refused = await client.post(HOOK, content=b"{}", headers={"content-type": "text/plain", **foreign})
        assert (refused.status_code, refused.json()["code"]) == (403, "cross_site")


async def test_a_body_that_does_not_fit(client: httpx.AsyncClient) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    await store(client, orders(auth="none", body_schema=schema))
    refused = await client.post(HOOK, json={"n": "x"})
    assert (refused.status_code, refused.json()["code"], refused.json()["pointer"]) == (422, "input_invalid", "/n")


async def test_a_flood(client: httpx.AsyncClient, app: Starlette) -> None:
    await store(client, orders())
    now_s = 0.0
    app.state.auth.rates = Rates(lambda: now_s)
    for _ in range(REFUSED_HOOKS):
        assert (await client.post(HOOK, json={})).status_code == 401
    slow_down = await client.post(HOOK, json={})
    assert (slow_down.status_code, slow_down.json()["code"]) == (429, "too_many_tries")
    assert slow_down.headers["retry-after"] == "1"
    refused = (await client.get(API)).json()["refused"]
    assert {(one["outcome"], one["count"]) for one in refused} == {("signature_missing", REFUSED_HOOKS + 1)}
    assert (await client.post("/hooks/another", json={})).status_code == 404
    too_large = await client.post("/hooks/another", content=b"x" * (hooks.BODY_BYTES_MAX + 1))
    assert too_large.status_code == 429, "what is refused is counted by address, whatever the webhook"
    assert (await client.get("/api/webhooks/another")).status_code == 404
    now_s += 1.0
    assert (await client.post(HOOK, json={})).status_code == 401


async def test_the_token_of_the_server_is_for_the_api(client: httpx.AsyncClient, locked: httpx.AsyncClient) -> None:
    secret = await store(client, orders())
    for method, path in (("GET", API), ("GET", "/api/webhooks"), ("POST", f"{API}/rotate"), ("PUT", API)):
        assert (await locked.request(method, path, json={} if method != "GET" else None)).status_code == 401
    body = b"{}"
    assert (await locked.post(HOOK, content=body, headers=headers_of(secret, body))).status_code == 202
    assert (await locked.post(HOOK, json={}, headers={"authorization": "Bearer the-token"})).status_code == 401


async def test_the_api(client: httpx.AsyncClient, hello: Json) -> None:
    await client.post("/api/workflows", json=hello)
    made = await client.put("/api/webhooks/greet", json={"workflow": "hello", "auth": "token", "respond": "run"})
    assert made.status_code == 201, made.text
    body = made.json()
    assert (body["origin"], body["timeout_s"], body["deliveries"], body["problem"]) == ("api", 30.0, [], None)
    bearer = {"authorization": f"Bearer {body['secret']}"}
    answered = await client.post("/hooks/greet", json={"name": "Ada"}, headers=bearer)
    assert (answered.status_code, answered.json()["output"]) == (200, {"greeting": "hello Ada"})
    wrong = await client.post("/hooks/greet", json={"name": 5}, headers=bearer)
    assert (wrong.status_code, wrong.json()["pointer"]) == (422, "/name")

    rotated = await client.post("/api/webhooks/greet/rotate")
    assert rotated.status_code == 200 and rotated.json()["secret"] != body["secret"]
    assert (await client.post("/hooks/greet", json={}, headers=bearer)).status_code == 401
    changed = await client.put("/api/webhooks/greet", json={"workflow": "hello", "auth": "none"})
    assert (changed.status_code, changed.json()["secret"]) == (200, None)
    no_own = await client.post("/api/webhooks/greet/rotate")
    assert (no_own.status_code, no_own.json()["code"]) == (409, "no_own_secret")

    listed = (await client.get("/api/webhooks", params={"workflow": "hello"})).json()["webhooks"]
    assert [one["id"] for one in listed] == ["greet"] and "secret" not in listed[0]
    assert (await client.delete("/api/webhooks/greet")).json() == {"id": "greet", "deleted": True}
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/enable"), ("POST", "/disable"), ("POST", "/rotate")):
        gone = await client.request(method, f"/api/webhooks/greet{path}")
        assert (gone.status_code, gone.json()["code"]) == (404, "webhook_not_found")
    for spec, status in (
        ({"workflow": "other"}, 404),
        ({"workflow": "hello", "timeout_s": 61}, 422),
        ({"workflow": "hello", "auth": "maybe"}, 422),
        ({"workflow": "hello", "document": hello}, 422),
        ({"workflow": "hello", "headers": ["Cookie"]}, 400),
    ):
        assert (await client.put("/api/webhooks/greet", json=spec)).status_code == status
    await store(client, orders())
    for method in ("PUT", "DELETE"):
        refused = await client.request(method, API, json={"workflow": "orders"} if method == "PUT" else None)
        assert (refused.status_code, refused.json()["code"]) == (409, "declared_by_document")
