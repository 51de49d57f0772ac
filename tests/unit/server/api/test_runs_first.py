"""The first requests of a process."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from executor.kernel.store.run_rows import RunRow
from executor.open.engine import Engine

POSTS = 50


async def test_runs_that_are_posted_first_are_begun_in_the_commits_that_create_them(
    engine: Engine, client: httpx.AsyncClient, hello: dict[str, Any]
) -> None:
    """They are not claimed one by one: the worker has looked before the engine is open."""
    store: Any = engine.store
    claim, begin_run, claimed, begun = store.claim, store.begin_run, list[str](), list[str]()

    async def watched_claim(*args: Any, **names: Any) -> list[RunRow]:
        rows: list[RunRow] = await claim(*args, **names)
        claimed.extend(row.id for row in rows)
        return rows

    async def watched_begin(new: Any, *args: Any) -> Any:
        begun.append(new.id)
        return await begin_run(new, *args)

    store.claim, store.begin_run = watched_claim, watched_begin
    commits = store.stats.commits
    answers = await asyncio.gather(*(client.post("/api/runs", json={"document": hello}) for _ in range(POSTS)))
    assert {answer.status_code for answer in answers} == {202}
    runs = [answer.json()["run"] for answer in answers]
    for run in runs:
        assert (await engine.wait_finished(run, 60)).status == "succeeded"
    assert claimed == [] and sorted(begun) == sorted(runs)
    assert store.stats.commits - commits <= POSTS, "one for each run at most, if none is shared"
