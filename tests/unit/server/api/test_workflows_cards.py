"""Workflows as cards, folders, and runs by time and text, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx

Json = dict[str, Any]
WIDE = "since=0&until=9000000000000"


async def stored(client: httpx.AsyncClient, document: Json, name: str) -> None:
    assert (await client.post("/api/workflows", json={"document": document, "name": name})).status_code == 201


async def ended(client: httpx.AsyncClient, name: str, input: Json) -> str:
    answer = (await client.post(f"/api/workflows/{name}/runs?wait=30", json={"input": input})).json()
    assert answer["status"] == "succeeded", answer
    return str(answer["run"])


async def test_a_card_has_the_document_and_what_the_last_run_did(
    client: httpx.AsyncClient, hello: Json, asking: Json
) -> None:
    await stored(client, hello, "hello")
    await stored(client, asking, "asking")
    runs = [await ended(client, "hello", {"name": "Ada"}) for _ in range(2)]
    await client.post("/api/workflows/asking/runs?wait=1", json={"input": {"text": "t"}})
    page = (await client.get("/api/cards?order=name")).json()
    second, first = page["cards"]
    assert (first["name"], second["name"], page["next"]) == ("hello", "asking", None)
    assert [run["id"] for run in first["runs"]] == runs and first["last_run"]["id"] == runs[1]
    assert first["document"] == hello and first["today"] == 2 and first["next_ms"] is None and first["open"] == {}
    assert set(first["states"].values()) == {"succeeded"} and first["states"].keys() == hello["blocks"].keys()
    assert second["open"] == {"waiting": 1} and "waiting" in second["states"].values()
    again = (await client.get("/api/cards?limit=1&after=1&order=name")).json()
    assert ([card["name"] for card in again["cards"]], again["next"]) == (["hello"], 2)


async def test_a_workflow_is_moved_to_a_folder_without_a_new_version(client: httpx.AsyncClient, hello: Json) -> None:
    await stored(client, hello, "hello")
    moved = await client.put("/api/workflows/hello/folder", json={"folder": " Shop "})
    assert moved.json() == {"name": "hello", "folder": "Shop"}
    page = (await client.get("/api/cards?folder=Shop")).json()
    assert [(card["name"], card["folder"], card["versions"]) for card in page["cards"]] == [("hello", "Shop", 1)]
    assert page["folders"] == {"Shop": 1}
    assert (await client.get("/api/cards?folder=People")).json()["cards"] == []
    none = await client.put("/api/workflows/nothing/folder", json={"folder": "Shop"})
    assert (none.status_code, none.json()["code"]) == (404, "workflow_not_found")
    long = await client.put("/api/workflows/hello/folder", json={"folder": "x" * 61})
    assert long.status_code == 422 and "/folder" in long.text


async def test_a_workflow_is_renamed_and_found_by_both_names(
    client: httpx.AsyncClient, hello: Json, asking: Json
) -> None:
    await stored(client, hello, "hello")
    await stored(client, asking, "asking")
    before = await ended(client, "hello", {"name": "Ada"})
    put = await client.put("/api/workflows/hello/title", json={"title": " Greeting "})
    assert put.json() == {"name": "hello", "title": "Greeting"}
    page = (await client.get("/api/cards?text=greet&order=name")).json()
    assert [(card["name"], card["title"], card["versions"]) for card in page["cards"]] == [("hello", "Greeting", 1)]
    for name in ("hello", "Greeting"):
        started = (await client.post(f"/api/workflows/{name}/runs", json={"input": {"name": "Bo"}})).json()
        assert started["workflow"] == "hello", "runs, schedules and addresses have the name that stays"
    assert (await client.get("/api/workflows/Greeting")).json()["name"] == "hello"
    assert before in [run["id"] for run in (await client.get("/api/runs?workflow=hello")).json()["runs"]]
    again = await client.post("/api/workflows", json={"document": {**hello, "description": "new"}, "name": "Greeting"})
    assert (again.json()["name"], again.json()["version"]) == ("hello", 2), "what is stored by the title is a version"
    draft = (await client.post("/api/drafts", json={"document": hello, "name": "hello", "base_version": 2})).json()
    kept = await client.post(f"/api/drafts/{draft['id']}/versions", json={"name": "Greeting"})
    assert (kept.status_code, kept.json()["name"]) == (200, "hello")
    for title in ("Greeting", "hello"):
        taken = await client.put("/api/workflows/asking/title", json={"title": title})
        assert (taken.status_code, taken.json()["code"]) == (409, "title_taken")
    for title, code in (("a/b", "name_invalid"), ("Untitled", "name_missing")):
        wrong = await client.put("/api/workflows/hello/title", json={"title": title})
        assert (wrong.status_code, wrong.json()["code"]) == (400, code)
    none = await client.put("/api/workflows/nothing/title", json={"title": "x"})
    assert (none.status_code, none.json()["code"]) == (404, "workflow_not_found")
    assert (await client.put("/api/workflows/hello/title", json={"title": "hello"})).json()["title"] == ""


async def test_runs_are_searched_and_counted_by_time(client: httpx.AsyncClient, hello: Json) -> None:
    await stored(client, hello, "hello")
    run = await ended(client, "hello", {"name": "Ada"})
    found = (await client.get(f"/api/runs?text={run[2:9].upper()}&{WIDE}")).json()
    assert [each["id"] for each in found["runs"]] == [run] and found["next"] is None
    assert (await client.get("/api/runs?text=nowhere")).json()["runs"] == []
    assert (await client.get("/api/runs?until=1")).json()["runs"] == []
    times = (await client.get(f"/api/run-times?{WIDE}&parts=3")).json()
    assert times["width_ms"] == 3_000_000_000_000 and sum(times["counts"]["succeeded"]) == 1
    assert len(times["counts"]["failed"]) == 3 and times["capped"] == []
    wrong = await client.get("/api/run-times?since=5&until=5")
    assert (wrong.status_code, wrong.json()["code"]) == (400, "run_times")
