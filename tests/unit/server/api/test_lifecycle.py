"""Fork, retry and migrate over HTTP and on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from tests.support.documents import document

Json = dict[str, Any]


@pytest.fixture
def greeting() -> Json:
    """start -> greet -> end; `end` puts out what `greet` did."""
    return {
        "format": "weft/1",
        "name": "greeting",
        "blocks": {
            "start": {"type": "start"},
            "greet": {"type": "set", "params": {"value": {"text": "hello"}}},
            "end": {"type": "set", "params": {"value": "<greet.text>"}},
        },
        "edges": [{"source": "start", "target": "greet"}, {"source": "greet", "target": "end"}],
    }


async def seq_of(client: httpx.AsyncClient, run: str, type: str, key: str) -> int:
    page = await client.get(f"/api/runs/{run}/events", headers={"accept": "application/json"})
    events = page.json()["events"]
    return next(int(event["seq"]) for event in events if (event["type"], event["key"]) == (type, key))


async def result(client: httpx.AsyncClient, run: str) -> Json:
    async with client.stream("GET", f"/api/runs/{run}/events", headers={"accept": "text/event-stream"}) as stream:
        async for _ in stream.aiter_lines():
            pass
    return dict((await client.get(f"/api/runs/{run}")).json())


async def test_a_fork_over_http(client: httpx.AsyncClient, started: Callable[..., Any], greeting: Json) -> None:
    source = (await started(greeting))["run"]
    at = await seq_of(client, source, "node.succeeded", "greet")
    body = {"seq": at, "outputs": {"greet": {"text": "good evening"}}}
    answer = await client.post(f"/api/runs/{source}/fork", json=body, headers={"idempotency-key": "k"})
    assert answer.status_code == 202
    made = answer.json()
    assert (made["source"], made["seq"], made["created"]) == (source, at, True)
    assert answer.headers["location"] == f"/api/runs/{made['run']}" == made["urls"]["self"]
    assert (await result(client, made["run"]))["output"] == "good evening"
    again = await client.post(f"/api/runs/{source}/fork", json=body, headers={"idempotency-key": "k"})
    assert (again.status_code, again.json()["run"], again.json()["created"]) == (200, made["run"], False)


@pytest.mark.parametrize(
    ("body", "status", "code", "pointer"),
    [
        ({}, 400, "seq_missing", "/seq"),
        ({"seq": 0}, 422, "body_invalid", "/seq"),
        ({"seq": 3, "outputs": []}, 422, "body_invalid", "/outputs"),
        ({"seq": 99}, 409, "seq_not_found", None),
        ({"seq": 2, "outputs": {"greet": 1}}, 400, "output_not_recorded", "/outputs/greet"),
    ],
)
async def test_forks_that_are_refused(
    client: httpx.AsyncClient,
    started: Callable[..., Any],
    greeting: Json,
    body: Json,
    status: int,
    code: str,
    pointer: str | None,
) -> None:
    source = (await started(greeting))["run"]
    answer = await client.post(f"/api/runs/{source}/fork", json=body)
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem.get("pointer")) == (status, code, pointer), answer.text
    assert (await client.post("/api/runs/unknown/fork", json={"seq": 1})).status_code == 404


async def test_a_retry_over_http(client: httpx.AsyncClient, started: Callable[..., Any], greeting: Json) -> None:
    source = (await started(greeting))["run"]
    answer = await client.post(f"/api/runs/{source}/nodes/greet/retry")
    assert answer.status_code == 202
    made = answer.json()
    assert (made["how"], made["block"], made["source"]) == ("from_block", "greet", source)
    assert (await result(client, made["run"]))["status"] == "succeeded"
    missing = await client.post(f"/api/runs/{source}/nodes/unknown@l%231/retry")
    assert (missing.status_code, missing.json()["code"]) == (404, "node_not_found")


async def test_an_open_run_is_not_retried_as_a_whole(
    client: httpx.AsyncClient, started: Callable[..., Any], asking: Json
) -> None:
    run = (await started(asking))["run"]
    answer = await client.post(f"/api/runs/{run}/nodes/ask/retry")
    assert (answer.status_code, answer.json()["code"]) == (409, "node_not_retrying")


async def test_a_migration_over_http(client: httpx.AsyncClient, asking: Json) -> None:
    await client.post("/api/workflows", json={"document": asking})
    run = (await client.post("/api/workflows/asking/runs?wait=60", json={"input": {"text": "x"}})).json()["run"]
    more = asking | {
        "blocks": asking["blocks"] | {"end": {"type": "set", "params": {"value": "<ask.action>"}}},
        "edges": [*asking["edges"], {"source": "ask", "target": "end"}],
    }
    await client.post("/api/workflows", json={"document": more})
    moved = await client.post(f"/api/runs/{run}/migrate", json={"version": 2})
    assert (moved.status_code, moved.json()["moved"], moved.json()["version"]) == (200, True, 2)
    assert (await client.get(f"/api/runs/{run}")).json()["version"] == 2

    less = asking | {"blocks": asking["blocks"] | {"ask": {"type": "set", "params": {"value": 1}}}}
    await client.post("/api/workflows", json={"document": less})
    refused = await client.post(f"/api/runs/{run}/migrate", json={"version": 3})
    problem = refused.json()
    assert (refused.status_code, problem["code"]) == (409, "migration_conflict")
    assert problem["conflicts"] == [{"node": "ask", "why": "its block type has changed from approval to set"}]
    assert (await client.post(f"/api/runs/{run}/migrate", json={"version": 9})).status_code == 404
    assert (await client.post(f"/api/runs/{run}/migrate", json={"version": 0})).status_code == 422


async def test_every_route_needs_the_token(gate: httpx.AsyncClient) -> None:
    for path in ("fork", "nodes/a/retry", "migrate"):
        assert (await gate.post(f"/api/runs/r/{path}", json={"seq": 1})).status_code == 401


# --- the command line


async def test_the_commands(
    client: httpx.AsyncClient, weft: Callable[..., Any], started: Callable[..., Any], greeting: Json
) -> None:
    source = (await started(greeting))["run"]
    at = await seq_of(client, source, "node.succeeded", "greet")
    made = await weft("fork", source, "--at", str(at), "--set", 'greet={"text": "moin"}', "--json")
    assert made.exit_code == 0, made.output
    run = json.loads(made.stdout)["run"]
    assert (await result(client, run))["output"] == "moin"
    told = await weft("fork", source, "--at", str(at))
    assert f"continues from event {at} of {source}" in told.stdout
    told = await weft("retry", source, "greet")
    assert "runs greet and everything after it again" in told.stdout
    assert json.loads((await weft("retry", source, "greet", "--json")).stdout)["how"] == "from_block"


async def test_what_the_commands_refuse(weft: Callable[..., Any], started: Callable[..., Any], greeting: Json) -> None:
    source = (await started(greeting))["run"]
    for arguments, text in (
        (("fork", source, "--at", "3", "--set", "greet"), "has no ="),
        (("fork", source, "--at", "3", "--set", "greet={"), "is not JSON"),
        (("fork", source, "--at", "99"), "has no event 99"),
        (("retry", source, "unknown"), "no node 'unknown'"),
        (("migrate", source, "--version", "2"), "not a run of a stored workflow"),
    ):
        refused = await weft(*arguments)
        assert refused.exit_code != 0
        assert text in refused.stderr, (arguments, refused.stderr)


async def test_migrate_says_what_does_not_fit(
    client: httpx.AsyncClient, weft: Callable[..., Any], asking: Json, app: Starlette
) -> None:
    await client.post("/api/workflows", json={"document": asking})
    run = (await client.post("/api/workflows/asking/runs?wait=60", json={"input": {"text": "x"}})).json()["run"]
    described = asking | {"blocks": asking["blocks"] | {"more": {"type": "set"}}}
    described["edges"] = [*asking["edges"], {"source": "ask", "target": "more"}]
    await client.post("/api/workflows", json={"document": described})
    moved = await weft("migrate", run, "--version", "2")
    assert moved.exit_code == 0, moved.output
    assert f"run {run} now uses version 2" in moved.stdout
    again = await weft("migrate", run, "--version", "2")
    assert again.exit_code != 0 and "already uses version 2" in again.stderr
    back = await weft("migrate", run, "--version", "1", "--json")
    assert json.loads(back.stdout)["moved"] is True
    less = asking | {"blocks": asking["blocks"] | {"ask": {"type": "set", "params": {"value": 1}}}}
    await client.post("/api/workflows", json={"document": less})
    refused = await weft("migrate", run, "--version", "3")
    assert refused.exit_code == 1
    assert "ask: its block type has changed from approval to set" in refused.stderr


async def test_stop_after_on_the_command_line(
    client: httpx.AsyncClient, weft: Callable[..., Any], greeting: Json
) -> None:
    await client.post("/api/workflows", json={"document": greeting})
    ran = await weft("run", "greeting", "--stop-after", "greet", "--json")
    assert ran.exit_code == 0, ran.output
    view = await result(client, json.loads(ran.stdout)["run"])
    assert (view["status"], [node["key"] for node in view["nodes"]]) == ("succeeded", ["start", "greet"])


async def test_a_run_continues_with_a_draft_after_a_preview(client: httpx.AsyncClient) -> None:
    def flow(code: str) -> Json:
        work = {"type": "function", "params": {"code": code}, "policy": {"retry": {"max_attempts": 1}}}
        return document("f", "start a", "a b", blocks={"a": {"type": "set", "params": {"value": 1}}, "b": work})

    wrong = (await client.post("/api/drafts", json={"document": flow("throw new Error('no')")})).json()
    run = (await client.post(f"/api/drafts/{wrong['id']}/run?wait=20", json={})).json()
    assert run["status"] == "failed"
    saved = await client.put(
        f"/api/drafts/{wrong['id']}", json={"document": flow("return 2")}, headers={"if-match": '"1"'}
    )
    assert saved.status_code == 200
    shown = (await client.get(f"/api/runs/{run['run']}/continuation")).json()
    assert [(block["block"], block["fate"]) for block in shown["blocks"]] == [
        ("start", "kept"),
        ("a", "kept"),
        ("b", "again"),
    ]
    made = await client.post(f"/api/runs/{run['run']}/rerun?wait=20", json={"version": "draft"})
    assert (made.json()["status"], made.json()["output"]) == ("succeeded", {"result": 2, "stdout": ""})
    for body, pointer in (
        ({"version": 1, "draft": "x"}, "/draft"),
        ({"again": ["a"]}, "/version"),
        ({"document": flow("return 1"), "again": ["x"]}, "/again/0"),
    ):
        refused = await client.post(f"/api/runs/{run['run']}/rerun", json=body)
        assert (refused.status_code, refused.json()["pointer"]) == (400, pointer)


async def test_a_fork_needs_an_event_or_a_step(client: httpx.AsyncClient, started: Any) -> None:
    run = (await started(document("f", "start a", blocks={"a": {"type": "set", "params": {"value": 1}}})))["run"]
    refused = await client.post(f"/api/runs/{run}/fork", json={})
    assert (refused.status_code, refused.json()["pointer"]) == (400, "/seq")
    refused = await client.post(f"/api/runs/{run}/fork", json={"seq": 3, "steps": {"a": {"1": 2}}})
    assert (refused.status_code, refused.json()["pointer"]) == (400, "/steps/a/1")
    shown = (await client.get(f"/api/runs/{run}/fork?seq=1")).json()
    assert (shown["seq"], [(each["key"], each["n"]) for each in shown["again"]]) == (1, [("start", 0), ("a", 0)])
