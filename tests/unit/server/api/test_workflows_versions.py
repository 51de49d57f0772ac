"""An older document that is deployed again runs; activate, get, list and delete."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import httpx
import pytest

from executor.errors import Conflict, NotFound
from executor.kernel.store.run_rows import EventFilter
from executor.open.engine import Engine


def saying(text: str, **more: Any) -> dict[str, Any]:
    return {
        "format": "weft/1",
        "name": "say",
        "blocks": {"start": {"type": "start"}, "say": {"type": "set", "params": {"value": text}}, **more},
        "edges": [{"source": "start", "target": "say"}],
    }


def nightly(text: str, cron: str) -> dict[str, Any]:
    made = saying(text, nightly={"type": "schedule", "params": {"cron": cron}}, hook={"type": "webhook"})
    made["edges"] += [{"source": "nightly", "target": "say"}, {"source": "hook", "target": "say"}]
    return made


def asking(name: str) -> dict[str, Any]:
    return {
        "format": "weft/1",
        "name": name,
        "blocks": {"start": {"type": "start"}, "ask": {"type": "approval", "params": {"title": "?"}}},
        "edges": [{"source": "start", "target": "ask"}],
    }


async def said(engine: Engine, version: int | None = None) -> Any:
    return (await engine.run("say", version=version, timeout_s=60)).output


async def test_an_older_document_deployed_again_is_what_runs(engine: Engine) -> None:
    for text in ("one", "two"):
        saved = await engine.workflows.save(saying(text))
        assert saved.created and saved.activated
    assert await said(engine) == "two"
    again = await engine.workflows.save(saying("one"))
    assert (again.version, again.created, again.activated, again.replaced) == (1, False, True, 2)
    assert await said(engine) == "one"
    assert await said(engine, version=2) == "two"
    same = await engine.workflows.save(saying("one"))
    assert (same.version, same.created, same.activated, same.replaced) == (1, False, False, None)


async def test_the_api_says_so(client: httpx.AsyncClient) -> None:
    for text in ("one", "two"):
        assert (await client.post("/api/workflows", json=saying(text))).status_code == 201
    answer = await client.post("/api/workflows", json=saying("one"))
    assert answer.status_code == 200
    body = answer.json()
    assert (body["version"], body["created"], body["activated"], body["replaced"]) == (1, False, True, 2)
    stored = (await client.get("/api/workflows/say")).json()
    assert (stored["version"], stored["active"], stored["newest"]) == (1, 1, 2)
    assert stored["document"]["blocks"]["say"]["params"] == {"value": "one"}
    newer = (await client.get("/api/workflows/say?version=2")).json()
    assert (newer["version"], newer["active"]) == (2, 1)
    page = (await client.get("/api/workflows/say/versions?limit=1")).json()
    assert ([each["version"] for each in page["versions"]], page["active"], page["next"]) == ([2], 1, 2)
    page = (await client.get("/api/workflows/say/versions?before=2")).json()
    assert ([each["version"] for each in page["versions"]], page["next"]) == ([1], None)


async def test_a_version_can_be_activated(client: httpx.AsyncClient) -> None:
    for text in ("one", "two"):
        await client.post("/api/workflows", json=saying(text))
    answer = await client.put("/api/workflows/say/active", json={"version": 1})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["version"], answer.json()["activated"], answer.json()["replaced"]) == (1, True, 2)
    ran = await client.post("/api/workflows/say/runs?wait=60", json={})
    assert ran.json()["output"] == "one"
    again = await client.put("/api/workflows/say/active", json={"version": 1})
    assert again.json()["activated"] is False
    missing = await client.put("/api/workflows/say/active", json={"version": 9})
    assert (missing.status_code, missing.json()["code"]) == (404, "workflow_not_found")
    assert (await client.put("/api/workflows/none/active", json={"version": 1})).status_code == 404
    assert (await client.put("/api/workflows/say/active", json={})).status_code == 422


async def test_schedules_and_webhooks_are_those_of_the_active_version(engine: Engine) -> None:
    await engine.workflows.save(nightly("one", "0 1 * * *"))
    await engine.workflows.save(nightly("two", "0 2 * * *"))

    async def crons() -> list[tuple[str, int | None]]:
        return [(row.cron, row.version) for row in await engine.store.list_schedules("say")]

    assert await crons() == [("0 2 * * *", 2)]
    await engine.workflows.activate("say", 1)
    assert await crons() == [("0 1 * * *", 1)]
    assert [row.version for row in await engine.store.list_webhooks("say")] == [1]
    await engine.workflows.save(nightly("two", "0 2 * * *"))
    assert await crons() == [("0 2 * * *", 2)]
    await engine.workflows.save(saying("three"))
    assert await crons() == [] == await engine.store.list_webhooks("say")
    await engine.workflows.activate("say", 2)
    assert await crons() == [("0 2 * * *", 2)]


async def test_saving_a_draft_with_an_older_document_activates_it(client: httpx.AsyncClient) -> None:
    """As the editor does: take an older version into the draft, and save it."""
    draft = (await client.post("/api/drafts", json={"document": saying("one")})).json()
    for text in ("one", "two", "one"):
        rev = (await client.get(f"/api/drafts/{draft['id']}")).json()["rev"]
        put = await client.put(
            f"/api/drafts/{draft['id']}", json={"document": saying(text)}, headers={"If-Match": f'"{rev}"'}
        )
        assert put.status_code == 200, put.text
        saved = (await client.post(f"/api/drafts/{draft['id']}/versions", json={"name": "say"})).json()
    assert (saved["version"], saved["created"], saved["activated"], saved["replaced"]) == (1, False, True, 2)
    assert (await client.get("/api/workflows/say")).json()["version"] == 1
    assert (await client.get(f"/api/drafts/{draft['id']}")).json()["base_version"] == 1


async def test_the_command_line_shows_gets_and_activates(weft: Callable[..., Any], tmp_path: Path) -> None:
    for text in ("one", "two"):
        (tmp_path / f"{text}.json").write_text(json.dumps(saying(text)))
        shown = await weft("deploy", str(tmp_path / f"{text}.json"))
        assert "(new, " in shown.stdout
    again = await weft("deploy", str(tmp_path / "one.json"))
    assert again.stdout.startswith("say version 1 (active again instead of version 2, ")
    assert "(unchanged, " in (await weft("deploy", str(tmp_path / "one.json"))).stdout
    for replaces in ("0", "2"):
        refused = await weft("deploy", str(tmp_path / "two.json"), "--replaces", replaces)
        assert refused.exit_code != 0 and "version 1 of workflow 'say' is active" in refused.stderr
    assert (await weft("deploy", str(tmp_path / "two.json"), "--replaces", "1")).exit_code == 0
    assert (await weft("deploy", str(tmp_path / "one.json"))).exit_code == 0

    assert (await weft("activate", "say", "2")).stdout == "say version 2 is active instead of version 1\n"
    assert (await weft("activate", "say", "2")).stdout == "say version 2 is already active\n"
    assert (await weft("activate", "say", "7")).exit_code != 0

    listed = click.unstyle((await weft("workflows")).stdout).splitlines()
    assert listed[0].split() == ["NAME", "ACTIVE", "VERSIONS", "SAVED", "LAST", "RUN"]
    assert listed[1].split()[:3] == ["say", "2", "2"] and listed[1].endswith("never")
    ran = json.loads((await weft("run", "say", "--version", "1", "--json")).stdout)
    assert ran["version"] == 1
    (one,) = json.loads((await weft("workflows", "--json")).stdout)
    assert one["last_run"]["id"] == ran["run"]
    versions = [line.split() for line in (await weft("workflows", "say")).stdout.splitlines()]
    assert (versions[1][0], versions[1][-1]) == ("2", "active")

    assert json.loads((await weft("get", "say")).stdout) == saying("two")
    out = tmp_path / "out.json"
    await weft("get", "say", "--version", "1", "-o", str(out))
    assert json.loads(out.read_text()) == saying("one")
    kept = await weft("get", "say", "-o", str(out))
    assert kept.exit_code != 0 and json.loads(out.read_text()) == saying("one")
    refused = await weft("run", str(out), "--version", "1")
    assert refused.exit_code != 0


async def test_a_run_is_deleted_with_those_it_started(engine: Engine, client: httpx.AsyncClient) -> None:
    await engine.workflows.save(saying("one"))
    caller = saying("x", call={"type": "run_workflow", "params": {"workflow": "say"}})
    caller["edges"].append({"source": "say", "target": "call"})
    run = (await engine.run(caller, timeout_s=60)).id
    (child,) = await engine.store.list_children(run)
    refused = await client.delete(f"/api/runs/{child.id}")
    assert (refused.status_code, refused.json()["code"], refused.json()["parent"]) == (409, "run_has_parent", run)
    gone = await client.delete(f"/api/runs/{run}")
    assert (gone.status_code, gone.json()) == (200, {"run": run, "runs": 2})
    for id in (run, child.id):
        assert (await client.get(f"/api/runs/{id}")).status_code == 404
        assert await engine.store.find_events(id, EventFilter()) == ([], 0)
    assert (await client.delete(f"/api/runs/{run}")).status_code == 404


async def test_an_open_run_is_not_deleted(engine: Engine) -> None:
    run = (await engine.submit(asking("ask"))).run
    await engine.wait_finished(run, 60)
    with pytest.raises(Conflict, match="has not ended yet") as refused:
        await engine.upkeep.delete_run(run)
    assert refused.value.code == "run_not_ended"
    await engine.cancel(run)
    await engine.wait_finished(run, 60)
    assert await engine.upkeep.delete_run(run) == 1
    with pytest.raises(NotFound):
        await engine.upkeep.delete_run(run)


async def test_a_workflow_is_deleted_once_no_run_of_it_is_open(engine: Engine, client: httpx.AsyncClient) -> None:
    ask = asking("ask")
    ask["blocks"]["nightly"] = {"type": "schedule", "params": {"cron": "0 1 * * *"}}
    ask["edges"].append({"source": "nightly", "target": "ask"})
    await engine.workflows.save(ask)
    run = (await engine.submit("ask", trigger="start")).run
    await engine.wait_finished(run, 60)
    refused = await client.delete("/api/workflows/ask")
    assert (refused.status_code, refused.json()["code"]) == (409, "workflow_has_open_runs")
    assert len(await engine.store.list_schedules("ask")) == 1
    await engine.cancel(run)
    await engine.wait_finished(run, 60)

    gone = await client.delete("/api/workflows/ask")
    assert (gone.status_code, gone.json()) == (200, {"name": "ask", "schedules": 1, "webhooks": 0})
    assert await engine.store.list_schedules("ask") == []
    assert (await client.get("/api/workflows")).json()["workflows"] == []
    for path in ("", "?version=1", "/versions", "/plan", "/inputs"):
        assert (await client.get(f"/api/workflows/ask{path}")).status_code == 404, path
    assert (await client.post("/api/workflows/ask/runs", json={"version": 1})).status_code == 404
    assert (await client.delete("/api/workflows/ask")).status_code == 404
    assert (await client.get(f"/api/runs/{run}/document")).json()["document"]["name"] == "ask", "its run is whole"


async def test_the_command_line_asks_before_it_deletes(weft: Callable[..., Any], engine: Engine) -> None:
    await engine.workflows.save(saying("one"))
    run = (await engine.run("say", timeout_s=60)).id
    unanswered = await weft("delete", "run", run)
    assert unanswered.exit_code != 0
    await engine.runs.view(run)
    assert (await weft("delete", "run", run, "--yes")).stdout == f"Deleted run {run}.\n"
    with pytest.raises(NotFound):
        await engine.runs.view(run)
    assert (await weft("delete", "workflow", "say")).exit_code != 0
    assert (await weft("delete", "workflow", "say", "--yes")).stdout == "Deleted workflow say.\n"
    assert await engine.store.list_workflows() == []
