"""What a list of runs shows, and the document that each run was made from."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx
import orjson
import pytest

from executor.kernel.store.statements import COUNT_MAX
from executor.open.engine import Engine

Json = dict[str, Any]


async def test_a_list_has_summaries_durations_and_counts(
    client: httpx.AsyncClient, hello: Json, asking: Json, started: Any
) -> None:
    done = await started(hello, {"name": "Ada"})
    long = await started(hello, {"name": "é" * 500})
    waiting = await started(asking, {"text": "t"})
    body = (await client.get("/api/runs")).json()
    runs = {run["id"]: run for run in body["runs"]}
    assert runs[done["run"]]["input_summary"] == '{"name":"Ada"}'
    summary = runs[long["run"]]["input_summary"]
    assert summary.startswith('{"name":"éé') and summary.endswith("é...") and len(summary) == 163
    assert runs[done["run"]]["duration_ms"] >= 0 and runs[waiting["run"]]["duration_ms"] is None
    assert runs[done["run"]]["draft_id"] is None and "output" not in runs[done["run"]]
    everything = {"queued": 0, "running": 0, "waiting": 1, "succeeded": 2, "failed": 0, "cancelled": 0}
    assert body["counts"] == everything
    only = (await client.get("/api/runs?workflow=hello&status=failed&limit=1")).json()
    assert only["runs"] == [] and only["counts"] == everything | {"waiting": 0}, "whatever the status asked for"
    none = (await client.get("/api/runs?workflow=none")).json()
    assert none["counts"] == dict.fromkeys(everything, 0)
    assert body["capped"] == none["capped"] == []


async def test_counts_that_were_not_asked_for_and_those_that_end_early(
    client: httpx.AsyncClient, engine: Engine, asking: Json, started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = await started(asking, {"text": "t"})
    for path, item in (("runs", "id"), ("waits", "run")):
        page = (await client.get(f"/api/{path}?counts=0")).json()
        assert ([each[item] for each in page[path]], page["counts"], page["capped"]) == ([waiting["run"]], None, [])
    many = {"waiting": COUNT_MAX, "queued": COUNT_MAX - 1, "pending": COUNT_MAX}
    monkeypatch.setattr(engine.store, "count_runs", _counting(many, "waiting", "queued"))
    monkeypatch.setattr(engine.store, "count_waits", _counting(many, "pending"))
    page = (await client.get("/api/runs")).json()
    assert (page["counts"]["waiting"], page["counts"]["queued"], page["capped"]) == (100_000, 99_999, ["waiting"])
    page = (await client.get("/api/waits")).json()
    assert (page["counts"]["pending"], page["capped"]) == (100_000, ["pending"])


async def test_runs_are_listed_by_who_started_them_by_key_and_by_what_they_are_not(
    locked: httpx.AsyncClient, engine: Engine, hello: Json, asking: Json
) -> None:
    ada = {"authorization": "Bearer the-token"}
    made = (await locked.post("/api/tokens", json={"name": "bo", "role": "editor"}, headers=ada)).json()
    bo, other_by = {"authorization": f"Bearer {made['token']}"}, f"token:{made['id']}"
    keyed = {**ada, "idempotency-key": "A-1"}
    first = (await locked.post("/api/runs?wait=5", json={"document": hello}, headers=keyed)).json()
    asked = {"document": asking, "input": {"text": "t"}}
    other = (await locked.post("/api/runs?wait=5", json=asked, headers=bo)).json()
    own = (await engine.submit(hello)).run
    await engine.wait_finished(own, 5)

    async def ids(query: str) -> set[str]:
        return {run["id"] for run in (await locked.get(f"/api/runs?{query}", headers=ada)).json()["runs"]}

    assert (
        await ids("by=server-token")
        == {first["run"]}
        == await ids("key=A-1")
        == await ids(f"not_by={other_by}&key=A-1")
    )
    assert (
        await ids("not_by=server-token") == {other["run"], own}
        and await ids("by=server-token&not_status=succeeded") == set()
    )
    assert await ids("not_status=waiting&not_by=server-token") == {own} == await ids("not_text=a-1&not_workflow=asking")
    runs = {run["id"]: run for run in (await locked.get("/api/runs", headers=ada)).json()["runs"]}
    assert [(runs[id]["by"], runs[id]["key"], runs[id]["step"]) for id in (first["run"], own)] == [
        ("server-token", "A-1", None), (None, None, None)
    ]  # fmt: skip
    again = (await locked.post("/api/runs/rerun", json={"runs": [first["run"]]}, headers=bo)).json()["runs"][0]
    assert again["run"] in await ids(f"by={other_by}")


async def test_a_run_of_one_step_is_marked_and_not_one_that_has_such_a_name(
    client: httpx.AsyncClient, hello: Json
) -> None:
    draft = (await client.post("/api/drafts", json={"document": hello, "name": "a/greet"})).json()
    block = next(id for id, each in hello["blocks"].items() if each["type"] != "start")
    step = {"step": {"block": block}}
    for body in (step, {"input": {"name": "Ada"}}):
        assert (await client.post(f"/api/drafts/{draft['id']}/run?wait=5", json=body)).status_code in (200, 202)
    runs = (await client.get("/api/runs")).json()["runs"]
    assert {(run["workflow"], run["step"]) for run in runs} == {(f"a/greet/{block}", block), ("a/greet", None)}


def _counting(counts: dict[str, int], *statuses: str) -> Any:
    async def counted(*_: Any) -> dict[str, int]:
        return {status: counts[status] for status in statuses}

    return counted


async def test_the_document_of_an_ad_hoc_run(client: httpx.AsyncClient, hello: Json, started: Any) -> None:
    run = await started(hello)
    response = await client.get(run["urls"]["document"])
    digest = hashlib.sha256(orjson.dumps(hello)).hexdigest()
    assert response.json() == {
        "run": run["run"],
        "workflow": "hello",
        "version": None,
        "hash": digest,
        "draft_id": None,
        "draft_rev": None,
        "imported": None,
        "document": hello,
    }
    assert response.headers["etag"] == f'"{digest}"'
    assert list(response.json()["document"]) == list(hello), "as it was written"


async def test_the_document_of_a_stored_workflow_is_that_of_its_version(
    client: httpx.AsyncClient, hello: Json, engine: Engine
) -> None:
    await client.post("/api/workflows", json=hello)
    run = (await client.post("/api/workflows/hello/runs", json={})).json()
    await client.post("/api/workflows", json={**hello, "description": "newer"})
    kept = (await client.get(run["urls"]["document"])).json()
    assert (kept["document"], kept["version"]) == (hello, 1)
    row = await engine.runs.row(run["run"])
    assert row.document_hash is None, "it is in the workflow's own row"


async def test_the_document_of_a_run_that_stored_none(
    client: httpx.AsyncClient, hello: Json, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a database from before documents were kept."""
    create_run = engine.store.create_run

    async def without_document(run: Any) -> Any:
        from msgspec.structs import replace

        return await create_run(replace(run, document=None, document_hash=None))

    monkeypatch.setattr(engine.store, "create_run", without_document)
    monkeypatch.setattr(engine.parts.owned, "adopt", None)
    run = (await client.post("/api/runs?wait=60", json={"document": hello})).json()
    missing = await client.get(run["urls"]["document"])
    assert (missing.status_code, missing.json()["code"]) == (404, "document_not_kept")
    assert (await client.get("/api/runs/none/document")).json()["code"] == "run_not_found"
