"""The last run of every workflow and draft, however many runs others have since."""

from __future__ import annotations

from typing import Any

import httpx

from executor.open.engine import Engine


async def test_workflows_and_drafts_have_their_last_run(
    engine: Engine, client: httpx.AsyncClient, hello: dict[str, Any]
) -> None:
    await engine.workflows.save(hello, "quiet")
    quiet = [(await engine.run("quiet", timeout_s=60)).id for _ in range(2)][-1]
    draft = (await client.post("/api/drafts", json={"document": hello, "name": "mine"})).json()["id"]
    await client.post("/api/drafts", json={"document": hello, "name": "never"})
    of_draft = (await client.post(f"/api/drafts/{draft}/run?wait=60", json={})).json()["run"]
    for _ in range(51):  # more than a page of runs
        await engine.submit(hello)
    newest = {run["id"] for run in (await client.get("/api/runs?limit=50")).json()["runs"]}
    assert not newest & {quiet, of_draft}

    (stored,) = (await client.get("/api/workflows")).json()["workflows"]
    assert (stored["last_run"]["id"], stored["last_run"]["status"]) == (quiet, "succeeded")
    drafts = {each["name"]: each["last_run"] for each in (await client.get("/api/drafts")).json()["drafts"]}
    assert drafts["never"] is None
    assert (drafts["mine"]["id"], drafts["mine"]["status"]) == (of_draft, "succeeded")
