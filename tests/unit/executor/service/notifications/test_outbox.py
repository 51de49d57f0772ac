"""Messages about waits, sent by a real engine to real servers: what they say, that they are signed, retried, given up,
withheld when they are no longer needed, and that none of it holds up a run or shows a secret."""

from __future__ import annotations

import asyncio
import email
import email.policy
import hashlib
import hmac
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import MailSettings, Services
from executor.blocks.types.registry import Registry
from executor.errors import DatabaseUnavailable
from executor.kernel.handler.needs import NotifySettings
from executor.kernel.journal.codec import data_of
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from executor.service.notifications import sending
from executor.service.views import NotificationView, WaitView
from tests.support.clock import ManualClock
from tests.support.endpoints import Request, Server, answer, http, smtp
from tests.support.runs import ended, until_event

SECRET = b"0123456789abcdef"
LEASE_MS = 15_000
CANARY = 'c4nary-in-"the"-path'


@asynccontextmanager
async def engine_on(
    db: Path, clock: ManualClock | None = None, *, work: bool = True, lease_ms: int = LEASE_MS, **services: Any
) -> AsyncIterator[Engine]:
    sandbox = Sandbox(threads=1)
    given = Services(sandbox=sandbox, http=GuardedClient(allow_private=("127.0.0.1",)), **services)
    engine = await Engine.open(
        SQLiteStore(db),
        registry=Registry.load(sandbox=sandbox),
        services=given,
        secret=SECRET,
        clock=clock,
        work=work,
        lease_ms=lease_ms,
    )
    try:
        yield engine
    finally:
        await engine.close(grace_s=1)


def asking(type: str = "approval", **params: Any) -> dict[str, Any]:
    blocks = {"start": {"type": "start"}, "ask": {"type": type, "name": "Boss", "params": params}}
    return {"format": "weft/1", "name": "pay", "blocks": blocks, "edges": [{"source": "start", "target": "ask"}]}


async def waiting(engine: Engine, document: dict[str, Any]) -> WaitView:
    run = (await engine.submit(document)).run
    view = await engine.wait_finished(run, 30)
    assert view.status == "waiting", view.error
    (wait,) = view.waits
    return wait


async def settled(engine: Engine, wait: WaitView, until: Callable[[NotificationView], bool] | None = None) -> Any:
    """The messages of the wait, once all of them are."""
    wanted = until or (lambda told: told.status != "pending")
    async with asyncio.timeout(30):
        while True:
            told = (await engine.waits.get(wait.run, wait.id)).notifications
            if told and all(wanted(one) for one in told):
                return told
            await asyncio.sleep(0.01)


def signature(request: Request, what: str = "notifications") -> str:
    key = hmac.new(SECRET, what.encode(), hashlib.sha256).digest()
    signed = request.headers["x-weft-timestamp"].encode() + b"." + request.body
    return "v1=" + hmac.new(key, signed, hashlib.sha256).hexdigest()


async def test_a_webhook_gets_a_signed_message(tmp_path: Path) -> None:
    async with http(lambda request: answer(204)) as server, engine_on(tmp_path / "db") as engine:
        hook = f"{server.url}/hook?key=1"
        wait = await waiting(engine, asking(title="Pay 5?", expires_in_s=60, notify={"webhook": hook}))
        (told,) = await settled(engine, wait)
    assert (told.channel, told.to, told.status, told.attempts, told.error) == ("webhook", server.url, "sent", 1, None)
    (request,) = server.seen
    assert (request.method, request.target) == ("POST", "/hook?key=1")
    assert request.headers["x-weft-signature"] == signature(request)
    assert request.headers["idempotency-key"] == f"{wait.run}:{wait.id}"
    assert json.loads(request.body) == {
        "event": "wait.opened",
        "run": wait.run,
        "workflow": "pay",
        "wait": wait.id,
        "kind": "approval",
        "block": "Boss",
        "title": "Pay 5?",
        "link": wait.link,
        "actions": ["approve", "reject"],
        "opened_at": wait.opened_at_ms,
        "expires_at": wait.expires_at_ms,
    }


async def test_a_mail_shows_what_is_asked_and_the_link(tmp_path: Path) -> None:
    async with smtp() as server:
        mail = MailSettings("smtp", "weft@example.org", "127.0.0.1", server.port)
        async with engine_on(tmp_path / "db", mail=mail) as engine:
            shown = {"invoice": "INV-1", "lines": [1, 2]}
            params: dict[str, Any] = {"title": "Pay\n5 EUR?", "text": "It is late.", "show": shown}
            wait = await waiting(engine, asking(**params, notify={"email": ["Ada <ada@example.org>", "bob@b.org"]}))
            (told,) = await settled(engine, wait)
    assert (told.status, told.to) == ("sent", "Ada <ada@example.org>, bob@b.org")
    (sent,) = server.mails
    assert (sent.sender, sent.recipients) == ("weft@example.org", ["ada@example.org", "bob@b.org"])
    message = email.message_from_bytes(sent.data, policy=email.policy.default)
    assert message["Subject"] == "Pay 5 EUR? (pay)"
    text = message.get_content()
    for line in ("It is late.", "invoice: INV-1", "lines: [1,2]", wait.link, "approve, reject", wait.run):
        assert line and line in text.replace("\r\n", "\n"), line


async def test_without_a_mail_server_it_is_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "executor.blocks.types.email"):
        env = {"WEFT_BASE_URL": "http://127.0.0.1:8765", "KEY": "what-is-asked"}
        notify = NotifySettings(email=("ops@example.org",))
        async with engine_on(tmp_path / "db", notify=notify, env=env) as engine:
            wait = await waiting(engine, asking("form", text="${KEY}", fields={"properties": {"a": {}}}))
            (told,) = await settled(engine, wait)
    assert (told.status, told.to) == ("sent", "ops@example.org")
    assert wait.link and wait.link in caplog.text and "To: ops@example.org" in caplog.text
    assert "what-is-asked" not in caplog.text


async def test_the_server_hears_of_waits_for_people_only(tmp_path: Path) -> None:
    async with http(lambda request: answer(200)) as server:
        notify = NotifySettings(webhook=f"{server.url}/all")
        async with engine_on(tmp_path / "db", notify=notify) as engine:
            first = await waiting(engine, asking(notify={"webhook": f"{server.url}/own"}))
            told = await settled(engine, first)
            assert [(one.channel, one.status) for one in told] == [("webhook", "sent")] * 2
            for document in (asking("signal", name="go"), asking("wait", seconds=60), asking("callback")):
                other = await waiting(engine, document)
                assert other.notifications == ()
    assert sorted(request.target for request in server.seen) == ["/all", "/own"]


async def test_a_callback_sends_its_address_and_takes_the_answer(tmp_path: Path) -> None:
    async with http(lambda request: answer(202)) as server, engine_on(tmp_path / "db") as engine:
        send = {
            "url": f"{server.url}/jobs",
            "method": "PUT",
            "headers": {"X-Team": "film"},
            "body": {"job": "<start.job>"},
        }
        run = (await engine.submit(asking("callback", send=send), input={"job": 7})).run
        (wait,) = (await engine.wait_finished(run, 30)).waits
        await settled(engine, wait)
        (request,) = server.seen
        assert (request.method, request.target, request.headers["x-team"]) == ("PUT", "/jobs", "film")
        assert request.headers["idempotency-key"] == f"{run}:{wait.id}"
        # B23: its author wrote the body, so it must not pass for what the server says.
        assert request.headers["x-weft-signature"] == signature(request, "requests") != signature(request)
        body = json.loads(request.body)
        assert body == {"job": 7, "callback_url": wait.link} and "/callbacks/" in body["callback_url"]
        await engine.callbacks.receive(body["callback_url"].rpartition("/")[2], {"frames": 10}, {"user-agent": "r"})
        async for _ in engine.follow(run):
            pass
        assert (await engine.runs.view(run)).output["body"] == {"frames": 10}


async def test_data_that_is_no_object_goes_beside_the_address(tmp_path: Path) -> None:
    async with http(lambda request: answer(202)) as server, engine_on(tmp_path / "db") as engine:
        wait = await waiting(engine, asking("callback", send={"url": server.url, "body": [1, 2]}))
        await settled(engine, wait)
    assert json.loads(server.seen[0].body) == {
        "callback_url": wait.link,
        "run": wait.run,
        "wait": wait.id,
        "data": [1, 2],
    }


async def test_it_is_tried_again_with_pauses_and_the_same_key(tmp_path: Path) -> None:
    clock = ManualClock()
    replies = [answer(503), answer(429), answer(200)]
    async with http(lambda request: replies.pop(0)) as server, engine_on(tmp_path / "db", clock) as engine:
        wait = await waiting(engine, asking(notify={"webhook": server.url}))
        for attempt, status in ((1, 503), (2, 429)):
            said = f"{server.url} answered {status}"
            (told,) = await settled(engine, wait, lambda one, said=said: one.error == said)  # type: ignore[misc]
            assert (told.status, told.attempts) == ("pending", attempt)
            assert told.due_at_ms is not None and told.due_at_ms > clock.now_ms()
            clock.advance(told.due_at_ms - clock.now_ms())
        (told,) = await settled(engine, wait)
        assert (told.status, told.attempts, told.error) == ("sent", 3, None)
    assert len({request.headers["idempotency-key"] for request in server.seen}) == 1


async def test_it_stops_after_the_last_try_and_the_run_is_not_affected(tmp_path: Path) -> None:
    clock = ManualClock()
    async with http(lambda request: answer(500)) as server, engine_on(tmp_path / "db", clock) as engine:
        wait = await waiting(engine, asking(notify={"webhook": server.url}))
        async with asyncio.timeout(60):
            while (told := (await engine.waits.get(wait.run, wait.id)).notifications[0]).status == "pending":
                pause_ms = (told.due_at_ms or 0) - clock.now_ms()
                # While it is being sent, it is due when its claim is over: past that it would be sent once more.
                if told.error and pause_ms != LEASE_MS:
                    clock.advance(max(0, pause_ms))
                await asyncio.sleep(0.01)
        assert (told.status, told.attempts, len(server.seen)) == ("failed", sending.ATTEMPTS_MAX, sending.ATTEMPTS_MAX)
        assert told.error == f"{server.url} answered 500"
        assert wait.link
        await engine.answer(wait.link.rpartition("/")[2], {}, action="approve")
        async for _ in engine.follow(wait.run):
            pass
        assert (await engine.runs.view(wait.run)).status == "succeeded"


async def opened(engine: Engine, run: str) -> dict[str, Any]:
    (record,) = [one for one in await engine.store.read_events(run) if one.type == "wait.opened"]
    return data_of(record)


REMINDED: dict[str, Any] = {"expires_in_s": 3600, "remind_before_s": 600}


async def test_the_same_people_are_reminded_once_before_it_expires(tmp_path: Path) -> None:
    clock, notify = ManualClock(), NotifySettings(email=("ops@example.org",))
    async with http(lambda request: answer(204)) as server, smtp() as mails:
        given: dict[str, Any] = {
            "mail": MailSettings("smtp", "weft@example.org", "127.0.0.1", mails.port),
            "notify": notify,
        }
        async with engine_on(tmp_path / "db", clock, **given) as engine:
            wait = await waiting(engine, asking(title="Pay 5?", notify={"webhook": server.url}, **REMINDED))
            assert wait.expires_at_ms
            remind_ms = wait.expires_at_ms - 600_000
            assert (await opened(engine, wait.run))["remind_ms"] == remind_ms
            first = await settled(engine, wait, lambda one: one.reminder or one.status == "sent")
            assert [(one.channel, one.reminder, one.status) for one in first] == [
                ("webhook", False, "sent"),
                ("email", False, "sent"),
                ("webhook", True, "pending"),
                ("email", True, "pending"),
            ]
            assert {one.due_at_ms for one in first if one.reminder} == {remind_ms}
            clock.advance(remind_ms - clock.now_ms() - 1)
            await asyncio.sleep(0.1)  # time to send, if it were due
            assert (len(server.seen), len(mails.mails)) == (1, 1)
            clock.advance(1)
            await settled(engine, wait)
            clock.advance(300_000)
            await asyncio.sleep(0.1)  # time to send it again, if it were not the only one
    asked, reminder = server.seen
    assert json.loads(reminder.body) == {**json.loads(asked.body), "event": "wait.reminder"}
    assert reminder.headers["x-weft-signature"] == signature(reminder)
    assert reminder.headers["idempotency-key"] == f"{wait.run}:{wait.id}:reminder"
    subjects = [email.message_from_bytes(one.data, policy=email.policy.default)["Subject"] for one in mails.mails]
    assert subjects == ["Pay 5? (pay)", "Reminder: Pay 5? (pay)"]
    assert len({email.message_from_bytes(one.data)["Message-ID"] for one in mails.mails}) == 2


@pytest.mark.parametrize("how", ["answered", "cancelled", "run"])
async def test_no_reminder_of_a_wait_that_is_over(tmp_path: Path, how: str) -> None:
    clock = ManualClock()
    async with http(lambda request: answer(204)) as server, engine_on(tmp_path / "db", clock) as engine:
        wait = await waiting(engine, asking(notify={"webhook": server.url}, **REMINDED))
        await settled(engine, wait, lambda one: one.reminder or one.status == "sent")
        if how == "answered":
            await engine.answer(wait.link, {}, action="approve")
        elif how == "cancelled":
            await engine.waits.cancel(wait.run, wait.id)
        else:
            await engine.runs.cancel(wait.run)
        await ended(engine, wait.run)
        told = (await engine.waits.get(wait.run, wait.id)).notifications
        assert [(one.reminder, one.status) for one in told] == [(False, "sent"), (True, "cancelled")]
        clock.advance(3_000_000)
        async with asyncio.timeout(30):
            while await engine.parts.store.next_notification_ms() is not None:
                await asyncio.sleep(0.01)
    assert len(server.seen) == 1


async def test_one_of_several_processes_reminds_after_a_restart(tmp_path: Path) -> None:
    clock = ManualClock()
    async with http(lambda request: answer(204)) as server:
        async with engine_on(tmp_path / "db", clock) as engine:
            wait = await waiting(engine, asking(notify={"webhook": server.url}, **REMINDED))
            await settled(engine, wait, lambda one: one.reminder or one.status == "sent")
        clock.advance(3_100_000)
        async with engine_on(tmp_path / "db", clock) as engine, engine_on(tmp_path / "db", clock):
            told = await settled(engine, wait)
            assert [(one.reminder, one.status, one.attempts) for one in told] == [(False, "sent", 1), (True, "sent", 1)]
    assert len(server.seen) == 2


async def test_no_reminder_when_it_expired_while_no_process_ran(tmp_path: Path) -> None:
    """The sender may look before the run has been expired."""
    clock = ManualClock()
    async with http(lambda request: answer(204)) as server:
        async with engine_on(tmp_path / "db", clock) as engine:
            wait = await waiting(engine, asking(notify={"webhook": server.url}, **REMINDED))
            await settled(engine, wait, lambda one: one.reminder or one.status == "sent")
        clock.advance(3_600_000)
        async with engine_on(tmp_path / "db", clock, work=False) as engine:
            assert (await engine.waits.get(wait.run, wait.id)).status == "pending", "no worker has expired it"
            engine.notifications.start()
            assert [one.status for one in await settled(engine, wait)] == ["sent", "cancelled"]
    assert len(server.seen) == 1


async def test_a_fork_reminds_of_nothing(tmp_path: Path) -> None:
    clock = ManualClock()
    async with http(lambda request: answer(204)) as server, engine_on(tmp_path / "db", clock) as engine:
        wait = await waiting(engine, asking(notify={"webhook": server.url}, **REMINDED))
        fork = (await engine.lifecycle.fork(wait.run, await until_event(engine, wait.run, "wait.opened"))).run
        (copy,) = (await engine.wait_finished(fork, 30)).waits
        assert (copy.id, copy.notifications) == (wait.id, ())
        assert "remind_ms" in await opened(engine, wait.run)
        assert "remind_ms" not in await opened(engine, fork)


@pytest.mark.parametrize("status", [400, 404, 410])
async def test_what_will_never_work_is_not_tried_again(tmp_path: Path, status: int) -> None:
    async with http(lambda request: answer(status)) as server, engine_on(tmp_path / "db") as engine:
        wait = await waiting(engine, asking(notify={"webhook": server.url}))
        (told,) = await settled(engine, wait)
    assert (told.status, told.attempts, len(server.seen)) == ("failed", 1, 1)


async def test_private_addresses_get_no_message(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "db") as engine:
        wait = await waiting(engine, asking(notify={"webhook": "http://169.254.169.254/latest/meta-data/iam"}))
        (told,) = await settled(engine, wait)
    assert told.status == "failed" and told.error and "meta-data" not in told.error


async def test_no_message_about_a_question_that_was_answered(tmp_path: Path) -> None:
    """The receiver was down; by the time it is back the wait has been answered."""
    clock = ManualClock()
    async with http(lambda request: answer(503)) as server, engine_on(tmp_path / "db", clock) as engine:
        wait = await waiting(engine, asking(notify={"webhook": server.url}))
        await settled(engine, wait, lambda one: one.error is not None)
        assert wait.link
        await engine.answer(wait.link.rpartition("/")[2], {}, action="approve")
        clock.advance(10_000)
        (told,) = await settled(engine, wait)
        assert told.status == "cancelled"
    assert len(server.seen) == 1


async def test_a_wait_that_is_answered_as_its_message_is_claimed_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with http(lambda request: answer(200)) as server, engine_on(tmp_path / "db") as engine:
        get = engine.waits.get

        asked: asyncio.Future[WaitView] = asyncio.get_running_loop().create_future()

        async def answered_first(run: str, id: str) -> WaitView:
            monkeypatch.undo()
            wait = await get(run, id)
            asked.set_result(wait)
            assert wait.link
            await engine.answer(wait.link.rpartition("/")[2], {}, action="approve")
            return await get(run, id)

        monkeypatch.setattr(engine.waits, "get", answered_first)
        await engine.submit(asking(notify={"webhook": server.url}))
        async with asyncio.timeout(30):
            wait = await asked
        (told,) = await settled(engine, wait)
    assert (told.status, told.error, server.seen) == ("cancelled", None, [])
    assert "given up" not in caplog.text


class Hangs:
    """Answers nothing to the first request."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def __call__(self, request: Request) -> bytes:
        if not self.asked.is_set():
            self.asked.set()
            await asyncio.sleep(60)
        return answer(200)


async def test_a_process_that_died_leaves_its_messages_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, hangs = ManualClock(), Hangs()
    async with http(hangs) as server:
        async with engine_on(tmp_path / "db", clock) as engine:
            wait = await waiting(engine, asking(notify={"webhook": server.url}))
            await asyncio.wait_for(hangs.asked.wait(), 30)
            monkeypatch.setattr(engine.notifications, "_held", set())  # it hands nothing over
        async with engine_on(tmp_path / "db", clock) as engine:
            await asyncio.sleep(0.05)
            assert len(server.seen) == 1, "it is not known yet whether it was sent"
            clock.advance(LEASE_MS)
            (told,) = await settled(engine, wait)
            assert (told.status, told.attempts) == ("sent", 2)
    assert len(server.seen) == 2


async def test_a_process_that_stops_hands_over_what_it_sends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "STOP_S", 0.05)
    clock, hangs = ManualClock(), Hangs()
    async with http(hangs) as server:
        async with engine_on(tmp_path / "db", clock) as engine:
            wait = await waiting(engine, asking(notify={"webhook": server.url}))
            await asyncio.wait_for(hangs.asked.wait(), 30)
        async with engine_on(tmp_path / "db", clock) as engine:
            (told,) = await settled(engine, wait)
            assert (told.status, told.attempts) == ("sent", 2), "the first may have arrived"
    assert len({request.headers["idempotency-key"] for request in server.seen}) == 1


async def test_what_was_not_sent_before_a_stop_was_no_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, looked = ManualClock(), asyncio.Event()

    async def never(run: str, id: str) -> WaitView:
        looked.set()
        await asyncio.sleep(60)
        raise AssertionError

    async with http(lambda request: answer(200)) as server:
        async with engine_on(tmp_path / "db", clock) as engine:
            run = (await engine.submit(asking(notify={"webhook": server.url}))).run
            with monkeypatch.context() as patch:
                patch.setattr(engine.waits, "get", never)
                await asyncio.wait_for(looked.wait(), 30)
            await engine.notifications.stop(0.05)
            (wait,) = await engine.waits.list(run=run)
            assert [(told.status, told.attempts) for told in wait.notifications] == [("pending", 0)]
        async with engine_on(tmp_path / "db", clock) as engine:
            (told,) = await settled(engine, wait)
            assert (told.status, told.attempts) == ("sent", 1)


async def test_a_receiver_may_take_longer_than_a_lease(tmp_path: Path) -> None:
    """The claim is renewed meanwhile, so a second process does not send it as well."""

    async def slow(request: Request) -> bytes:
        await asyncio.sleep(1.5)
        return answer(200)

    async with (
        http(slow) as server,
        engine_on(tmp_path / "db", lease_ms=300) as engine,
        engine_on(tmp_path / "db", lease_ms=300),
    ):
        wait = await waiting(engine, asking(notify={"webhook": server.url}))
        (told,) = await settled(engine, wait)
        assert (told.status, told.attempts, len(server.seen)) == ("sent", 1, 1)


async def test_a_process_that_stood_still_does_not_send_what_another_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = Hangs()
    async with http(hangs) as server, engine_on(tmp_path / "db", lease_ms=600_000) as engine:
        wait = await waiting(engine, asking(notify={"webhook": server.url}))
        await asyncio.wait_for(hangs.asked.wait(), 30)
        (row,) = await engine.store.claim_notifications(2**50, 1, 1)
        assert row.attempts == 2
        (claim,) = engine.notifications._held
        await engine.notifications._renew()
        assert claim.task is not None
        await asyncio.wait([claim.task], timeout=30)
        assert claim.task.cancelled() and not engine.notifications._held
        (told,) = (await engine.waits.get(wait.run, wait.id)).notifications
        assert (told.status, told.attempts) == ("pending", 2)


async def test_an_outcome_that_the_database_did_not_take_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with http(lambda request: answer(200)) as server, engine_on(tmp_path / "db", lease_ms=600_000) as engine:
        settle, failed = engine.store.record_notification, asyncio.Event()

        async def fails_once(*arguments: Any) -> Any:
            if not failed.is_set():
                failed.set()
                raise DatabaseUnavailable("the disk is away")
            return await settle(*arguments)

        monkeypatch.setattr(engine.store, "record_notification", fails_once)
        wait = await waiting(engine, asking(notify={"webhook": server.url}))
        (told,) = await settled(engine, wait)
        assert (told.status, told.attempts, len(server.seen)) == ("sent", 1, 1)


async def test_two_processes_send_it_once(tmp_path: Path) -> None:
    async with (
        http(lambda request: answer(200)) as server,
        engine_on(tmp_path / "db") as engine,
        engine_on(tmp_path / "db") as other,
    ):
        waits = [await waiting(engine, asking(notify={"webhook": f"{server.url}/{n}"})) for n in range(20)]
        other.notifications._task.wake.set()
        for wait in waits:
            await settled(engine, wait)
    assert sorted(request.target for request in server.seen) == sorted(f"/{n}" for n in range(20))


async def test_a_slow_receiver_delays_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "REQUEST_S", 600.0)

    async def slow(request: Request) -> bytes:
        await asyncio.sleep(600)
        return answer(200)

    async with http(slow) as hole, http(lambda request: answer(200)) as server, engine_on(tmp_path / "db") as engine:
        await waiting(engine, asking(notify={"webhook": hole.url}))
        wait = await waiting(engine, asking(notify={"webhook": server.url}))
        (told,) = await settled(engine, wait)
        assert told.status == "sent"


async def test_no_secret_is_stored_or_shown_and_yet_it_arrives(tmp_path: Path) -> None:
    from urllib.parse import quote

    env = {"HOOK": quote(CANARY), "KEY": "another-c4nary-4711"}

    def told_of(server: Server) -> dict[str, Any]:
        return asking(
            "callback", send={"url": server.url + "/${HOOK}", "headers": {"X-Key": "${KEY}"}, "body": {"k": "${KEY}"}}
        )

    async with (
        http(lambda request: answer(200)) as server,
        http(lambda request: answer(404)) as refusing,
        engine_on(tmp_path / "db", env=env, secrets=frozenset(env)) as engine,
    ):
        waits = [await waiting(engine, told_of(server)), await waiting(engine, told_of(refusing))]
        shown = [str(await settled(engine, wait)) for wait in waits]
        token = engine.parts.links.token(waits[0].run, waits[0].id, "callback")
        await engine.callbacks.receive(token, {"echo": env["KEY"]}, {"x-request-id": env["KEY"]})
        async for _ in engine.follow(waits[0].run):
            pass
        shown.append(str((await engine.runs.view(waits[0].run)).output))
    (request,) = server.seen
    assert request.target == f"/{quote(CANARY)}"
    assert (request.headers["x-key"], json.loads(request.body)["k"]) == (env["KEY"], env["KEY"])
    assert "[redacted]" in shown[2]
    for text in shown:
        assert "c4nary" not in text
    for file in tmp_path.iterdir():
        assert b"c4nary" not in file.read_bytes(), file


async def test_the_outbox_survives_a_restart_without_a_worker(tmp_path: Path) -> None:
    """A front that does not work only writes; what it wrote is sent by who works."""
    async with http(lambda request: answer(200)) as server:
        async with engine_on(tmp_path / "db", notify=NotifySettings()) as engine:
            await engine.notifications.stop()
            wait = await waiting(engine, asking(notify={"webhook": server.url}))
            assert wait.notifications == () or wait.notifications[0].status == "pending"
        with closing(sqlite3.connect(tmp_path / "db")) as db, db:
            assert db.execute("SELECT status, attempts FROM notifications").fetchall() == [("pending", 0)]
        async with engine_on(tmp_path / "db") as engine:
            (told,) = await settled(engine, wait)
            assert told.status == "sent"
    assert len(server.seen) == 1


def test_pauses_grow_to_an_hour() -> None:
    pauses = [sending.back_off_ms(attempt, 0.5) for attempt in range(1, sending.ATTEMPTS_MAX)]
    assert pauses == [5_000, 20_000, 80_000, 320_000, 1_280_000, 3_600_000, 3_600_000]
    assert sending.back_off_ms(1, 0) == 4_500 and sending.back_off_ms(1, 1) == 5_500


@pytest.mark.parametrize("error", [DatabaseUnavailable("the disk is away"), RuntimeError("a bug")], ids=type)
async def test_what_goes_wrong_once_does_not_end_the_outbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(sending, "IDLE_MAX_S", 0.01)
    async with http(lambda request: answer(200)) as server, engine_on(tmp_path / "db") as engine:
        claim, failed = engine.store.claim_notifications, asyncio.Event()

        async def fails_once(*arguments: Any) -> Any:
            if not failed.is_set():
                failed.set()
                raise error
            return await claim(*arguments)

        monkeypatch.setattr(engine.store, "claim_notifications", fails_once)
        async with asyncio.timeout(60):
            await failed.wait()
        wait = await waiting(engine, asking(notify={"webhook": server.url}))
        assert (await settled(engine, wait))[0].status == "sent"
