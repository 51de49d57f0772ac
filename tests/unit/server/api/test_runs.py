"""Workflows and runs over HTTP, as a program uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import orjson
import pytest

from executor.kernel.store.run_rows import Append
from executor.open.engine import Engine

SSE = {"accept": "text/event-stream"}
AS_JSON = {"accept": "application/json"}


def frames(text: str) -> list[dict[str, Any]]:
    """The `data` of each event, with its id and event name checked against it."""
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if "data" in fields:
            event = orjson.loads(fields["data"])
            assert (int(fields["id"]), fields["event"]) == (event["seq"], event["type"])
            found.append(event)
    return found


async def test_store_read_and_run(client: httpx.AsyncClient, hello: dict[str, Any]) -> None:
    saved = await client.post("/api/workflows", json=hello)
    assert saved.status_code == 201
    assert saved.headers["location"] == "/api/workflows/hello"
    assert (saved.json()["name"], saved.json()["version"]) == ("hello", 1)
    assert (await client.post("/api/workflows", json={"document": hello})).status_code == 200
    read = await client.get("/api/workflows/hello?version=1")
    assert read.json()["document"] == hello and read.headers["etag"]
    listed = (await client.get("/api/workflows")).json()["workflows"]
    assert [row["name"] for row in listed] == ["hello"]
    result = await client.post("/api/workflows/hello/runs?wait=60", json={"input": {"name": "Ada"}})
    assert result.status_code == 200
    assert (result.json()["status"], result.json()["output"]) == ("succeeded", {"greeting": "hello Ada"})


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("query", ["wait=soon", "wait=-1", "preview=all"])
async def test_a_refused_start_has_started_nothing(
    client: httpx.AsyncClient, hello: dict[str, Any], accept: str, query: str
) -> None:
    """What the answer is to look like is read before anything is stored."""
    await client.post("/api/workflows", json=hello)
    first = (await client.post("/api/runs?wait=60", json={"document": hello})).json()["run"]
    draft = (await client.post("/api/drafts", json={"document": hello})).json()["id"]
    for path, body in (
        ("/api/runs", {"document": hello}),
        ("/api/workflows/hello/runs", {}),
        (f"/api/drafts/{draft}/run", {}),
        (f"/api/runs/{first}/rerun", {}),
    ):
        refused = await client.post(f"{path}?{query}", json=body, headers={"Accept": accept})
        assert refused.status_code == 400, path
    assert [run["id"] for run in (await client.get("/api/runs")).json()["runs"]] == [first]


async def test_a_run_is_accepted_with_its_urls(client: httpx.AsyncClient, hello: dict[str, Any]) -> None:
    response = await client.post("/api/runs", json={"document": hello})
    assert response.status_code == 202
    body = response.json()
    assert response.headers["location"] == body["urls"]["self"] == f"/api/runs/{body['run']}"
    for name in ("self", "events", "graph", "why", "plan"):
        assert (await client.get(body["urls"][name], headers=AS_JSON)).status_code == 200, name


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({}, 422, ""),
        ({"document": []}, 422, "/document"),
        ({"document": {}, "inputs": {}}, 422, ""),
        ({"document": {"blocks": {"a": {"type": "nonsense"}}, "edges": []}}, 422, None),
        ([], 422, ""),
    ],
)
async def test_wrong_bodies_are_pointed_at(
    client: httpx.AsyncClient, body: Any, status: int, pointer: str | None
) -> None:
    response = await client.post("/api/runs", json=body)
    assert response.status_code == status
    problem = response.json()
    assert {"type", "title", "status", "code", "detail", "pointer"} <= set(problem)
    if pointer is not None:
        assert problem["pointer"] == pointer


async def test_a_wrong_document_is_refused_with_all_findings(client: httpx.AsyncClient, hello: dict[str, Any]) -> None:
    hello["blocks"]["greet"]["type"] = "grete"
    hello["edges"].append({"source": "start", "target": "nowhere"})
    refused = await client.post("/api/workflows", json=hello)
    assert (refused.status_code, refused.json()["code"]) == (422, "document_invalid")
    pointers = {finding["pointer"] for finding in refused.json()["diagnostics"]}
    assert len(pointers) >= 2 and any(pointer.startswith("/blocks/greet") for pointer in pointers)
    checked = await client.post("/api/validate", json={"document": hello})
    assert (checked.status_code, checked.json()["valid"]) == (200, False)
    assert {finding["pointer"] for finding in checked.json()["diagnostics"]} == pointers


async def test_one_key_is_one_run(client: httpx.AsyncClient, hello: dict[str, Any], engine: Engine) -> None:
    key = {"idempotency-key": "order-1"}
    first = await client.post("/api/runs", json={"document": hello, "input": {"name": "a"}}, headers=key)
    again = await client.post("/api/runs", json={"document": hello, "input": {"name": "a"}}, headers=key)
    other = await client.post("/api/runs", json={"document": hello, "input": {"name": "b"}}, headers=key)
    assert (first.status_code, again.status_code, other.status_code) == (202, 200, 409)
    assert first.json()["run"] == again.json()["run"]
    assert again.headers["idempotency-replayed"] == "true" and again.json()["created"] is False
    body = {"document": hello, "input": {"name": "a"}}
    waiting = await client.post("/api/runs?wait=60", json=body, headers=key)
    followed = await client.post("/api/runs", json=body, headers={**key, "accept": "text/event-stream"})
    for response in (waiting, followed):
        assert (response.status_code, response.headers["idempotency-replayed"]) == (200, "true")
    assert len(await engine.runs.list()) == 1
    assert (
        await client.post("/api/runs", json={"document": hello}, headers={"idempotency-key": "x" * 300})
    ).status_code == 400


async def test_unknown_things_are_404(client: httpx.AsyncClient) -> None:
    paths = [
        "/api/runs/none",
        "/api/runs/none/events",
        "/api/runs/none/graph",
        "/api/runs/none/why",
        "/api/runs/none/plan",
    ]
    for path in [*paths, "/api/workflows/none", "/api/resume/none", "/api/nowhere"]:
        response = await client.get(path)
        assert response.status_code == 404, path
        assert response.headers["content-type"] == "application/problem+json"
    assert (await client.post("/api/workflows/none/runs", json={})).status_code == 404
    assert (await client.post("/api/runs/none/cancel")).status_code == 404
    assert (await client.post("/api/runs/none/signals/x", json={})).status_code == 404


async def test_a_wrong_method_names_the_right_ones(client: httpx.AsyncClient) -> None:
    response = await client.delete("/api/runs")
    assert response.status_code == 405 and response.json()["code"] == "method_not_allowed"
    assert "POST" in response.headers["allow"]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=x", "limit=-1", "limit=99999", "limit=1e3", "status=done", "limit=%C2%B2"]
)
async def test_wrong_queries_are_400(client: httpx.AsyncClient, query: str) -> None:
    response = await client.get(f"/api/runs?{query}")
    assert (response.status_code, response.json()["code"]) == (400, "bad_request")


async def test_runs_are_listed_in_pages(client: httpx.AsyncClient, hello: dict[str, Any]) -> None:
    for _ in range(3):
        await client.post("/api/runs?wait=60", json={"document": hello})
    first = (await client.get("/api/runs?limit=2")).json()
    rest = (await client.get(f"/api/runs?limit=2&before={first['next']}&status=succeeded")).json()
    ids = [run["id"] for run in first["runs"] + rest["runs"]]
    assert len(ids) == len(set(ids)) == 3 and rest["next"] is None


async def test_events_as_a_stream_and_as_history(
    client: httpx.AsyncClient, hello: dict[str, Any], started: Callable[..., Any]
) -> None:
    run = (await started(hello))["urls"]
    stream = await client.get(run["events"], headers=SSE)
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.headers["cache-control"] == "no-store"
    assert stream.text.startswith("retry: 2000\n\n")
    events = frames(stream.text)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["type"], events[-1]["type"]) == ("run.started", "run.finished")
    greeted = next(e for e in events if e["block"] == "greet" and e["type"] == "node.succeeded")
    assert greeted["data"]["output"] == {"greeting": "hello world"}
    history = (await client.get(run["events"], headers=AS_JSON)).json()
    assert history["events"] == events and history["count"] == len(events) and history["next"] is None


async def test_a_stream_continues_after_the_cursor(
    client: httpx.AsyncClient, hello: dict[str, Any], started: Callable[..., Any]
) -> None:
    url = (await started(hello))["urls"]["events"]
    everything = frames((await client.get(url)).text)
    for after in range(len(everything)):  # at the very end it is 204: an EventSource stops at that
        assert frames((await client.get(url, headers={"last-event-id": str(after)})).text) == everything[after:]
        assert frames((await client.get(f"{url}?after={after}")).text) == everything[after:]
    assert (await client.get(url, params={"after": 9999})).text == "retry: 2000\n\n"
    for bad in ("x", "-1", "1.5", "9" * 30):
        assert (await client.get(url, headers={"last-event-id": bad})).status_code == 400


async def test_history_is_filtered_and_paged(
    client: httpx.AsyncClient, hello: dict[str, Any], started: Callable[..., Any]
) -> None:
    url = (await started(hello))["urls"]["events"]

    async def history(query: str) -> dict[str, Any]:
        return dict((await client.get(f"{url}?{query}", headers=AS_JSON)).json())

    everything = (await history(""))["events"]
    page = await history("limit=2")
    assert (len(page["events"]), page["count"], page["next"]) == (2, len(everything), 2)
    assert (await history(f"limit=2&after={page['next']}"))["events"] == everything[2:4]
    assert {e["node"] for e in (await history("node=greet"))["events"]} == {"greet"}
    assert {e["type"] for e in (await history("type=run.started,run.finished"))["events"]} == {
        "run.started",
        "run.finished",
    }
    assert (await history(f"since={everything[-1]['at_ms'] + 1}"))["events"] == []


async def test_starting_and_following_is_one_request(client: httpx.AsyncClient, hello: dict[str, Any]) -> None:
    response = await client.post("/api/runs", json={"document": hello}, headers=SSE)
    assert response.status_code == 200 and response.headers["location"].startswith("/api/runs/")
    assert frames(response.text)[-1]["data"]["status"] == "succeeded"


async def test_a_response_block_answers_the_caller(client: httpx.AsyncClient, hello: dict[str, Any]) -> None:
    hello["blocks"]["say"] = {
        "type": "response",
        "name": "Say",
        "params": {"status": 201, "headers": {"x-kind": "greeting"}, "body": {"said": "<greet.greeting>"}},
    }
    hello["edges"].append({"source": "greet", "target": "say"})
    key = {"idempotency-key": "once"}
    response = await client.post("/api/runs?wait=60", json={"document": hello}, headers=key)
    assert (response.status_code, response.json()) == (201, {"said": "hello world"})
    assert response.headers["x-kind"] == "greeting" and response.headers["weft-run"]
    assert "idempotency-replayed" not in response.headers
    again = await client.post("/api/runs?wait=60", json={"document": hello}, headers=key)
    assert (again.status_code, again.json()) == (201, {"said": "hello world"})
    assert (again.headers["weft-run"], again.headers["idempotency-replayed"]) == (response.headers["weft-run"], "true")


async def test_cancel_once(client: httpx.AsyncClient, asking: dict[str, Any], started: Callable[..., Any]) -> None:
    run = await started(asking)
    assert run["status"] == "waiting"
    assert (await client.post(run["urls"]["cancel"], json={"reason": "enough"})).status_code == 202
    assert frames((await client.get(run["urls"]["events"])).text)[-1]["data"]["status"] == "cancelled"
    again = await client.post(run["urls"]["cancel"])  # as by a client that got no answer
    assert (again.status_code, again.json()) == (202, {"run": run["run"], "cancelled": True, "status": "cancelled"})


async def test_a_run_that_has_ended_otherwise_cannot_be_cancelled(
    client: httpx.AsyncClient, hello: dict[str, Any]
) -> None:
    run = (await client.post("/api/runs?wait=60", json={"document": hello})).json()["run"]
    late = await client.post(f"/api/runs/{run}/cancel")
    assert (late.status_code, late.json()["code"], late.json()["run_status"]) == (409, "run_ended", "succeeded")


async def test_a_cancel_that_came_too_late_says_so(
    client: httpx.AsyncClient, engine: Engine, hello: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run was failing already when its owner, another process, read the wish."""
    await engine.stop_working()
    run = (await client.post("/api/runs", json={"document": hello})).json()["run"]
    [row] = await engine.store.claim("another process", engine.parts.clock.now_ms(), 60_000)
    post = engine.store.cancel_run

    async def posted(run: str, fact: bytes, now_ms: int) -> bool:
        assert await post(run, fact, now_ms)
        end = Append(run, row.epoch, row.seq, (), now_ms, consumed_inbox=(1,), status="failed", finished=True)
        await engine.store.append(end)
        return True

    monkeypatch.setattr(engine.store, "cancel_run", posted)
    late = await client.post(f"/api/runs/{run}/cancel")
    assert (late.status_code, late.json()["code"], late.json()["run_status"]) == (409, "run_ended", "failed")


async def test_v1_a_cancel_says_what_is_known(client: httpx.AsyncClient, engine: Engine, hello: dict[str, Any]) -> None:
    await engine.stop_working()
    run = (await client.post("/api/runs", json={"document": hello})).json()["run"]
    [row] = await engine.store.claim("another process", engine.parts.clock.now_ms(), 60_000)
    asked = await client.post(f"/api/runs/{run}/cancel")
    assert (asked.status_code, asked.json()) == (202, {"run": run, "cancelled": False, "status": "cancelling"})
    end = Append(run, row.epoch, row.seq, (), 0, consumed_inbox=(1,), status="cancelled", finished=True)
    await engine.store.append(end)
    again = await client.post(f"/api/runs/{run}/cancel")
    assert (again.status_code, again.json()["status"]) == (202, "cancelled")


async def test_a_signal_counts_once(
    client: httpx.AsyncClient, asking: dict[str, Any], started: Callable[..., Any]
) -> None:
    url = (await started(asking))["urls"]["self"] + "/signals/paid"
    first = await client.post(url, json={"payload": {"eur": 5}}, headers={"idempotency-key": "k"})
    again = await client.post(url, json={"payload": {"eur": 5}}, headers={"idempotency-key": "k"})
    assert (first.status_code, again.status_code) == (202, 200)
    assert (first.json()["new"], again.json()["new"]) == (True, False)
    assert first.json()["seq"] == again.json()["seq"] == 1


async def test_the_plan_in_every_form(
    client: httpx.AsyncClient, hello: dict[str, Any], started: Callable[..., Any]
) -> None:
    url = (await started(hello))["urls"]["plan"]
    assert (await client.get(url)).json()["name"] == "hello"
    for form in ("text", "dot", "mermaid"):
        for expanded in ("", "&expanded=1"):
            drawn = await client.get(f"{url}?format={form}{expanded}")
            assert drawn.status_code == 200 and "greet" in drawn.text.lower()
    assert (await client.get(f"{url}?expanded=1")).status_code == 200
    assert (await client.get(f"{url}?format=pdf")).status_code == 400


async def test_the_plan_of_a_stored_workflow_is_what_its_runs_are_pinned_to(
    client: httpx.AsyncClient, hello: dict[str, Any]
) -> None:
    await client.post("/api/workflows", json=hello)
    other = {"type": "start"}
    await client.post(
        "/api/workflows",
        json={
            **hello,
            "blocks": {**hello["blocks"], "other": other, "end": {"type": "set"}},
            "edges": [*hello["edges"], {"source": "other", "target": "end"}],
        },
    )
    run = (await client.post("/api/workflows/hello/runs", json={"version": 1})).json()
    url = "/api/workflows/hello/plan"
    first = await client.get(f"{url}?version=1")
    assert first.headers["etag"] == (await client.get(run["urls"]["plan"])).headers["etag"]
    by_trigger = (await client.get(f"{url}?trigger=other")).json()
    assert by_trigger["trigger"] == "other"
    assert [node["id"] for node in by_trigger["regions"][0]["nodes"]] == ["other", "end"]
    assert "other" in (await client.get(f"{url}?trigger=other&format=mermaid&expanded=1")).text
    refused = await client.get(f"{url}?trigger=greet")
    assert (refused.status_code, refused.json()["diagnostics"][0]["code"]) == (422, "trigger_unknown")
    for missing in ("/api/workflows/none/plan", f"{url}?version=9"):
        assert (await client.get(missing)).json()["code"] == "workflow_not_found"
    assert "deploy it first" in (await client.post("/api/workflows/none/runs", json={})).json()["hint"]


async def test_a_failure_that_was_dealt_with_is_listed_and_explained(
    client: httpx.AsyncClient, started: Callable[..., Any]
) -> None:
    blocks = {
        "start": {"type": "start"},
        "lax": {"type": "function", "params": {"code": "throw new Error('a')"}, "policy": {"on_error": "continue"}},
        "bad": {"type": "function", "params": {"code": "throw new Error('b')"}},
        "saved": {"type": "set"},
        "dead": {"type": "set"},
        "fan": {"type": "parallel", "params": {"mode": "count", "count": 2, "on_branch_error": "continue"}},
        "inner": {
            "type": "function",
            "parent": "fan",
            "params": {"code": "if (<fan.index> == 1) throw new Error('c')"},
        },
        "past": {"type": "set", "policy": {"skip_if": "true"}},
    }
    ways = [("start", "lax"), ("start", "bad"), ("bad", "dead"), ("start", "fan"), ("start", "past")]
    edges = [{"source": a, "target": b} for a, b in ways]
    edges += [
        {"source": "bad", "handle": "error", "target": "saved"},
        {"source": "fan", "handle": "body", "target": "inner"},
    ]
    ran = await started({"format": "weft/1", "name": "lenient", "blocks": blocks, "edges": edges})
    assert ran["status"] == "succeeded"
    url = ran["urls"]["self"]
    assert sorted((await client.get(url)).json()["failed_nodes"]) == ["bad", "inner@fan[1]", "lax"]

    async def why(node: str) -> tuple[str, list[str]]:
        (found,) = (await client.get(f"{url}/why", params={"node": node})).json()["why"]
        return found["state"], found["reasons"]

    assert await why("lax") == (
        "failed",
        ["code_failed: Error: a", "on_error is continue, so the run continued with null as its output"],
    )
    assert await why("bad") == (
        "failed",
        ["code_failed: Error: b", "its error handle is connected, so the run continued there"],
    )
    assert await why("inner@fan[1]") == (
        "failed",
        ["code_failed: Error: c", "branch 1 of 'fan' was stopped because of it, and the run continued"],
    )
    assert await why("dead") == (
        "skipped",
        ["no branch led here: the last possible path ended at 'bad'"],
    )
    assert await why("past") == (
        "skipped",
        ["its skip_if was true, so it was skipped and its output is null"],
    )
    assert await why("saved") == ("succeeded", ["it ran because 'bad' failed", "attempt 1 succeeded"])
    both = (await client.get(f"{url}/why", params={"node": "inner"})).json()["why"]
    assert sorted((one["key"], one["state"]) for one in both) == [
        ("inner@fan[0]", "succeeded"),
        ("inner@fan[1]", "failed"),
    ]
    assert await why("fan:start") == ("succeeded", ["it ran because 'start' succeeded"])


async def test_why_names_what_a_run_waits_for(
    client: httpx.AsyncClient, asking: dict[str, Any], started: Callable[..., Any]
) -> None:
    url = (await started(asking))["urls"]["why"]
    found = (await client.get(url)).json()["why"]
    assert any(why["key"] == "ask" and why["reasons"] for why in found)


async def test_health_and_blocks(client: httpx.AsyncClient) -> None:
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    types = {block["type"] for block in (await client.get("/api/blocks")).json()["blocks"]}
    assert {"start", "set", "approval", "http"} <= types
