"""Drafts over HTTP, as an editor uses them: nothing is lost, whatever is wrong with the document."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from executor.open.engine import Engine
from server.settings import Settings
from tests.unit.server.conftest import BASE

Json = dict[str, Any]


async def begin(client: httpx.AsyncClient, document: Json, **more: Any) -> Json:
    response = await client.post("/api/drafts", json={"document": document, **more})
    assert response.status_code == 201, response.text
    return dict(response.json())


def at(rev: int) -> dict[str, str]:
    return {"if-match": f'"{rev}"'}


async def test_begin_read_change_delete(client: httpx.AsyncClient, hello: Json) -> None:
    made = await client.post("/api/drafts", json={"document": hello, "base_version": 3})
    draft = made.json()
    assert made.status_code == 201 and made.headers["etag"] == '"1"'
    assert made.headers["location"] == f"/api/drafts/{draft['id']}"
    assert set(draft) == {
        "id", "name", "document", "rev", "base_name", "base_version", "base_rev", "created_at_ms", "updated_at_ms",
        "folder", "diagnostics", "tasks",
    }  # fmt: skip
    assert (draft["name"], draft["rev"], draft["document"], draft["diagnostics"]) == ("hello", 1, hello, [])
    assert (draft["base_name"], draft["base_version"], draft["base_rev"]) == ("hello", 3, 1)
    url = f"/api/drafts/{draft['id']}"
    read = await client.get(url)
    assert read.json() == draft and read.headers["etag"] == '"1"'

    hello["name"] = "hello again"
    changed = await client.put(url, json={"document": hello}, headers=at(1))
    assert changed.status_code == 200 and changed.headers["etag"] == '"2"'
    assert set(changed.json()) == {"id", "name", "rev", "updated_at_ms", "diagnostics", "tasks"}
    assert (changed.json()["rev"], changed.json()["name"]) == (2, "hello again")
    assert changed.json()["updated_at_ms"] >= draft["updated_at_ms"]
    assert (await client.get(url)).json()["document"] == hello

    assert (await client.delete(url)).json() == {"id": draft["id"], "deleted": True}
    for gone in (await client.get(url), await client.delete(url)):
        assert (gone.status_code, gone.json()["code"]) == (404, "draft_not_found")
    gone = await client.put(url, json={"document": hello}, headers=at(2))
    assert (gone.status_code, gone.json()["code"]) == (404, "draft_not_found")


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"format": "weft/1"},
        {"format": 7, "blocks": "none", "edges": {"not": "a list"}, "name": ["x"]},
        {"format": "weft/1", "name": "", "blocks": {"a": {"type": "nonsense"}, "b": 5, "": None}, "edges": [1, {}]},
        {"nothing": "we know", "nested": [[[{"deep": None}]]], "ünïcödé ☃": "\u0000\u2028"},
    ],
)
async def test_wrong_documents_are_stored_unchanged(client: httpx.AsyncClient, document: Json) -> None:
    draft = await begin(client, {"format": "weft/1"})
    saved = await client.put(f"/api/drafts/{draft['id']}", json={"document": document, "name": "n"}, headers=at(1))
    assert saved.status_code == 200
    assert any(finding["severity"] == "error" for finding in saved.json()["diagnostics"])
    read = (await client.get(f"/api/drafts/{draft['id']}")).json()
    assert (read["document"], read["name"]) == (document, "n")


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({}, 422, ""),
        ({"document": []}, 422, "/document"),
        ({"document": "{}"}, 422, "/document"),
        ({"document": {}, "name": 5}, 422, "/name"),
        ({"document": {}, "name": "x" * 201}, 422, "/name"),
        ({"document": {}, "base_version": 0}, 422, "/base_version"),
        ({"document": {}, "base_version": 2**40}, 422, "/base_version"),
        ({"document": {}, "rev": 1}, 422, ""),
    ],
)
async def test_only_the_envelope_must_be_right(client: httpx.AsyncClient, body: Any, status: int, pointer: str) -> None:
    response = await client.post("/api/drafts", json=body)
    assert (response.status_code, response.json()["pointer"]) == (status, pointer)
    assert response.headers["content-type"] == "application/problem+json"


async def test_size_and_depth_are_bounded(client: httpx.AsyncClient) -> None:
    draft = await begin(client, {"format": "weft/1", "text": "x" * 1_500_000})
    assert len(draft["document"]["text"]) == 1_500_000
    large = await client.post("/api/drafts", json={"document": {"format": "weft/1", "text": "x" * 2_100_000}})
    assert (large.status_code, large.json()["code"]) == (413, "body_too_large")
    deep: Any = {}
    for _ in range(70):
        deep = {"a": deep}
    refused = await client.post("/api/drafts", json={"document": deep})
    assert (refused.status_code, refused.json()["code"]) == (400, "json_too_deep")


async def test_a_change_needs_the_revision_it_was_made_to(client: httpx.AsyncClient) -> None:
    draft = await begin(client, {"format": "weft/1", "n": 1})
    url = f"/api/drafts/{draft['id']}"
    missing = await client.put(url, json={"document": {"n": 2}})
    assert (missing.status_code, missing.json()["code"]) == (428, "if_match_required")
    for wrong in ("1", '"0"', '"x"', "*", '"1", "2"', '"-1"', '"99999999999999999999"', ""):
        response = await client.put(url, json={"document": {"n": 2}}, headers={"if-match": wrong})
        assert (response.status_code, response.json()["code"]) == (400, "if_match_invalid"), wrong
    assert (await client.put(url, json={"document": {"n": 2}}, headers={"if-match": 'W/"1"'})).status_code == 200
    assert (await client.get(url)).json()["document"] == {"n": 2}


async def test_who_comes_late_gets_what_is_stored(client: httpx.AsyncClient) -> None:
    draft = await begin(client, {"format": "weft/1", "n": 1})
    url = f"/api/drafts/{draft['id']}"
    assert (await client.put(url, json={"document": {"mine": 1}}, headers=at(1))).status_code == 200
    late = await client.put(url, json={"document": {"yours": 1}}, headers=at(1))
    assert (late.status_code, late.json()["code"]) == (409, "draft_changed")
    current = late.json()["current"]
    assert current == (await client.get(url)).json()
    assert (current["rev"], current["document"]) == (2, {"mine": 1})
    ahead = await client.put(url, json={"document": {}}, headers=at(9))
    assert ahead.status_code == 409 and ahead.json()["current"]["rev"] == 2
    for response in (await client.delete(url, headers=at(1)), await client.post(url + "/run", json={}, headers=at(1))):
        assert (response.status_code, response.json()["code"]) == (409, "draft_changed")
    versions = await client.post(url + "/versions", json={}, headers=at(1))
    assert (versions.status_code, versions.json()["code"]) == (409, "draft_changed")
    assert (await client.delete(url, headers=at(2))).status_code == 200


async def test_the_same_change_sent_twice_is_one_revision(client: httpx.AsyncClient) -> None:
    draft = await begin(client, {"format": "weft/1", "n": 1})
    url = f"/api/drafts/{draft['id']}"
    first = await client.put(url, json={"document": {"n": 2}}, headers=at(1))
    again = await client.put(url, json={"document": {"n": 2}}, headers=at(1))
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json() and again.json()["rev"] == 2


async def test_of_many_tabs_one_wins_and_the_others_know(client: httpx.AsyncClient) -> None:
    draft = await begin(client, {"format": "weft/1"})
    url = f"/api/drafts/{draft['id']}"
    answers = await asyncio.gather(*(client.put(url, json={"document": {"tab": n}}, headers=at(1)) for n in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 9
    stored = (await client.get(url)).json()
    winner = next(n for n, answer in enumerate(answers) if answer.status_code == 200)
    assert stored["document"] == {"tab": winner}
    assert all(
        answer.json()["current"]["document"] == {"tab": winner} for answer in answers if answer.status_code == 409
    )


async def test_drafts_are_listed_without_documents(client: httpx.AsyncClient, hello: Json) -> None:
    assert (await client.get("/api/drafts")).json() == {"drafts": [], "next": None}
    ids = [(await begin(client, hello, name=f"n{n}"))["id"] for n in range(3)]
    await client.put(f"/api/drafts/{ids[0]}", json={"document": hello, "name": "n0"}, headers=at(1))
    listed = (await client.get("/api/drafts")).json()["drafts"]
    assert {draft["name"] for draft in listed} == {"n0", "n1", "n2"}
    assert all("document" not in draft for draft in listed)
    assert set(listed[0]) == {
        "id", "name", "rev", "base_name", "base_version", "base_rev", "created_at_ms", "updated_at_ms", "folder",
        "last_run",
    }  # fmt: skip
    first = (await client.get("/api/drafts?limit=2")).json()
    rest = (await client.get(f"/api/drafts?limit=2&before={first['next']}")).json()
    assert {draft["id"] for draft in first["drafts"] + rest["drafts"]} == set(ids) and rest["next"] is None
    assert (await client.get("/api/drafts?limit=0")).status_code == 400


async def test_a_draft_runs_at_its_revision(client: httpx.AsyncClient, hello: Json) -> None:
    draft = await begin(client, hello)
    url = f"/api/drafts/{draft['id']}"
    started = await client.post(url + "/run", json={"input": {"name": "Ada"}})
    assert started.status_code == 202
    body = started.json()
    assert (body["draft"], body["rev"], body["workflow"], body["version"]) == (draft["id"], 1, "hello", None)
    assert started.headers["weft-draft-rev"] == "1"
    hello["blocks"]["greet"]["params"]["value"] = {"greeting": "bye <input.name>"}
    await client.put(url, json={"document": hello}, headers=at(1))
    second = await client.post(url + "/run?wait=60", json={"input": {"name": "Ada"}}, headers=at(2))
    assert (second.status_code, second.headers["weft-draft-rev"]) == (200, "2")
    assert second.json()["output"] == {"greeting": "bye Ada"}

    first_document = (await client.get(body["urls"]["document"])).json()
    assert first_document["document"]["blocks"]["greet"]["params"]["value"] == {"greeting": "hello <input.name>"}
    assert (first_document["draft_id"], first_document["draft_rev"]) == (draft["id"], 1)
    runs = (await client.get(f"/api/runs?draft={draft['id']}")).json()
    assert [(run["draft_id"], run["draft_rev"]) for run in runs["runs"]] == [(draft["id"], 2), (draft["id"], 1)]
    await client.delete(url)
    assert (await client.get(body["urls"]["document"])).json() == first_document


async def test_a_draft_with_errors_does_not_run_and_is_no_version(client: httpx.AsyncClient, hello: Json) -> None:
    hello["blocks"]["greet"]["type"] = "grete"
    draft = await begin(client, hello)
    for path in ("run", "versions"):
        refused = await client.post(f"/api/drafts/{draft['id']}/{path}", json={})
        assert (refused.status_code, refused.json()["code"]) == (422, "document_invalid")
        assert refused.json()["diagnostics"] == draft["diagnostics"]
    assert (await client.get("/api/runs")).json()["runs"] == []


async def test_one_key_is_one_run_of_a_draft(client: httpx.AsyncClient, hello: Json) -> None:
    draft = await begin(client, hello)
    url, key = f"/api/drafts/{draft['id']}/run", {"idempotency-key": "k"}
    first = await client.post(url, json={"input": {"name": "a"}}, headers=key)
    again = await client.post(url, json={"input": {"name": "a"}}, headers=key)
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["run"] == again.json()["run"]
    # The draft was changed, but nothing that a run of it would do: the answer tells of the run that is there.
    hello["blocks"]["greet"]["description"] = "Says hello."
    changed = await client.put(f"/api/drafts/{draft['id']}", json={"document": hello}, headers=at(1))
    assert changed.status_code == 200
    again = await client.post(url, json={"input": {"name": "a"}}, headers=key)
    assert (again.json()["run"], again.json()["rev"]) == (first.json()["run"], 1)
    assert again.headers["weft-draft-rev"] == "1"


async def test_stop_after_and_trigger_reach_the_run(client: httpx.AsyncClient, hello: Json) -> None:
    draft = await begin(client, hello)
    stopped = await client.post(f"/api/drafts/{draft['id']}/run?wait=60", json={"stop_after": "start"})
    assert stopped.json()["status"] == "succeeded" and stopped.json()["output"] != {"greeting": "hello world"}
    unknown = await client.post(f"/api/drafts/{draft['id']}/run", json={"trigger": "greet"})
    assert unknown.status_code == 422


async def test_a_draft_becomes_a_version_and_is_based_on_it(client: httpx.AsyncClient, hello: Json) -> None:
    draft = await begin(client, hello)
    url = f"/api/drafts/{draft['id']}"
    saved = await client.post(url + "/versions", json={})
    assert saved.status_code == 201 and saved.headers["location"] == "/api/workflows/hello"
    assert {k: saved.json()[k] for k in ("name", "version", "created", "draft", "rev")} == {
        "name": "hello", "version": 1, "created": True, "draft": draft["id"], "rev": 1,
    }  # fmt: skip
    assert (await client.post(url + "/versions", json={})).status_code == 200
    assert (await client.get("/api/workflows/hello")).json()["document"] == hello
    based = (await client.get(url)).json()
    assert (based["rev"], based["base_name"], based["base_version"], based["base_rev"]) == (1, "hello", 1, 1)

    hello["description"] = "new"
    await client.put(url, json={"document": hello}, headers=at(1))
    other = await client.post(url + "/versions", json={"name": "greeting"}, headers=at(2))
    assert (other.json()["name"], other.json()["version"], other.json()["rev"]) == ("greeting", 1, 2)
    based = (await client.get(url)).json()
    assert (based["rev"], based["base_name"], based["base_version"], based["base_rev"]) == (2, "greeting", 1, 2)


async def test_a_draft_replaces_only_the_version_on_which_it_is_based(client: httpx.AsyncClient, hello: Json) -> None:
    first, second = [f"/api/drafts/{(await begin(client, hello))['id']}" for _ in range(2)]
    assert (await client.post(first + "/versions", json={})).status_code == 201
    hello["description"] = "another one of that name"
    await client.put(second, json={"document": hello}, headers=at(1))
    refused = await client.post(second + "/versions", json={})
    assert (refused.status_code, refused.json()["code"], refused.json()["active"]) == (409, "would_replace", 1)
    assert "`replaces`: 1" in refused.json()["hint"]
    assert (await client.post(second + "/versions", json={"replaces": 2})).status_code == 409
    assert (await client.get("/api/workflows/hello")).json()["version"] == 1
    assert (await client.get(second)).json()["base_version"] is None
    taken = await client.post(second + "/versions", json={"replaces": 1})
    assert (taken.status_code, taken.json()["replaced"]) == (201, 1)

    hello["description"] = "based on version 1, which is not active any more"
    await client.put(first, json={"document": hello}, headers=at(1))
    assert (await client.post(first + "/versions", json={})).json()["active"] == 2
    assert (await client.post(first + "/versions", json={"name": "free"})).status_code == 201


async def test_nothing_is_stored_as_untitled(client: httpx.AsyncClient, hello: Json) -> None:
    url = f"/api/drafts/{(await begin(client, {**hello, 'name': 'untitled'}))['id']}/versions"
    for name in (None, "Untitled", " "):
        refused = await client.post(url, json={"name": name})
        assert (refused.status_code, refused.json()["code"], refused.json()["pointer"]) == (
            400, "name_missing", "/name",
        )  # fmt: skip
    refused = await client.post("/api/workflows", json={**hello, "name": "untitled"})
    assert (refused.status_code, refused.json()["code"]) == (400, "name_missing")


async def test_the_name_of_the_draft_is_that_of_its_runs_and_versions(client: httpx.AsyncClient, hello: Json) -> None:
    del hello["name"]
    draft = await begin(client, hello)
    assert draft["name"] == ""
    saved = await client.post(f"/api/drafts/{draft['id']}/versions", json={})
    assert saved.json()["name"] == "workflow"  # what a document without a name is called
    named = await begin(client, hello, name="mine")
    assert (await client.post(f"/api/drafts/{named['id']}/versions", json={})).json()["name"] == "mine"
    run = (await client.post(f"/api/drafts/{named['id']}/run", json={})).json()
    assert run["workflow"] == "mine"


async def test_a_workflow_of_sim_becomes_one_of_ours(client: httpx.AsyncClient) -> None:
    sim = {
        "version": "1",
        "blocks": [
            {"id": "s", "metadata": {"id": "starter", "name": "Start"}, "config": {"tool": "", "params": {}}},
            {"id": "f", "metadata": {"id": "function", "name": "F"}, "config": {"params": {"code": "return 1"}}},
        ],
        "connections": [{"source": "s", "target": "f"}],
        "loops": {},
    }
    draft = await begin(client, sim, name="from sim")
    assert draft["document"]["format"] == "weft/1" and set(draft["document"]["blocks"]) == {"s", "f"}
    started = await client.post("/api/runs?wait=60", json={"document": sim})
    kept = (await client.get(started.json()["urls"]["document"])).json()
    assert kept["imported"] == "sim" and set(kept["document"]["blocks"]) == {"s", "f"}


async def test_what_an_import_lost_stays_in_the_description(client: httpx.AsyncClient) -> None:
    sim = {
        "version": "1",
        "blocks": [
            {"id": "s", "metadata": {"id": "starter", "name": "Start"}, "config": {"params": {}}},
            {"id": "n", "metadata": {"id": "mongodb", "name": "Tell"}, "config": {"params": {"text": "Hi"}}},
        ],
        "connections": [{"source": "s", "target": "n"}],
        "loops": {},
    }
    draft = await begin(client, sim)
    assert [found["code"] for found in draft["diagnostics"]] == ["import_lossy"]
    again = (await client.get(f"/api/drafts/{draft['id']}")).json()
    assert [found["code"] for found in again["diagnostics"]] == ["not_imported"]
    assert again["document"]["description"] == (
        "Imported from Sim. To do:\n"
        '- MongoDB "Tell": It is not imported. A block that fails is in its place. '
        "It has no HTTP interface: use its Python library in a function with @weft.step."
    )


async def test_drafts_are_there_after_a_restart(settings: Settings, hello: Json) -> None:
    from server.app import build_engine, create_app

    async def with_server(use: Any) -> Any:
        engine = await build_engine(settings)
        try:
            transport = httpx.ASGITransport(app=create_app(settings, engine))
            async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
                return await use(client)
        finally:
            await engine.close()

    draft = await with_server(lambda client: begin(client, hello))
    read = await with_server(lambda client: client.get(f"/api/drafts/{draft['id']}"))
    assert read.json() == draft


async def test_the_last_inputs_of_a_draft(client: httpx.AsyncClient, hello: Json, engine: Engine) -> None:
    draft = await begin(client, hello)
    other = await begin(client, hello)
    url = f"/api/drafts/{draft['id']}"
    assert (await client.get(url + "/inputs")).json() == {"inputs": []}
    for n in (0, 1, 0, *range(2, 12)):
        await client.post(url + "/run?wait=60", json={"input": {"name": f"n{n}", "b": 1}})
    await client.post(url + "/run?wait=60", json={"input": {"b": 1, "name": "n11"}})
    await client.post(url + "/run?wait=60", json={"input": {"name": "x" * 70_000}})
    await client.post(f"/api/drafts/{other['id']}/run?wait=60", json={"input": {"name": "other"}})
    found = (await client.get(url + "/inputs")).json()["inputs"]
    assert [input["name"] for input in found] == [f"n{n}" for n in (11, 10, 9, 8, 7, 6, 5, 4, 3, 2)]
    assert (await client.get("/api/drafts/none/inputs")).status_code == 404
    await client.post("/api/workflows", json=hello)
    named = (await client.get("/api/workflows/hello/inputs")).json()["inputs"]
    assert len(named) == 10 and named[0] == {"name": "other"}
    assert (await client.get("/api/workflows/none/inputs")).status_code == 404


async def test_reading_changes_nothing_and_writing_needs_json(client: httpx.AsyncClient, hello: Json) -> None:
    draft = await begin(client, hello)
    url = f"/api/drafts/{draft['id']}"
    for path in ("", "/inputs"):
        assert (await client.head(url + path)).status_code == 200
    for path in ("/run", "/versions"):
        assert (await client.get(url + path)).status_code == 405
    assert (await client.get("/api/runs")).json()["runs"] == []
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert (await client.post("/api/drafts", content=b"document={}", headers=form)).status_code == 415
    cross = {"sec-fetch-site": "cross-site"}
    for method in ("PUT", "DELETE"):
        refused = await client.request(method, url, json={"document": {}}, headers={**at(1), **cross})
        assert refused.status_code == 403
    assert (await client.get(url)).json() == draft


async def test_every_new_route_asks_for_the_token(locked: httpx.AsyncClient, app: Starlette) -> None:
    asked = [
        ("GET", "/api/drafts"), ("POST", "/api/drafts"), ("GET", "/api/drafts/x"), ("PUT", "/api/drafts/x"),
        ("DELETE", "/api/drafts/x"), ("POST", "/api/drafts/x/run"), ("POST", "/api/drafts/x/versions"),
        ("GET", "/api/drafts/x/inputs"), ("GET", "/api/workflows/x/inputs"), ("GET", "/api/examples"),
        ("GET", "/api/env"), ("GET", "/api/runs/x/document"), ("GET", "/api/runs/x/rerun"),
        ("POST", "/api/runs/x/rerun"), ("GET", "/api/runs/x/nodes/y"),
    ]  # fmt: skip
    for method, path in asked:
        refused = await locked.request(method, path)
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized"), path


async def test_a_draft_is_in_a_folder_and_its_workflow_after_it(client: httpx.AsyncClient, hello: Json) -> None:
    draft = await begin(client, hello)
    url = f"/api/drafts/{draft['id']}"
    moved = await client.put(f"{url}/folder", json={"folder": " Shop "})
    assert moved.json() == {"id": draft["id"], "folder": "Shop"}
    [listed] = (await client.get("/api/drafts")).json()["drafts"]
    assert (listed["folder"], listed["rev"], listed["updated_at_ms"]) == ("Shop", 1, draft["updated_at_ms"])
    assert (await client.post(f"{url}/versions", json={})).status_code == 201
    assert (await client.get("/api/cards")).json()["folders"] == {"Shop": 1}
    none = await client.put("/api/drafts/none/folder", json={"folder": ""})
    assert (none.status_code, none.json()["code"]) == (404, "draft_not_found")
