"""`ctx.http`: requests of a handler, by the rules of this server. `ctx.now`: its clock."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from executor.blocks.types.typed import block
from executor.kernel.handler.base import StepContext
from tests.support.clock import ManualClock
from tests.support.documents import document
from tests.support.endpoints import Request, answer, http
from tests.support.runs import engine_on, outputs, ran


@block(type="asks", effect="read", attempts=2)
async def asks(url: str, ctx: StepContext, method: str = "GET", body: Any = None) -> dict[str, Any]:
    response = (await ctx.http.request(method, url, json=body)).raise_for_status()
    return {"status": response.status, "json": response.json(), "url": response.url}


@block(type="tells", effect="none")
def tells(ctx: StepContext) -> str:
    return ctx.now.isoformat()


def asking(url: str, **params: Any) -> dict[str, Any]:
    retry = {"retry": {"max_attempts": 2, "initial_ms": 1}}
    return document(
        "asks", "start a", blocks={"a": {"type": "asks", "params": {"url": url, **params}, "policy": retry}}
    )


async def test_a_request_carries_the_idempotency_key(tmp_path: Path) -> None:
    seen: list[Request] = []

    async def handle(request: Request) -> bytes:
        seen.append(request)
        return answer(200, b'{"ok": true}', content_type="application/json")

    async with http(handle) as server, engine_on(tmp_path / "a.db", asks, allow_private=[server.place]) as engine:
        view = await ran(engine, asking(f"http://{server.place}/a", method="post", body={"n": 1}))
        await ran(engine, asking(f"http://{server.place}/b"))
    assert outputs(view)["a"]["json"] == {"ok": True}
    assert json.loads(seen[0].body) == {"n": 1} and seen[0].headers["content-type"] == "application/json"
    assert seen[0].headers["idempotency-key"] == f"{view.id}:a"
    assert "idempotency-key" not in seen[1].headers


async def test_a_status_is_tried_again_as_that_of_an_http_block(tmp_path: Path) -> None:
    answers = [answer(503, b"busy"), answer(200, b"[1]"), answer(404, b"no"), answer(200, b"not json")]

    async def handle(request: Request) -> bytes:
        return answers.pop(0)

    async with http(handle) as server, engine_on(tmp_path / "a.db", asks, allow_private=[server.place]) as engine:
        assert outputs(await ran(engine, asking(f"http://{server.place}/a")))["a"]["json"] == [1]
        refused = (await ran(engine, asking(f"http://{server.place}/a"))).error
        odd = (await ran(engine, asking(f"http://{server.place}/a"))).error
    assert refused is not None and refused["code"] == "http_status" and "answered 404" in refused["message"]
    assert odd is not None and odd["code"] == "response_invalid" and "not JSON" in odd["message"]


async def test_private_addresses_are_refused(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "a.db", asks) as engine:
        error = (await ran(engine, asking("http://127.0.0.1:9/"))).error
    assert error is not None and error["code"] == "address_refused"
    assert error["hint"] == "to allow it, start the server with WEFT_ALLOW_PRIVATE=127.0.0.1:9"


async def test_now_is_the_clock_of_the_engine(tmp_path: Path) -> None:
    clock = ManualClock()
    async with engine_on(tmp_path / "a.db", tells, clock=clock) as engine:
        view = await ran(engine, document("tells", "start a", blocks={"a": {"type": "tells"}}))
    assert outputs(view)["a"] == datetime.fromtimestamp(clock.now_ms() / 1000, UTC).isoformat()
