"""Policies of containers and of approvals, tried through the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from executor.open.engine import Engine
from tests.support.documents import document

Json = dict[str, Any]


@pytest.mark.parametrize(
    "params",
    [
        {"mode": "for", "count": 2},
        {"mode": "each", "items": ["a", "b"]},
        {"mode": "while", "condition": "<loop.index> < 2"},
        {"mode": "until", "condition": "<loop.index> == 2"},
        {"mode": "do_while", "condition": "<loop.index> < 2"},
        {"mode": "count", "count": 2},
        {"mode": "each", "items": ["a", "b"], "concurrency": 1},
    ],
)
async def test_a_skipped_container_runs_nothing_and_the_run_continues(
    client: httpx.AsyncClient, started: Callable[..., Any], params: Json
) -> None:
    kind = "parallel" if params["mode"] == "count" or "concurrency" in params else "loop"
    flow = document(
        "policies",
        "start out box",
        "box body in",
        "box out after",
        blocks={
            "box": {"type": kind, "params": params, "policy": {"skip_if": "<start.skip>"}},
            "in": {"type": "set", "parent": "box", "params": {"value": 1}},
            "after": {"type": "set", "params": {"value": "<box.results>"}},
        },
    )
    assert (await started(flow, {"skip": False}))["output"] == [[1], [1]]
    passed = await started(flow, {"skip": True})
    assert (passed["status"], passed["output"]) == ("succeeded", [])
    nodes = (await client.get(passed["urls"]["self"])).json()["nodes"]
    assert [node["key"] for node in nodes] == ["start", "box:start", "box:end", "after"]


async def test_skip_if_of_an_inner_container_is_asked_in_each_iteration(started: Callable[..., Any]) -> None:
    flow = document(
        "policies",
        "start out out",
        "out body in",
        "in body say",
        "out out all",
        blocks={
            "out": {"type": "loop", "params": {"mode": "for", "count": 3}},
            "in": {
                "type": "parallel",
                "parent": "out",
                "params": {"mode": "count", "count": 1},
                "policy": {"skip_if": "<loop.index> === 1"},
            },
            "say": {"type": "set", "parent": "in", "params": {"value": "<out.index>"}},
            "all": {"type": "set", "params": {"value": "<out.results>"}},
        },
    )
    ran = await started(flow)
    assert ran["output"] == [[{"results": [[0]]}], [{"results": []}], [{"results": [[2]]}]]


async def test_a_skip_if_that_throws_fails_the_container(started: Callable[..., Any]) -> None:
    flow = document(
        "policies",
        "start out box",
        "box body in",
        blocks={
            "box": {"type": "loop", "params": {"mode": "for", "count": 1}, "policy": {"skip_if": "null.x"}},
            "in": {"type": "set", "parent": "box"},
        },
    )
    ran = await started(flow)
    assert (ran["status"], ran["error"]["block"]) == ("failed", "box")


async def test_a_group_holds_the_blocks_in_a_container_together(
    client: httpx.AsyncClient, started: Callable[..., Any]
) -> None:
    flow = document(
        "policies",
        "start out fan",
        "fan body work",
        blocks={
            "fan": {"type": "parallel", "params": {"mode": "count", "count": 5}, "policy": {"group": "one"}},
            "work": {"type": "function", "parent": "fan", "params": {"code": "return 1"}},
        },
        settings={"groups": {"one": 1}},
    )
    ran = await started(flow)
    events = (await client.get(ran["urls"]["events"], headers={"accept": "application/json"})).json()["events"]
    of_work = [event["type"] for event in events if event["node"] == "work"]
    assert of_work == ["node.started", "node.succeeded"] * 5, "never two at a time"


def asking(**params: Any) -> Json:
    params = {"title": "Ship?", "fail_on": ["reject"], **params}
    return document("policies", "start out ask", blocks={"ask": {"type": "approval", "params": params}})


async def link_of(client: httpx.AsyncClient, run: Json) -> str:
    (wait,) = (await client.get(f"/api/waits?run={run['run']}")).json()["waits"]
    return str(wait["link"]).replace("/resume/", "/api/resume/")


async def test_an_answer_that_the_block_fails_on_fails_it(
    client: httpx.AsyncClient, started: Callable[..., Any], engine: Engine
) -> None:
    run = await started(asking())
    link = await link_of(client, run)
    assert (await client.post(link, json={"action": "reject", "by": "Ada"})).status_code == 200
    view = await engine.wait_finished(run["run"], 60)
    assert view.status == "failed" and view.error is not None
    assert (view.error["code"], view.error["block"]) == ("refused", "ask")
    assert view.error["message"] == "the answer was 'reject' by Ada"
    late = await client.post(link, json={"action": "approve", "by": "Bob"})
    assert (late.status_code, late.json()["answered_by"]) == (409, "Ada")


async def test_the_error_handle_may_catch_it_and_other_actions_continue(
    client: httpx.AsyncClient, started: Callable[..., Any], engine: Engine
) -> None:
    flow = asking()
    flow["blocks"] |= {
        "no": {"type": "set", "params": {"value": "<ask.error.code>"}},
        "yes": {"type": "set", "params": {"value": "<ask.action>"}},
    }
    flow["edges"] += [
        {"source": "ask", "handle": "error", "target": "no"},
        {"source": "ask", "handle": "approve", "target": "yes"},
    ]
    for action, output in (("reject", "refused"), ("approve", "approve")):
        run = await started(flow)
        await client.post(await link_of(client, run), json={"action": action})
        view = await engine.wait_finished(run["run"], 60)
        assert (view.status, view.output) == ("succeeded", output)


async def test_an_expiry_that_stands_for_such_an_answer_fails_as_well(
    started: Callable[..., Any], engine: Engine
) -> None:
    run = await started(asking(expires_in_s=0.05, on_expire="reject"))
    view = await engine.wait_finished(run["run"], 60)
    while view.status == "waiting":
        view = await engine.wait_finished(run["run"], 60)
    assert (view.status, (view.error or {}).get("code")) == ("failed", "wait_expired")


@pytest.mark.parametrize(
    ("on_expire", "fine"),
    [("reject", True), ("skip", True), ("", True), ("<start.then>", True), ("rejct", False), ("out", False)],
)
async def test_on_expire_names_an_action_or_an_end(client: httpx.AsyncClient, on_expire: str, fine: bool) -> None:
    answer = await client.post("/api/validate", json={"document": asking(on_expire=on_expire)})
    errors = [(one["code"], one["pointer"]) for one in answer.json()["diagnostics"] if one["severity"] == "error"]
    assert errors == ([] if fine else [("param_invalid", "/blocks/ask/params/on_expire")])


@pytest.mark.parametrize("actions", ["<start.actions>", ["no", "<start.yes>"]])
async def test_actions_that_are_known_only_when_it_runs_are_not_missed(client: httpx.AsyncClient, actions: Any) -> None:
    asks = asking(actions=actions, on_expire="yes", fail_on=["yes"])
    answer = await client.post("/api/validate", json={"document": asks})
    assert [one["code"] for one in answer.json()["diagnostics"] if one["severity"] == "error"] == []


async def test_fail_on_names_actions(client: httpx.AsyncClient) -> None:
    flow = asking(actions=["yes", "no"])
    found = (await client.post("/api/validate", json={"document": flow})).json()["diagnostics"]
    assert [(one["code"], one["pointer"]) for one in found] == [("param_invalid", "/blocks/ask/params/fail_on/0")]
    assert found[0]["hint"] == "The buttons are yes, no."
