"""Running again from a block: the preview says what will happen, and then that happens."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from executor.open.engine import Engine
from tests.support.documents import document

Json = dict[str, Any]


@pytest.fixture
def chain() -> Json:
    """start -> vars -> loop(work) -> decide -> yes | no; `decide` takes `yes` when the loop ran twice."""
    return document(
        "chain",
        "start vars",
        "vars loop",
        "loop body work",
        "loop decide",
        "decide yes yes",
        "decide no no",
        variables={"count": 0, "log": []},
        blocks={
            "vars": {"type": "variables", "params": {"assign": [{"name": "count", "op": "increment", "value": 5}]}},
            "loop": {"type": "loop", "params": {"mode": "for", "count": 2}},
            "work": {
                "type": "variables",
                "parent": "loop",
                "params": {"assign": [{"name": "log", "op": "append", "value": "<loop.index>"}]},
            },
            "decide": {
                "type": "condition",
                "params": {"cases": [{"id": "yes", "when": "<loop.results>.length === 2"}, {"id": "no"}]},
            },
            "yes": {
                "type": "set",
                "params": {"value": {"n": "<workflow.count>", "log": "<workflow.log>", "x": "<input.x>"}},
            },
            "no": {"type": "set"},
        },
    )


async def preview(client: httpx.AsyncClient, run: str, block: str | None) -> httpx.Response:
    return await client.get(f"/api/runs/{run}/rerun", params={"from": block} if block else {})


async def test_what_was_done_before_the_block_is_reused(client: httpx.AsyncClient, chain: Json, started: Any) -> None:
    run = await started(chain, {"x": 1})
    assert run["output"] == {"n": 5, "log": [0, 1], "x": 1}
    asked = await preview(client, run["run"], "decide")
    assert asked.json() == {
        "run": run["run"],
        "from": "decide",
        "reused": ["start", "vars", "loop", "work"],
        "again": ["decide", "yes", "no"],
        "skipped": [],
    }
    assert len((await client.get("/api/runs")).json()["runs"]) == 1, "asking changes nothing"

    again = await client.post(f"/api/runs/{run['run']}/rerun?wait=60", json={"from": "decide"})
    assert again.status_code == 200 and again.json()["run"] != run["run"]
    assert again.json()["output"] == run["output"], "variables are those of then"
    view = (await client.get(again.json()["urls"]["self"])).json()
    ran = {node["key"] for node in view["nodes"] if node["status"] == "succeeded" and "started_at_ms" in node}
    assert ran == {"decide", "yes"}
    assert view["variables"] == {"count": 5, "log": [0, 1]}

    third = await client.post(f"/api/runs/{again.json()['run']}/rerun?wait=60", json={"from": "yes", "input": {"x": 2}})
    assert third.json()["output"] == {"n": 5, "log": [0, 1], "x": 2}, "a rerun of a rerun"


async def test_blocks_that_were_skipped_stay_so_unless_they_follow(
    client: httpx.AsyncClient, chain: Json, started: Any
) -> None:
    run = await started(chain)
    found = (await preview(client, run["run"], "yes")).json()
    assert (found["again"], found["skipped"]) == (["yes"], ["no"])
    assert found["reused"] == ["start", "vars", "loop", "decide", "work"]


async def test_a_container_runs_as_a_whole(client: httpx.AsyncClient, chain: Json, started: Any) -> None:
    run = await started(chain)
    found = (await preview(client, run["run"], "loop")).json()
    assert found["reused"] == ["start", "vars"] and "work" in found["again"] and "loop" in found["again"]
    again = await client.post(f"/api/runs/{run['run']}/rerun?wait=60", json={"from": "loop"})
    assert again.json()["output"]["log"] == [0, 1]
    for refused in (
        await preview(client, run["run"], "work"),
        await client.post(f"/api/runs/{run['run']}/rerun", json={"from": "work"}),
    ):
        assert (refused.status_code, refused.json()["code"]) == (409, "inside_container")
        assert refused.json()["container"] == "loop"


async def test_without_a_block_everything_runs_again(client: httpx.AsyncClient, chain: Json, started: Any) -> None:
    run = await started(chain, {"x": 7})
    found = (await preview(client, run["run"], None)).json()
    assert (found["from"], found["reused"]) == ("start", [])
    again = await client.post(f"/api/runs/{run['run']}/rerun?wait=60")
    assert again.json()["output"] == {"n": 5, "log": [0, 1], "x": 7}


async def test_an_error_that_was_handled_is_reused(client: httpx.AsyncClient, started: Any) -> None:
    document = {
        "format": "weft/1",
        "blocks": {
            "start": {"type": "start"},
            "bad": {"type": "function", "params": {"code": "throw new Error('no')"}},
            "fix": {"type": "set", "params": {"value": "<bad.error.code>"}},
        },
        "edges": [{"source": "start", "target": "bad"}, {"source": "bad", "handle": "error", "target": "fix"}],
    }
    run = await started(document)
    assert run["output"] == "code_failed"
    again = await client.post(f"/api/runs/{run['run']}/rerun?wait=60", json={"from": "fix"})
    assert again.json()["output"] == "code_failed"


async def test_a_container_that_was_left_in_the_middle_runs_again(client: httpx.AsyncClient, started: Any) -> None:
    """Taking over its start alone would end it without a single iteration."""
    document = {
        "format": "weft/1",
        "blocks": {
            "start": {"type": "start"},
            "side": {"type": "set", "params": {"value": "s"}},
            "loop": {"type": "loop", "params": {"mode": "for", "count": 2}},
            "ask": {"type": "wait", "parent": "loop", "params": {"seconds": "<start.pause>"}},
        },
        "edges": [
            {"source": "start", "target": "side"},
            {"source": "start", "target": "loop"},
            {"source": "loop", "handle": "body", "target": "ask"},
        ],
    }
    run = await started(document, {"pause": 600})
    assert run["status"] == "waiting"
    refused = await preview(client, run["run"], "side")
    assert (refused.status_code, refused.json()["code"]) == (409, "run_not_ended")
    await client.post(run["urls"]["cancel"])
    await client.get(run["urls"]["events"])
    found = (await preview(client, run["run"], "side")).json()
    assert found["reused"] == ["start"] and set(found["again"]) == {"side", "loop", "ask"}
    again = await client.post(f"/api/runs/{run['run']}/rerun?wait=60", json={"from": "side"})
    assert again.json()["status"] == "waiting", "the loop waits in its first iteration again"


async def test_one_key_is_one_rerun(client: httpx.AsyncClient, chain: Json, started: Any, engine: Engine) -> None:
    run = await started(chain)
    url, key = f"/api/runs/{run['run']}/rerun", {"idempotency-key": "again-1"}
    first = await client.post(url, json={"from": "decide"}, headers=key)
    again = await client.post(url, json={"from": "decide"}, headers=key)
    other = await client.post(url, json={"from": "loop"}, headers=key)
    assert (first.status_code, again.status_code, other.status_code) == (202, 200, 409)
    assert first.json()["run"] == again.json()["run"] and other.json()["code"] == "idempotency_key_reused"
    assert len(await engine.runs.list()) == 2


async def test_a_rerun_keeps_the_document_of_its_run(client: httpx.AsyncClient, chain: Json) -> None:
    draft = (await client.post("/api/drafts", json={"document": chain})).json()
    run = (await client.post(f"/api/drafts/{draft['id']}/run?wait=60", json={})).json()
    again = (await client.post(f"/api/runs/{run['run']}/rerun?wait=60", json={"from": "yes"})).json()
    kept = (await client.get(again["urls"]["document"])).json()
    assert (kept["document"], kept["draft_id"], kept["draft_rev"]) == (chain, draft["id"], 1)
    await client.post("/api/workflows", json=chain)
    stored = (await client.post("/api/workflows/chain/runs?wait=60", json={})).json()
    again = (await client.post(f"/api/runs/{stored['run']}/rerun?wait=60", json={"from": "yes"})).json()
    kept = (await client.get(again["urls"]["document"])).json()
    assert (kept["document"], kept["version"]) == (chain, 1)


async def test_refusals(client: httpx.AsyncClient, chain: Json, started: Any) -> None:
    run = await started(chain)
    url = f"/api/runs/{run['run']}/rerun"
    for response, status, code in [
        (await preview(client, "none", None), 404, "run_not_found"),
        (await client.post("/api/runs/none/rerun", json={}), 404, "run_not_found"),
        (await preview(client, run["run"], "nothing"), 404, "node_not_found"),
        (await client.post(url, json={"from": "nothing"}), 404, "node_not_found"),
        (await client.post(url, json={"block": "yes"}), 422, "body_invalid"),
        (await client.post(url, json={"from": 5}), 422, "body_invalid"),
    ]:
        assert (response.status_code, response.json()["code"]) == (status, code)


@pytest.mark.parametrize("inside", [False, True], ids=["block", "container"])
@pytest.mark.parametrize("caught", [False, True], ids=["continue", "handle"])
async def test_an_error_that_was_dealt_with_is_reused_unchanged(
    client: httpx.AsyncClient, started: Any, inside: bool, caught: bool
) -> None:
    """Null where the run went on, the error where a path behind the handle took it; and so in a third run."""
    bad: Json = {"type": "function", "params": {"code": "throw new Error('no')"}}
    blocks: Json = {
        "start": {"type": "start"},
        "call": dict(bad),
        "end": {"type": "set", "params": {"value": "<call>"}},
    }
    edges: list[Json] = [{"source": "start", "target": "call"}, {"source": "call", "target": "end"}]
    if inside:
        blocks["call"] = {"type": "loop", "params": {"mode": "for", "count": 1}}
        blocks["bad"] = {**bad, "parent": "call"}
        edges.append({"source": "call", "handle": "body", "target": "bad"})
    if caught:
        edges[1]["handle"] = "error"
    else:
        blocks["call"]["policy"] = {"on_error": "continue"}
    first = await started({"format": "weft/1", "name": "dealt", "blocks": blocks, "edges": edges}, {})
    assert first["status"] == "succeeded"
    assert (first["output"] is None) is not caught
    run = first["run"]
    for _ in range(2):
        answer = await client.post(f"/api/runs/{run}/rerun?wait=60", json={"from": "end"})
        assert (answer.status_code, answer.json()["output"]) == (200, first["output"])
        run = answer.json()["run"]


async def test_many_are_run_again_at_once_and_listed_before(
    client: httpx.AsyncClient, chain: Json, asking: Json, started: Any
) -> None:
    runs = [(await started(chain, {"x": n}))["run"] for n in range(2)]
    waiting = (await started(asking, {"text": "t"}))["run"]
    body: Json = {"runs": [*runs, waiting, "nothing"]}
    count = len((await client.get("/api/runs")).json()["runs"])
    shown = (await client.post("/api/runs/rerun", json={**body, "preview": True})).json()["runs"]
    assert [(each["source"], each["run"], each["code"]) for each in shown] == [
        (runs[0], None, ""), (runs[1], None, ""), (waiting, None, "run_not_ended"), ("nothing", None, "run_not_found"),
    ]  # fmt: skip
    fates = {each["block"]: each["fate"] for each in shown[0]["blocks"]}
    assert (fates["vars"], fates["work"], fates["yes"], fates["no"]) == ("again", "again", "again", "maybe")
    assert len((await client.get("/api/runs")).json()["runs"]) == count, "a preview starts nothing"
    key = {"idempotency-key": "once"}
    first = (await client.post("/api/runs/rerun", json=body, headers=key)).json()["runs"]
    again = (await client.post("/api/runs/rerun", json=body, headers=key)).json()["runs"]
    assert [each["created"] for each in first] == [True, True, False, False]
    assert [each["run"] for each in again] == [each["run"] for each in first] and not any(e["created"] for e in again)
    gone = (await client.get(f"/api/runs/{first[1]['run']}?wait=5")).json()
    assert (gone["status"], gone["input"]) == ("succeeded", {"x": 1})
    none = await client.post("/api/runs/rerun", json={"runs": []})
    assert none.status_code == 422 and "/runs" in none.text


async def test_many_continue_with_a_document(client: httpx.AsyncClient, chain: Json, started: Any) -> None:
    runs = [(await started(chain, {"x": n}))["run"] for n in range(2)]
    chain["blocks"]["no"]["params"] = {"value": 1}
    body = {"runs": runs, "document": chain}
    shown = (await client.post("/api/runs/rerun", json={**body, "preview": True})).json()["runs"]
    fates = {each["block"]: (each["fate"], each["why"]) for each in shown[0]["blocks"]}
    assert fates["vars"] == ("kept", "") and fates["no"] == ("skipped", "branch"), "its branch is not taken"
    made = (await client.post("/api/runs/rerun", json=body)).json()["runs"]
    nodes = (await client.get(f"/api/runs/{made[0]['run']}?wait=5")).json()["nodes"]
    assert {node["key"]: node["status"] for node in nodes}["no"] == "skipped"
