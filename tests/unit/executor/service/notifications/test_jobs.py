"""`job` blocks: the work is elsewhere, the run waits without memory, and each end of the work is an end of the wait."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from compiler.compile import compile_document
from executor.blocks.types.registry import Registry
from executor.kernel.process.extras import install
from executor.kernel.run.links import token_of
from executor.open.engine import Engine
from executor.service.notifications import jobs
from executor.service.views import RunView, WaitView
from tests.support.clock import ManualClock
from tests.support.endpoints import answer, http
from tests.support.kubernetes import Cluster, kubernetes
from tests.support.until import until
from tests.unit.executor.service.notifications.test_outbox import engine_on

IMAGE = {"adapter": "kubernetes", "image": "train:1", "args": ["--rows", 5], "env": {"LEVEL": 2}}


def document(params: dict[str, Any], **policy: Any) -> dict[str, Any]:
    blocks = {"start": {"type": "start"}, "work": {"type": "job", "params": params, "policy": policy}}
    return {"format": "weft/1", "name": "w", "blocks": blocks, "edges": [{"source": "start", "target": "work"}]}


class Rig:
    """An engine on a clock that stands still, and a cluster that it reaches by KUBECONFIG."""

    def __init__(self, engine: Engine, cluster: Cluster, clock: ManualClock, db: Path) -> None:
        self.engine = engine
        self.cluster = cluster
        self._clock = clock
        self._db = db

    async def start(self, params: dict[str, Any] = IMAGE) -> WaitView:
        run = (await self.engine.submit(document(params))).run
        (wait,) = await until(lambda: self.engine.waits.list(run=run))
        await self.looked("POST")
        return wait

    async def looked(self, method: str) -> None:
        """Until such a request was answered, and what became of each message is on disk."""
        await until(lambda: method in self.cluster.asked)
        await until(self._are_settled)
        self.cluster.asked.clear()

    async def look(self, method: str = "GET") -> None:
        """As much later as a Job is looked at again."""
        self._clock.advance(jobs.LOOK_MS)
        await self.looked(method)

    def _are_settled(self) -> bool:
        """A message under way is due at the end of its lease, which is another time."""
        with closing(sqlite3.connect(self._db)) as db:
            due = db.execute("SELECT due_at_ms FROM notifications WHERE status = 'pending'").fetchall()
        return all(due_ms == self._clock.now_ms() + jobs.LOOK_MS for (due_ms,) in due)

    async def end(self, run: str) -> Any:
        view = await ended(self.engine, run)
        return view.output if view.status == "succeeded" else (view.status, view.error and view.error["message"])


async def ended(engine: Engine, run: str) -> RunView:
    async def look() -> RunView | None:
        view = await engine.runs.view(run)
        return view if view.status in ("succeeded", "failed", "cancelled") else None

    return await until(look)


@asynccontextmanager
async def _rig(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    clock = ManualClock()
    async with kubernetes(folder) as (cluster, file):
        monkeypatch.setenv("KUBECONFIG", str(file))
        async with engine_on(folder / "db", clock, kubernetes=("batch", "other")) as engine:
            yield Rig(engine, cluster, clock, folder / "db")


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    async with _rig(tmp_path, monkeypatch) as made:
        yield made


async def test_a_job_is_created_once_and_its_callback_continues_the_run(rig: Rig) -> None:
    wait = await rig.start()
    ((namespace, name),) = rig.cluster.jobs
    assert namespace == "batch" and name.startswith("weft-") and len(name) <= 63
    spec = rig.cluster.jobs[(namespace, name)]["spec"]
    assert spec["backoffLimit"] == 0
    (container,) = spec["template"]["spec"]["containers"]
    assert (container["image"], container["args"]) == ("train:1", ["--rows", "5"])
    env = {each["name"]: each["value"] for each in container["env"]}
    assert env["LEVEL"] == "2" and env["WEFT_CALLBACK_URL"] == wait.link and env["WEFT_RUN"] == wait.run
    assert (await rig.engine.waits.get(wait.run, wait.id)).notifications[0].to == "Kubernetes, namespace batch"
    await rig.look()  # it is there and runs
    await rig.engine.callbacks.receive(token_of(env["WEFT_CALLBACK_URL"], "callback"), {"rows": 5}, {})
    assert (await rig.end(wait.run))["body"] == {"rows": 5}
    assert len(rig.cluster.jobs) == 1


async def test_an_answer_of_the_cluster_that_was_lost_does_not_create_a_second_job(rig: Rig) -> None:
    rig.cluster.refuses = [500, 500]
    run = (await rig.engine.submit(document(IMAGE))).run
    await rig.looked("GET")
    (wait,) = await rig.engine.waits.list(run=run)
    assert "answered 500" in str(wait.notifications[0].error)
    rig.cluster.refuses.clear()
    await rig.look("POST")
    (first,) = rig.cluster.jobs
    again = await jobs._request("POST", first[0], json={"metadata": {"name": first[1]}})
    assert again is None and list(rig.cluster.jobs) == [first]


async def test_processes_that_died_before_they_created_it_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    async with kubernetes(tmp_path) as (cluster, file):
        monkeypatch.setenv("KUBECONFIG", str(file))
        async with engine_on(tmp_path / "db", clock, kubernetes=("batch",)) as engine:
            await engine.notifications.stop()
            run = (await engine.submit(document(IMAGE))).run
            (wait,) = await until(lambda: engine.waits.list(run=run))
            assert wait.notifications[0].error is None
            for _ in range(3):
                clock.advance(1_000)
                assert await engine.store.claim_notifications(clock.now_ms(), 1_000, 1)
        clock.advance(1_000)
        async with engine_on(tmp_path / "db", clock, kubernetes=("batch",)) as engine:
            await until(lambda: cluster.jobs)
            assert (await engine.waits.get(run, wait.id)).status == "pending"


async def test_the_job_of_a_cancelled_run_is_deleted(rig: Rig) -> None:
    wait = await rig.start()
    await rig.engine.cancel(wait.run)
    await ended(rig.engine, wait.run)
    await rig.look("DELETE")
    assert not rig.cluster.jobs
    assert (await rig.engine.waits.get(wait.run, wait.id)).notifications[0].status == "cancelled"


async def test_a_job_that_ends_without_a_callback_ends_the_wait(rig: Rig) -> None:
    succeeds, fails, deleted = [await rig.start() for _ in range(3)]
    names = list(rig.cluster.jobs)
    await rig.look()  # all of them run
    rig.cluster.jobs[names[0]]["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    failed = {"type": "Failed", "status": "True", "message": "BackoffLimitExceeded"}
    rig.cluster.jobs[names[1]]["status"] = {"conditions": [failed]}
    del rig.cluster.jobs[names[2]]
    await rig.look()
    assert (await rig.end(succeeds.run))["body"] == {"job": names[0][1], "status": "succeeded"}
    status, message = await rig.end(fails.run)
    assert status == "failed" and "BackoffLimitExceeded" in message
    status, message = await rig.end(deleted.run)
    assert status == "failed" and "was deleted" in message


async def test_what_the_cluster_refuses_fails_the_block(rig: Rig) -> None:
    rig.cluster.refuses = [404, 422]
    run = (await rig.engine.submit(document(IMAGE))).run
    status, message = await rig.end(run)
    assert status == "failed" and "Kubernetes answered 422: refused here" in message


async def test_only_permitted_namespaces(rig: Rig, tmp_path: Path) -> None:
    status, message = await rig.end((await rig.engine.submit(document({**IMAGE, "namespace": "kube-system"}))).run)
    assert status == "failed" and "kube-system" in message
    async with engine_on(tmp_path / "none") as engine:
        run = await engine.run(document(IMAGE), timeout_s=60)
        assert run.error is not None and "may not create Jobs" in run.error["message"]


async def test_without_the_library_the_block_fails_and_says_what_to_install(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kr8s", None)
    status, message = await rig.end((await rig.engine.submit(document(IMAGE))).run)
    assert status == "failed" and install("kubernetes") in message


async def test_by_http_a_job_is_posted_with_its_callback(tmp_path: Path) -> None:
    async with http(lambda request: answer(202)) as server, engine_on(tmp_path / "db") as engine:
        run = (await engine.submit(document({"url": f"{server.url}/jobs", "job": {"rows": 5}}))).run
        (wait,) = await until(lambda: engine.waits.list(run=run))
        await until(lambda: server.seen)
        (request,) = server.seen
        assert json.loads(request.body) == {"rows": 5, "callback_url": wait.link}
        assert request.headers["idempotency-key"] == f"{run}:{wait.id}"
        await engine.callbacks.receive(token_of(wait.link or "", "callback"), "done", {})
        assert (await ended(engine, run)).output["body"] == "done"


def test_each_adapter_needs_its_own_params() -> None:
    catalog = Registry.load()
    for params, missing in (({}, "url"), ({"adapter": "kubernetes"}, "image")):
        findings = compile_document(document(params), catalog).diagnostics
        assert [f.pointer for f in findings if f.code == "required"] == [f"/blocks/work/params/{missing}"]
    assert compile_document(document(IMAGE), catalog).plan is not None
