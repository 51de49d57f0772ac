"""Answers say what there is to do next, and take what was given out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from executor.errors import Conflict, NotFound
from executor.open.engine import Engine
from executor.service.views import Why
from tests.support.documents import document

Json = dict[str, Any]


ASK: Json = {"type": "approval", "params": {"title": "?", "actions": ["yes", "no"]}}


async def test_waiting_for_a_run_that_asks_answers_with_its_questions(client: httpx.AsyncClient) -> None:
    flow = document("flow", "start ask", blocks={"ask": ASK})
    answer = await client.post("/api/runs?wait=60", json={"document": flow})
    assert answer.status_code == 202
    body = answer.json()
    (wait,) = body["waits"]
    assert (body["status"], wait["key"], wait["kind"], wait["actions"]) == ("waiting", "ask", "approval", ["yes", "no"])
    reply = await client.post(wait["link"].replace("/resume/", "/api/resume/"), json={"action": "yes", "fields": {}})
    assert reply.status_code == 200, reply.text
    view = (await client.get(f"/api/runs/{body['run']}")).json()
    assert view["id"] == body["run"]


async def test_waiting_for_a_run_that_was_started_before_answers_with_them_as_well(client: httpx.AsyncClient) -> None:
    flow = document("flow", "start ask", blocks={"ask": ASK})
    run = (await client.post("/api/runs", json={"document": flow})).json()["run"]
    view = (await client.get(f"/api/runs/{run}?wait=60")).json()
    (wait,) = view["waits"]
    assert (view["status"], wait["key"]) == ("waiting", "ask") and "/resume/" in wait["link"]


async def test_questions_of_runs_below_are_among_them(client: httpx.AsyncClient) -> None:
    await client.post("/api/workflows", json={**document("flow", "start ask", blocks={"ask": ASK}), "name": "child"})
    flow = document("flow", "start call", blocks={"call": {"type": "run_workflow", "params": {"workflow": "child"}}})
    body = (await client.post("/api/runs?wait=60", json={"document": flow})).json()
    assert [(wait["kind"], "link" in wait) for wait in body["waits"]] == [("child", False), ("approval", True)]


async def test_a_run_that_has_ended_waits_for_nothing(client: httpx.AsyncClient, hello: Json) -> None:
    body = (await client.post("/api/runs?wait=60", json={"document": hello})).json()
    assert (body["status"], body["waits"]) == ("succeeded", [])


async def test_engine_answer_takes_a_link_or_its_token(engine: Engine) -> None:
    cuts: list[Callable[[str], str]] = [str, lambda link: link.rpartition("/")[2], lambda link: link + "?by=mail"]
    for cut in cuts:
        run = (await engine.submit(document("flow", "start ask", blocks={"ask": ASK}))).run
        (wait,) = (await engine.wait_finished(run, 60)).waits
        assert wait.link is not None
        assert (await engine.waits.find(cut(wait.link))).id == wait.id
        assert (await engine.answer(cut(wait.link), {}, action="yes", by="Ada")).answered_by == "Ada"
        assert (await engine.wait_finished(run, 60)).status == "succeeded"
    with pytest.raises(NotFound):
        await engine.answer("http://127.0.0.1:8765/resume/", {}, action="yes")


async def test_moving_a_run_to_the_version_it_has_is_refused(
    engine: Engine, client: httpx.AsyncClient, started: Callable[..., Any]
) -> None:
    await engine.workflows.save(document("flow", "start ask", blocks={"ask": ASK}))
    run = (await engine.submit("flow")).run
    await engine.wait_finished(run, 60)
    refused = await client.post(f"/api/runs/{run}/migrate", json={"version": 1})
    assert (refused.status_code, refused.json()["code"]) == (409, "migration_same_version")
    await engine.cancel(run)
    await engine.wait_finished(run, 60)
    with pytest.raises(Conflict) as ended:
        await engine.lifecycle.migrate(run, 1)
    assert ended.value.code == "run_ended"


async def test_why_of_what_succeeded_says_what_made_it_run_and_how_it_ended(engine: Engine) -> None:
    flow = document(
        "flow",
        "start check",
        "start yes",
        "check big yes",
        "check else no",
        "yes join",
        "no join",
        blocks={
            "check": {
                "type": "condition",
                "params": {"cases": [{"id": "big", "when": "<input.n> > 1"}, {"id": "else"}]},
            },
            "yes": {"type": "set", "params": {"value": 1}},
            "no": {"type": "set", "params": {"value": 2}},
            "join": {"type": "set", "params": {"value": 3}},
        },
    )
    run = (await engine.run(flow, {"n": 5}, timeout_s=60)).id

    async def why(node: str) -> Why:
        (found,) = await engine.history.why(run, node)
        return found

    assert (await why("start")).reasons == ("it ran because the run started here", "attempt 1 succeeded")
    checked = await why("check")
    assert checked.state == "succeeded"
    assert checked.reasons[:2] == ("it ran because 'start' succeeded", "attempt 1 succeeded")
    assert set((await why("yes")).reasons[:2]) == {
        "it ran because 'start' succeeded",
        "it ran because 'check' took branch 'big'",
    }
    assert (await why("join")).reasons == ("it ran because 'yes' succeeded", "attempt 1 succeeded")
    assert (await why("no")).state == "skipped"


async def test_why_of_a_block_in_a_branch_names_the_branch(engine: Engine) -> None:
    flow = document(
        "flow",
        "start fan",
        "fan body inside",
        blocks={
            "fan": {"type": "parallel", "params": {"count": 2}},
            "inside": {"type": "set", "parent": "fan", "params": {"value": 4}},
        },
    )
    run = (await engine.run(flow, timeout_s=60)).id
    found = await engine.history.why(run, "inside")
    assert [(one.key, one.reasons) for one in found] == [
        (f"inside@fan[{n}]", (f"it ran because branch {n} of 'fan' started", "attempt 1 succeeded")) for n in (0, 1)
    ]
    ends = {one.key: one.reasons for one in await engine.history.why(run, "fan")}
    assert "it ran because 'start' succeeded" in ends["fan:start"]
