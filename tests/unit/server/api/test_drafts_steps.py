"""One block of a draft alone, and pinned outputs: which values it reads, and that no version keeps a pin."""

from __future__ import annotations

import copy
from typing import Any

import httpx
import orjson
import pytest

from executor.kernel.store.run_rows import EventFilter
from executor.open.engine import Engine
from tests.unit.server.api.test_drafts import begin

Json = dict[str, Any]
DOCUMENT: Json = {
    "format": "weft/1",
    "name": "orders",
    "variables": {"greeting": "Hello"},
    "settings": {"error_workflow": "gone"},
    "input": {"type": "object", "required": ["order"], "properties": {"order": {"type": "string"}}},
    "blocks": {
        "start": {"type": "start", "name": "Order arrives"},
        "sum": {"type": "set", "name": "Sum up", "params": {"value": {"total": 1}}},
        "each": {"type": "loop", "name": "Lines", "params": {"mode": "each", "items": ["a", "b", "c"]}},
        "held": {
            "type": "set",
            "name": "Held",
            "parent": "each",
            "params": {
                "value": {
                    "order": "<Order arrives.order>",
                    "total": "<Sum up.total>",
                    "item": "<loop.item>",
                    "same": "<Lines.item>",
                    "index": "<loop.index>",
                    "says": "<variable.greeting>",
                    "asked": "<input.order>",
                }
            },
        },
        "after": {"type": "set", "name": "After", "params": {"value": "<Sum up.total>"}},
    },
    "edges": [
        {"source": "start", "target": "sum"},
        {"source": "sum", "target": "each"},
        {"source": "each", "handle": "body", "target": "held"},
        {"source": "each", "target": "after"},
    ],
}


def document() -> Json:
    return copy.deepcopy(DOCUMENT)


async def run(client: httpx.AsyncClient, draft: Json, **body: Any) -> httpx.Response:
    return await client.post(f"/api/drafts/{draft['id']}/run", params={"wait": 10}, json=body)


async def events(engine: Engine, id: str) -> dict[str, Json]:
    """Return the data that the journal has of the ends of blocks."""
    found, _ = await engine.store.find_events(id, EventFilter(types=("node.succeeded",)))
    return {str(each.node): orjson.loads(each.data or b"{}") for each in found}


async def test_a_step_runs_one_block_with_the_values_given(client: httpx.AsyncClient) -> None:
    draft = await begin(client, document())
    given = {"start": {"order": "A-1"}, "sum": {"total": 7}, "each": {"index": 1, "item": "b", "items": ["a", "b"]}}
    answer = await run(client, draft, input={"order": "A-2"}, step={"block": "held", "given": given})
    body = answer.json()
    assert (answer.status_code, body["status"]) == (200, "succeeded"), body
    assert body["output"] == {
        "order": "A-1", "total": 7, "item": "b", "same": "b", "index": 1, "says": "Hello", "asked": "A-2"
    }  # fmt: skip
    assert body["workflow"] == "orders/held"
    listed = (await client.get("/api/runs", params={"draft": draft["id"]})).json()["runs"]
    assert [each["workflow"] for each in listed] == ["orders/held"]
    assert (await client.get("/api/runs", params={"workflow": "orders"})).json()["runs"] == []
    stored = (await client.get(f"/api/runs/{body['run']}/document")).json()["document"]
    assert "after" not in stored["blocks"] and "error_workflow" not in stored["settings"]


async def test_variables_of_a_step_replace_those_of_the_draft(client: httpx.AsyncClient) -> None:
    draft = await begin(client, document())
    answer = await run(client, draft, step={"block": "held", "given": {"each": {}}, "variables": {"greeting": "Bye"}})
    assert answer.json()["output"]["says"] == "Bye"


@pytest.mark.parametrize(
    ("step", "status", "code"),
    [
        ({"block": "nothing"}, 404, "node_not_found"),
        ({"block": "held", "given": {"nothing": 1}}, 404, "node_not_found"),
        ({"block": "start"}, 400, "step_not_possible"),
        ({"block": "each"}, 400, "step_not_possible"),
        ({"block": "held", "given": {"held": 1}}, 400, "step_not_possible"),
        ({"block": "held", "twice": True}, 422, "body_invalid"),
    ],
)
async def test_what_cannot_run_alone_is_refused(client: httpx.AsyncClient, step: Json, status: int, code: str) -> None:
    draft = await begin(client, document())
    answer = await run(client, draft, step=step)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.parametrize("shape", [{"blocks": []}, {"blocks": {"a": 1}}, {"settings": 5, "variables": []}])
async def test_a_step_of_a_wrong_document_is_refused(client: httpx.AsyncClient, shape: Json) -> None:
    draft = await begin(client, {"format": "weft/1", **shape})
    answer = await run(client, draft, step={"block": "a"})
    assert (answer.status_code, answer.json()["code"]) == (404, "node_not_found")


async def test_a_pinned_block_does_not_run_and_the_journal_says_so(client: httpx.AsyncClient, engine: Engine) -> None:
    pinned = document()
    pinned["blocks"]["sum"] = {"type": "http", "name": "Sum up", "pin": {"output": {"total": 9}}}
    draft = await begin(client, pinned)
    answer = (await run(client, draft, input={"order": "A"})).json()
    assert (answer["status"], answer["output"]) == ("succeeded", 9), answer
    ended = await events(engine, answer["run"])
    assert ended["sum"]["pinned"] is True
    assert "pinned" not in ended["after"]


async def test_a_pin_chooses_the_way_of_a_condition(client: httpx.AsyncClient) -> None:
    pinned = document()
    pinned["blocks"]["sum"] = {
        "type": "condition",
        "params": {"cases": [{"id": "yes", "when": "false"}]},
        "pin": {"output": {"case": "yes"}, "route": "yes"},
    }
    pinned["blocks"]["after"]["params"]["value"] = "<sum.case>"
    pinned["edges"][1]["handle"] = "yes"
    draft = await begin(client, pinned)
    answer = (await run(client, draft, input={"order": "A"})).json()
    assert (answer["status"], answer["output"]) == ("succeeded", "yes"), answer


@pytest.mark.parametrize("block", ["start", "each"])
async def test_blocks_that_begin_something_cannot_be_pinned(client: httpx.AsyncClient, block: str) -> None:
    pinned = document()
    pinned["blocks"][block]["pin"] = {"output": 1}
    draft = await begin(client, pinned)
    found = [(each["code"], each["pointer"]) for each in draft["diagnostics"] if each["severity"] == "error"]
    assert found == [("pin_not_possible", f"/blocks/{block}/pin")]


async def test_no_version_has_a_pin(client: httpx.AsyncClient) -> None:
    pinned = document()
    pinned["blocks"]["sum"]["pin"] = {"output": {"total": 9}}
    del pinned["settings"]
    draft = await begin(client, pinned)
    saved = await client.post(f"/api/drafts/{draft['id']}/versions", json={})
    assert saved.status_code == 201, saved.text
    version = (await client.get("/api/workflows/orders")).json()["document"]
    assert "pin" not in version["blocks"]["sum"]
    kept = (await client.get(f"/api/drafts/{draft['id']}")).json()["document"]
    assert kept["blocks"]["sum"]["pin"] == {"output": {"total": 9}}
    answer = await client.post("/api/workflows/orders/runs", params={"wait": 10}, json={"input": {"order": "A"}})
    assert answer.json()["output"] == 1
    direct = await client.post("/api/workflows", json={**pinned, "name": "direct"})
    assert direct.status_code in (200, 201), direct.text
    assert "pin" not in (await client.get("/api/workflows/direct")).json()["document"]["blocks"]["sum"]


async def test_a_pinned_block_with_missing_settings_must_be_filled_in_to_publish(client: httpx.AsyncClient) -> None:
    pinned = document()
    pinned["blocks"]["sum"] = {"type": "http", "name": "Sum up", "pin": {"output": {"total": 9}}}
    draft = await begin(client, pinned)
    assert [each for each in draft["diagnostics"] if each["severity"] == "error"] == []
    saved = await client.post(f"/api/drafts/{draft['id']}/versions", json={})
    assert saved.status_code == 422
    assert any(each["pointer"] == "/blocks/sum/params/url" for each in saved.json()["diagnostics"])
