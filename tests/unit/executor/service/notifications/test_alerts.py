"""Alerts sent by a real engine to real servers, and error workflows: which runs have them, how many, what they say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import MailSettings, Services
from executor.blocks.types.registry import Registry
from executor.kernel.handler.needs import AlertSettings
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from executor.service.notifications.alerts import EVERY_MS
from executor.service.topics.workflows import Workflows
from executor.service.triggers.declared import ScheduleSpec
from tests.support.clock import ManualClock
from tests.support.endpoints import answer, http, smtp
from tests.support.runs import settled

DAY_MS = 86_400_000


@asynccontextmanager
async def engine_on(
    db: Path, alerts: AlertSettings, clock: ManualClock | None = None, *, work: bool = True, **services: Any
) -> AsyncIterator[Engine]:
    sandbox = Sandbox(threads=1)
    used = Services(sandbox, GuardedClient(allow_private=("127.0.0.1",)), alerts=alerts, **services)
    registry = Registry.load(sandbox=sandbox)
    store = SQLiteStore(db)
    engine = await Engine.open(
        store, registry=registry, services=used, secret=b"0123456789abcdef", clock=clock, work=work
    )
    try:
        yield engine
    finally:
        await engine.close(grace_s=1)


def failing(name: str = "pay", **settings: Any) -> dict[str, Any]:
    blocks = {
        "start": {"type": "start"},
        "bad": {"type": "function", "params": {"code": "throw new Error('no money')"}},
    }
    edges = [{"source": "start", "target": "bad"}]
    return {"format": "weft/1", "name": name, "settings": settings, "blocks": blocks, "edges": edges}


def handler(code: str = "return <input.run>") -> dict[str, Any]:
    blocks = {"start": {"type": "start"}, "note": {"type": "function", "params": {"code": code}}}
    return {
        "format": "weft/1",
        "name": "on-error",
        "blocks": blocks,
        "edges": [{"source": "start", "target": "note"}],
    }


async def put(workflows: Workflows, document: dict[str, Any]) -> None:
    await workflows.save(document)


async def fail(engine: Engine, document: Any = None) -> str:
    view = await engine.run(document or failing(), timeout_s=30)
    assert view.status == "failed", view
    return view.id


async def eventually(found: Any) -> Any:
    async with asyncio.timeout(30):
        while not (result := await found()):
            await asyncio.sleep(0.02)
        return result


async def runs_of(engine: Engine, workflow: str) -> list[Any]:
    page = await engine.store.list_runs(workflow)
    return [row for row in page if row.status in ("succeeded", "failed")]


async def test_a_failed_run_is_told_by_webhook_and_mail(tmp_path: Path) -> None:
    async with http(lambda request: answer(204)) as hook, smtp() as mails:
        alerts = AlertSettings(("ops@example.org",), f"{hook.url}/alerts")
        mail = MailSettings("smtp", "weft@example.org", "127.0.0.1", mails.port)
        async with engine_on(tmp_path / "db", alerts, mail=mail) as engine:
            run = await fail(engine)

            async def both() -> bool:
                return bool(hook.seen and mails.mails)

            await eventually(both)
            await asyncio.sleep(0.2)
    (request,), (sent,) = hook.seen, mails.mails
    body = json.loads(request.body)
    assert request.headers["x-weft-signature"].startswith("v1=")
    assert request.headers["idempotency-key"] == f"alert:{body['id']}"
    assert (body["event"], body["count"]) == ("alerts", 1)
    (told,) = body["alerts"]
    assert (told["kind"], told["workflow"], told["run"], told["node"]) == ("run.failed", "pay", run, "bad")
    assert "no money" in told["error"]["message"] and told["url"].endswith(f"/runs/{run}")
    text = sent.data.decode()
    assert "1 run failed (pay)" in text and run in text and "ops@example.org" in text


async def test_many_failures_are_one_message_and_then_another(tmp_path: Path) -> None:
    clock = ManualClock()
    async with http(lambda request: answer(204)) as hook:
        alerts = AlertSettings(webhook=hook.url)
        async with engine_on(tmp_path / "db", alerts, clock) as engine:
            await fail(engine)

            async def told(count: int) -> bool:
                engine.parts.hub.alerts.set()
                return len(hook.seen) >= count

            await eventually(lambda: told(1))
            for _ in range(25):
                await fail(engine)
            clock.advance(EVERY_MS - 1)
            await asyncio.sleep(0.3)
            assert len(hook.seen) == 1
            clock.advance(1)
            await eventually(lambda: told(2))
            clock.advance(EVERY_MS)
            await asyncio.sleep(0.3)
            assert len(hook.seen) == 2
    body = json.loads(hook.seen[1].body)
    assert body["counts"] == [{"kind": "run.failed", "workflow": "pay", "count": 25}] and len(body["alerts"]) == 20


async def test_the_addresses_of_a_workflow_hear_of_it_alone(tmp_path: Path) -> None:
    async with http(lambda request: answer(204)) as hook, engine_on(tmp_path / "db", AlertSettings()) as engine:
        await fail(engine)
        run = await fail(engine, failing("other", alerts={"webhook": hook.url}))

        async def told() -> bool:
            return bool(hook.seen)

        await eventually(told)
        body = json.loads(hook.seen[0].body)
        assert [each["run"] for each in body["alerts"]] == [run] and body["count"] == 1


async def test_a_failure_that_is_caught_is_none(tmp_path: Path) -> None:
    caught = failing("caught")
    caught["blocks"]["after"] = {"type": "set", "params": {"value": 1}}
    caught["edges"].append({"source": "bad", "handle": "error", "target": "after"})
    async with engine_on(tmp_path / "db", AlertSettings(("ops@example.org",), None, None, None, "on-error")) as engine:
        view = await engine.run(caught, timeout_s=30)
        assert view.status == "succeeded"
        parent = {
            "format": "weft/1",
            "name": "parent",
            "blocks": {
                "start": {"type": "start"},
                "child": {"type": "run_workflow", "params": {"workflow": "pay"}},
            },
            "edges": [{"source": "start", "target": "child"}],
        }
        await put(engine.workflows, failing())
        failed = await engine.run(parent, timeout_s=30)
        assert failed.status == "failed"
        rows = await engine.store.read_audit()
        assert rows == []
        messages = await engine.store.claim_alert_messages(2**61, 1, 100)
        assert {message.run_id for message in messages} <= {"", failed.id}, "there is an alert about the parent alone"


async def test_a_wait_that_is_open_for_too_long(tmp_path: Path) -> None:
    clock = ManualClock()
    asking = {
        "format": "weft/1",
        "name": "ask",
        "settings": {"alerts": {"waiting_s": 60}},
        "blocks": {"start": {"type": "start"}, "ask": {"type": "approval", "params": {"title": "Pay?"}}},
        "edges": [{"source": "start", "target": "ask"}],
    }
    async with http(lambda request: answer(204)) as hook:
        alerts = AlertSettings(webhook=hook.url)
        async with engine_on(tmp_path / "db", alerts, clock) as engine:
            late = (await settled(engine, (await engine.submit(asking)).run)).id
            prompt = (await settled(engine, (await engine.submit(asking)).run)).waits[0]
            assert prompt.link is not None
            await engine.answer(prompt.link, {}, action="approve")
            clock.advance(60_000)

            async def told() -> bool:
                engine.parts.hub.alerts.set()
                return bool(hook.seen)

            await eventually(told)
    (request,) = hook.seen
    (alert,) = json.loads(request.body)["alerts"]
    assert (alert["kind"], alert["run"]) == ("run.waiting", late)


async def test_a_run_that_no_worker_begins(tmp_path: Path) -> None:
    clock = ManualClock()
    async with http(lambda request: answer(204)) as hook:
        alerts = AlertSettings(webhook=hook.url, queued_ms=30_000)
        async with engine_on(tmp_path / "db", alerts, clock) as engine:
            run = (await engine.submit(failing(pool="elsewhere"))).run
            clock.advance(30_001)

            async def told() -> bool:
                engine.parts.hub.alerts.set()
                return bool(hook.seen)

            await eventually(told)
            clock.advance(2 * EVERY_MS)
            engine.parts.hub.alerts.set()
            await asyncio.sleep(0.3)
    (request,) = hook.seen
    (alert,) = json.loads(request.body)["alerts"]
    assert (alert["kind"], alert["run"]) == ("run.queued", run)


@pytest.mark.parametrize("catch_up", ["none", "one"])
async def test_a_schedule_that_missed_its_time(tmp_path: Path, catch_up: Any) -> None:
    clock = ManualClock()
    async with http(lambda request: answer(204)) as hook:
        alerts = AlertSettings(webhook=hook.url)
        async with engine_on(tmp_path / "db", alerts, clock, work=False) as engine:
            await put(engine.workflows, handler("return 1"))
            spec = ScheduleSpec("on-error", "0 3 * * *", catch_up=catch_up)
            await engine.schedules.put("nightly", spec)
        clock.advance(DAY_MS)
        async with engine_on(tmp_path / "db", alerts, clock):

            async def told() -> bool:
                return bool(hook.seen)

            await eventually(told)
    (alert,) = json.loads(hook.seen[0].body)["alerts"]
    assert (alert["kind"], alert["workflow"], alert["item"]) == ("schedule.missed", "on-error", "nightly")


async def test_an_error_workflow_is_started_once_for_each_failed_run(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "db", AlertSettings(error_workflow="on-error")) as engine:
        await put(
            engine.workflows, handler("return {run: <input.run>, why: <input.failure.message>, at: <input.node>}")
        )
        failed = {await fail(engine) for _ in range(3)}

        async def started() -> Any:
            found = await runs_of(engine, "on-error")
            return found if len(found) >= 3 else None

        found = await eventually(started)
        outputs = [json.loads(row.output or b"{}")["result"] for row in found]
        assert {each["run"] for each in outputs} == failed
        assert all("no money" in each["why"] and each["at"] == "bad" for each in outputs)
        assert {row.idempotency_key for row in found} == {f"error:{run}" for run in failed}


async def test_the_settings_of_the_workflow_name_another(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "db", AlertSettings(error_workflow="nothing")) as engine:
        await put(engine.workflows, handler())
        await fail(engine, failing(error_workflow="on-error"))
        await eventually(lambda: runs_of(engine, "on-error"))


async def test_an_error_workflow_that_fails_starts_none(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "db", AlertSettings(error_workflow="on-error")) as engine:
        await put(engine.workflows, handler("throw new Error('again')"))
        await fail(engine)
        await eventually(lambda: runs_of(engine, "on-error"))
        await asyncio.sleep(0.5)
        assert len(await engine.store.list_runs("on-error")) == 1


async def test_an_error_workflow_that_does_not_exist_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with engine_on(tmp_path / "db", AlertSettings(error_workflow="nothing")) as engine:
        await fail(engine)

        async def said() -> bool:
            return "the error workflow nothing was abandoned" in caplog.text

        await eventually(said)


async def test_a_process_that_ends_between_start_and_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run was started, and that it was is not on disk: the next process does not start another."""
    db, clock, alerts = tmp_path / "db", ManualClock(), AlertSettings(error_workflow="on-error")
    async with engine_on(db, alerts, clock) as engine:
        await put(engine.workflows, handler())
        died = asyncio.Event()

        async def dies(*_: Any) -> bool:
            died.set()
            return False

        monkeypatch.setattr(engine.store, "record_alert_message", dies)
        await fail(engine)
        await asyncio.wait_for(died.wait(), 30)
        await put(engine.workflows, handler("return 'a newer version'"))
    clock.advance(DAY_MS)
    async with engine_on(db, alerts, clock) as engine:

        async def settled() -> bool:
            return await engine.store.next_alert_ms() is None

        await eventually(settled)
        assert len(await engine.store.list_runs("on-error")) == 1
