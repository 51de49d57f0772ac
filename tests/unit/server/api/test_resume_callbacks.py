"""The address of a callback block: any JSON or text, taken once; looking shows nothing; no other link opens it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from executor.open.engine import Engine
from executor.service.topics.waits import WaitFilter

BODIES: list[tuple[bytes, str | None, Any]] = [
    (b'{"ok": true}', "application/json", {"ok": True}),
    (b"[1, null]", "application/cloudevents+json; charset=utf-8", [1, None]),
    (b"17", None, 17),
    (b"plain words", None, "plain words"),
    (b'{"ok": true}', "text/plain", '{"ok": true}'),
    (b"a=1&b=2", "application/x-www-form-urlencoded", "a=1&b=2"),
    ("größer".encode(), "text/plain; charset=utf-8", "größer"),
    (b"", None, None),
]


def calling(**params: Any) -> dict[str, Any]:
    return {
        "format": "weft/1",
        "name": "calling",
        "blocks": {
            "start": {"type": "start"},
            "job": {"type": "callback", "name": "Render job", "params": params},
        },
        "edges": [{"source": "start", "target": "job"}],
    }


async def address_of(client: httpx.AsyncClient, run: dict[str, Any]) -> str:
    assert run["status"] == "waiting", run
    (wait,) = (await client.get(f"/api/waits?run={run['run']}")).json()["waits"]
    assert (wait["kind"], wait["title"]) == ("webhook", "Render job")
    return str(wait["link"])


async def output_of(engine: Engine, run: str) -> Any:
    async for _ in engine.follow(run):
        pass
    view = await engine.runs.view(run)
    assert view.status == "succeeded", view.error
    return view.output


@pytest.mark.parametrize(("body", "media", "expected"), BODIES)
async def test_a_post_is_the_output(
    client: httpx.AsyncClient,
    started: Callable[..., Any],
    engine: Engine,
    body: bytes,
    media: str | None,
    expected: Any,
) -> None:
    run = await started(calling())
    headers = {"x-request-id": "r-1", "authorization": "Bearer private", "cookie": "a=b", "user-agent": "renderer/2"}
    headers |= {"content-type": media} if media else {}
    taken = await client.post(await address_of(client, run), content=body, headers=headers)
    assert (taken.status_code, taken.json()["accepted"]) == (202, True)
    output = await output_of(engine, run["run"])
    assert output["body"] == expected
    assert output["received_at"] == taken.json()["received_at_ms"]
    kept = {"x-request-id": "r-1", "user-agent": "renderer/2"} | ({"content-type": media} if media else {})
    assert output["headers"] == kept
    assert set(output) == {"body", "headers", "received_at"}


async def test_the_second_post_learns_who_was_first(
    client: httpx.AsyncClient, started: Callable[..., Any], engine: Engine
) -> None:
    run = await started(calling())
    address = await address_of(client, run)
    first = await client.post(address, json={"n": 1}, headers={"user-agent": "first/1"})
    late = await client.post(address, json={"n": 2}, headers={"user-agent": "second/1"})
    assert (late.status_code, late.json()["code"]) == (409, "already_answered")
    assert "answer" not in late.json()
    assert (late.json()["answered_by"], late.json()["answered_at_ms"]) == ("first/1", first.json()["received_at_ms"])
    assert (await output_of(engine, run["run"]))["body"] == {"n": 1}


async def test_a_body_that_does_not_fit_leaves_it_open(
    client: httpx.AsyncClient, started: Callable[..., Any], engine: Engine
) -> None:
    schema = {"type": "object", "properties": {"status": {"enum": ["done", "failed"]}}, "required": ["status"]}
    run = await started(calling(schema=schema))
    address = await address_of(client, run)
    for body, pointer in (({"status": "maybe"}, "/status"), ({}, ""), ("done", "")):
        refused = await client.post(address, json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "answer_invalid")
        assert refused.json()["pointer"] == pointer
    assert (await client.post(address, json={"status": "done"})).status_code == 202
    assert (await output_of(engine, run["run"]))["body"] == {"status": "done"}


@pytest.mark.parametrize(
    ("content", "media", "status", "code"),
    [
        (b"{", "application/json", 400, "malformed_json"),
        (b"\xff\xfe\x00", "text/plain", 415, "unsupported_media_type"),
        (b"[" * 100 + b"]" * 100, "application/json", 400, "json_too_deep"),
        (b'"' + b"x" * 1024 * 1024 + b'"', "application/json", 413, "body_too_large"),
    ],
)
async def test_what_is_no_answer_leaves_it_open(
    client: httpx.AsyncClient, started: Callable[..., Any], content: bytes, media: str, status: int, code: str
) -> None:
    run = await started(calling())
    address = await address_of(client, run)
    refused = await client.post(address, content=content, headers={"content-type": media})
    assert (refused.status_code, refused.json()["code"]) == (status, code)
    almost = b'"' + b"x" * (1024 * 1024 - 2) + b'"'
    assert (await client.post(address, content=almost, headers={"content-type": media})).status_code in (202,)


async def test_looking_shows_nothing_and_takes_nothing(client: httpx.AsyncClient, started: Callable[..., Any]) -> None:
    run = await started(calling())
    address = await address_of(client, run)
    real, unknown = await client.get(address), await client.get("/callbacks/" + "x" * 43)
    assert real.status_code == 405 and real.headers["allow"] == "POST"
    assert real.json() == unknown.json() and "Send the answer" in real.json()["hint"]
    assert (await client.head(address)).status_code == 405
    assert (await client.put(address, json={})).status_code == 405
    assert (await client.post(address, json={})).status_code == 202


async def test_links_for_people_and_for_programs_are_not_interchangeable(
    client: httpx.AsyncClient, started: Callable[..., Any], asking: dict[str, Any], engine: Engine
) -> None:
    address = await address_of(client, await started(calling()))
    run = await started(asking)
    (wait,) = (await client.get(f"/api/waits?run={run['run']}")).json()["waits"]
    callback, resume = address.rpartition("/")[2], wait["link"].rpartition("/")[2]
    assert "/callbacks/" in address and "/resume/" in wait["link"]
    for path in (f"/resume/{callback}", f"/api/resume/{callback}"):
        assert (await client.get(path)).status_code == 404
        assert (await client.post(path, json={"fields": {}})).status_code == 404
    assert (await client.post(f"/callbacks/{resume}", json={"amount": 1})).status_code == 404
    counts = (await engine.waits.page(WaitFilter())).counts
    assert counts is not None and counts["pending"] == 2


async def test_a_callback_expires_like_any_wait(
    client: httpx.AsyncClient, started: Callable[..., Any], engine: Engine
) -> None:
    run = await engine.submit(calling(expires_in_s=0.05, on_expire="continue"))
    async for records in engine.follow(run.run):
        assert records
    view = await engine.runs.view(run.run)
    assert (view.status, view.output) == ("succeeded", None)
    (wait,) = await engine.waits.list(None, run.run)
    address = "/callbacks/" + engine.parts.links.token(run.run, wait.id, "callback")
    late = await client.post(address, json={})
    assert (late.status_code, late.json()["code"]) == (409, "wait_expired")


async def test_programs_need_no_token_and_browsers_of_other_sites_are_refused(
    locked: httpx.AsyncClient, client: httpx.AsyncClient, started: Callable[..., Any]
) -> None:
    address = await address_of(client, await started(calling()))
    foreign = await locked.post(address, json={}, headers={"origin": "http://evil.test"})
    assert (foreign.status_code, foreign.json()["code"]) == (403, "cross_site")
    assert (await locked.post(address, json={})).status_code == 202
