"""Schedules and webhooks: one moment starts one run, one delivery starts one run, and a version brings its triggers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from executor.errors import Fenced
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.hooks import HookChange
from executor.kernel.store.topics.schedules import FIRES_KEPT, Fire, Fired, FireRow, Poll, ScheduleRow
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.webhooks import DELIVERIES_KEPT, DELIVERY_KEPT_MS, DeliveryRow, RefusalRow, WebhookRow
from executor.kernel.store.topics.workflows import Declared
from tests.support.rows import T0, finish, new_run, row

HOUR = 3_600_000
TIMES = ("0 * * * *", "UTC")


def schedule(id: str = "s1", **fields: Any) -> ScheduleRow:
    given: dict[str, Any] = {
        "workflow": "expense",
        "version": None,
        "trigger": None,
        "cron": TIMES[0],
        "tz": TIMES[1],
        "input": b'{"amount":5}',
        "enabled": True,
        "declared": None,
        "overlap": "skip",
        "catch_up": "one",
        "origin": "api",
        "next_run_at_ms": T0 + HOUR,
        "created_at_ms": T0,
        "updated_at_ms": T0,
    }
    return ScheduleRow(id, **{**given, **fields})


def webhook(id: str = "h1", **fields: Any) -> WebhookRow:
    given: dict[str, Any] = {
        "workflow": "expense",
        "version": None,
        "trigger": None,
        "auth": "hmac",
        "secret_env": None,
        "generation": 1,
        "respond": "immediate",
        "timeout_ms": 30_000,
        "headers": b"[]",
        "enabled": True,
        "declared": None,
        "origin": "api",
        "created_at_ms": T0,
        "updated_at_ms": T0,
    }
    return WebhookRow(id, **{**given, **fields})


def due(run: str | None = "run-1", at_ms: int = T0 + HOUR, next_ms: int | None = T0 + 2 * HOUR, **fields: Any) -> Fire:
    given: dict[str, Any] = {
        "expects": "due",
        "expected_ms": at_ms,
        "next_run_at_ms": next_ms,
        "due_ms": at_ms,
        "now_ms": at_ms + 7,
        "overlap": "skip",
        "run": None if run is None else new_run(run, at_ms + 7, idempotency_key=f"cron:s1:{at_ms}"),
    }
    return Fire("s1", **{**given, **fields})


async def got(store: Store, id: str = "s1") -> ScheduleRow:
    found = await store.get_schedule(id)
    assert found is not None
    return found


# --- rows ---


async def test_a_schedule_comes_back_as_it_went_in(store: Store) -> None:
    wanted = schedule(version=3, trigger="nightly", declared=True, origin="document", overlap="queue", catch_up="all")
    assert await store.put_schedule(wanted) == wanted == await store.get_schedule("s1")
    assert await store.get_schedule("s2") is None
    other = await store.put_schedule(schedule("s0", workflow="other"))
    assert await store.list_schedules() == [other, wanted]
    assert await store.list_schedules("expense") == [wanted]
    assert await store.delete_schedule("s1") is True
    assert await store.delete_schedule("s1") is False
    assert await store.list_schedules("expense") == []


async def test_a_webhook_comes_back_as_it_went_in(store: Store) -> None:
    wanted = webhook(version=3, trigger="hook", declared=False, enabled=False, origin="document", secret_env="KEY")
    assert await store.put_webhook(wanted) == wanted == await store.get_webhook("h1")
    other = await store.put_webhook(webhook("h0", workflow="other"))
    assert await store.list_webhooks() == [other, wanted]
    assert await store.list_webhooks("expense") == [wanted]
    assert await store.delete_webhook("h1") is True
    assert await store.delete_webhook("h1") is False
    assert await store.get_webhook("h1") is None


async def test_what_happened_outlives_a_change(store: Store) -> None:
    await store.put_schedule(schedule())
    await store.fire(due())
    changed = await store.put_schedule(schedule(input=b"{}", created_at_ms=T0 + 9, next_run_at_ms=T0 + 9 * HOUR))
    assert (changed.input, changed.created_at_ms, changed.last_run_id) == (b"{}", T0, "run-1")
    assert changed.next_run_at_ms == T0 + 2 * HOUR, "the times are the same: the moment that is due stays due"
    moved = await store.put_schedule(schedule(cron="30 * * * *", next_run_at_ms=T0 + 9 * HOUR))
    assert moved.next_run_at_ms == T0 + 9 * HOUR

    await store.put_webhook(webhook())
    assert await store.rotate_webhook("h1", 2, T0 + 1) == replace(webhook(), generation=2, updated_at_ms=T0 + 1)
    assert (await store.put_webhook(webhook(auth="token"))).generation == 2
    assert await store.rotate_webhook("none", 2, T0) is None


async def test_switching_off_and_on(store: Store) -> None:
    await store.put_schedule(schedule(queued_at_ms=T0))
    off = await store.switch_schedule("s1", False, None, T0 + 1, TIMES)
    assert off is not None and (off.enabled, off.next_run_at_ms, off.queued_at_ms) == (False, None, None)
    assert await store.next_schedule_ms() == (None, False)
    assert await store.due_schedules(T0 + 9 * HOUR, 10) == []
    on = await store.switch_schedule("s1", True, T0 + 5 * HOUR, T0 + 2, TIMES)
    assert on is not None and (on.enabled, on.next_run_at_ms, on.updated_at_ms) == (True, T0 + 5 * HOUR, T0 + 2)
    assert await store.switch_schedule("none", True, T0, T0, TIMES) is None
    await store.put_webhook(webhook())
    hook = await store.switch_webhook("h1", False, T0 + 1)
    assert hook is not None and not hook.enabled and hook == await store.get_webhook("h1")
    assert await store.switch_webhook("none", True, T0) is None


async def test_switching_on_keeps_the_moment_that_is_there(store: Store) -> None:
    """Two ask for it, and the slower one's moment has been dealt with by now: it does not come again."""
    await store.put_schedule(schedule(next_run_at_ms=T0 + 2 * HOUR))
    on = await store.switch_schedule("s1", True, T0 + HOUR, T0, TIMES)
    assert on is not None and (on.enabled, on.next_run_at_ms) == (True, T0 + 2 * HOUR)
    await store.put_schedule(schedule(next_run_at_ms=T0 + 2 * HOUR, error="no zone"))
    assert await store.fire(due(None, T0 + 2 * HOUR, None, error="no zone")) == Fired("failed")
    fixed = await store.switch_schedule("s1", True, T0 + 5 * HOUR, T0, TIMES)
    assert fixed is not None and fixed.next_run_at_ms == T0 + 5 * HOUR


async def test_a_moment_of_other_times_switches_nothing_on(store: Store) -> None:
    was = await store.put_schedule(schedule(enabled=False, next_run_at_ms=None, cron="30 * * * *"))
    assert await store.switch_schedule("s1", True, T0 + HOUR, T0, TIMES) == was == await got(store)
    assert await store.switch_schedule("s1", True, T0 + HOUR, T0, ("30 * * * *", "Asia/Tokyo")) == was
    off = await store.switch_schedule("s1", False, None, T0 + 1, TIMES)
    assert off is not None and off.updated_at_ms == T0 + 1, "without a moment no times matter"


# --- the triggers of a document ---


async def test_a_version_brings_its_triggers_and_takes_those_that_are_gone(store: Store) -> None:
    mine = {"origin": "document", "declared": True, "workflow": "w"}
    first = Declared((schedule("w:a", **mine), schedule("w:b", **mine)), (webhook("w:c", **mine),))
    await store.put_schedule(schedule("api-made", workflow="w"))
    await store.put_schedule(schedule("x:a", **{**mine, "workflow": "x"}))
    await store.put_workflow("w", b"1", "hash-1", T0, first)
    assert [(s.id, s.version) for s in await store.list_schedules("w")] == [
        ("api-made", None),
        ("w:a", 1),
        ("w:b", 1),
    ]
    assert [(h.id, h.version) for h in await store.list_webhooks("w")] == [("w:c", 1)]
    await store.put_workflow("w", b"2", "hash-2", T0, Declared((schedule("w:b", **mine),)))
    assert [(s.id, s.version) for s in await store.list_schedules("w")] == [("api-made", None), ("w:b", 2)]
    assert await store.list_webhooks("w") == []
    assert len(await store.list_schedules("x")) == 1
    # An old document again is the old version, which is active again and has its triggers back.
    assert (await store.put_workflow("w", b"1", "hash-1", T0, first)).row.version == 1
    old = [("api-made", None), ("w:a", 1), ("w:b", 1)]
    assert [(s.id, s.version) for s in await store.list_schedules("w")] == old
    assert [(h.id, h.version) for h in await store.list_webhooks("w")] == [("w:c", 1)]
    await store.put_workflow("w", b"3", "hash-3", T0)
    assert [s.id for s in await store.list_schedules("w")] == ["api-made", "w:a", "w:b"]
    assert await store.activate_workflow("w", 2, T0, Declared((schedule("w:b", **mine),))) is not None
    assert [(s.id, s.version) for s in await store.list_schedules("w")] == [("api-made", None), ("w:b", 2)]
    assert await store.list_webhooks("w") == []


async def test_what_people_switched_stays_until_the_document_says_otherwise(store: Store) -> None:
    mine = {"origin": "document", "workflow": "w"}

    async def save(hash: str, declared: bool, **fields: Any) -> tuple[bool, int | None, bool]:
        row = schedule("w:a", **mine, declared=declared, enabled=declared, **fields)
        hook = webhook("w:h", **mine, declared=declared, enabled=declared)
        await store.put_workflow("w", b"", hash, T0, Declared((row,), (hook,)))
        now, now_hook = await got(store, "w:a"), await store.get_webhook("w:h")
        assert now_hook is not None
        return now.enabled, now.next_run_at_ms, now_hook.enabled

    assert await save("1", True) == (True, T0 + HOUR, True)
    await store.switch_schedule("w:a", False, None, T0, TIMES)
    await store.switch_webhook("w:h", False, T0)
    assert await save("2", True, cron="5 * * * *") == (False, None, False)
    assert await save("3", False) == (False, None, False)
    assert await save("4", True) == (True, T0 + HOUR, True)


# --- moments ---


async def test_a_moment_starts_a_run_and_moves_on(store: Store) -> None:
    await store.put_schedule(schedule(error="it did not compile"))
    assert await store.next_schedule_ms() == (T0 + HOUR, False)
    assert await store.due_schedules(T0 + HOUR - 1, 10) == []
    assert [found.id for found in await store.due_schedules(T0 + HOUR, 10)] == ["s1"]
    fired = await store.fire(due())
    assert fired == Fired("started", await store.get_run("run-1"))
    now = await got(store)
    assert (now.next_run_at_ms, now.last_run_at_ms, now.last_run_id) == (T0 + 2 * HOUR, T0 + HOUR + 7, "run-1")
    assert now.error is None
    assert await store.list_fires("s1") == [FireRow(T0 + HOUR, T0 + HOUR + 7, "started", "run-1")]
    assert (await row(store, "run-1")).next_run_at_ms == T0 + HOUR + 7
    assert (await store.read_events("run-1"))[0].type == "run.started"


async def test_a_poll_starts_its_runs_and_moves_its_state(store: Store) -> None:
    await store.put_schedule(schedule(poll=b"null", error="it did not answer"))
    assert await store.claim_poll("s1", T0 + HOUR, T0 + 2 * HOUR)
    assert not await store.claim_poll("s1", T0 + HOUR, T0 + 3 * HOUR)
    assert (await got(store)).error == "it did not answer"
    runs = (new_run("run-1", T0, "w", idempotency_key="a"), new_run("run-2", T0, "w", idempotency_key="b"))
    poll = Poll("s1", T0 + 2 * HOUR, T0 + 3 * HOUR, T0 + HOUR, runs, b"[1]", None, ("too large",))
    assert await store.record_poll(replace(poll, expected_ms=T0 + HOUR)) is None
    assert await store.list_runs() == []
    assert [run.id for run in await store.record_poll(poll) or ()] == ["run-1", "run-2"]
    now = await got(store)
    assert (now.poll, now.error, now.next_run_at_ms, now.last_run_id) == (b"[1]", None, T0 + 3 * HOUR, "run-2")
    assert [fire.outcome for fire in await store.list_fires("s1")] == ["failed", "started", "started"]
    again = replace(poll, expected_ms=T0 + 3 * HOUR, runs=(new_run("run-3", T0, "w", idempotency_key="a"),), state=None)
    assert await store.record_poll(again) == []  # its event has a run
    assert ((await got(store)).poll, len(await store.list_runs())) == (b"[1]", 2)


async def test_a_delivery_makes_its_source_due_now_or_when_its_poll_ends(store: Store) -> None:
    push = b'{"type":"event.shop"}'
    await store.put_schedule(schedule(poll=b"null", push=push))
    await store.put_schedule(schedule("s2", poll=b"null"))
    assert await store.missing_hooks(9) == [("s1", "expense", push)]
    assert await store.add_hook("h", "s1", "expense", push, T0)
    assert not await store.add_hook("i", "s1", "expense", push, T0)
    assert await store.missing_hooks(9) == [] and await store.get_hook("i") is None
    assert await store.push_hook("h", T0 + 5)
    assert ((await got(store)).next_run_at_ms, (await store.list_hooks("s1"))[0].delivered_at_ms) == (T0 + 5, T0 + 5)
    assert await store.claim_poll("s1", T0 + 5, T0 + 2 * HOUR)
    assert await store.push_hook("h", T0 + 7)
    assert (await got(store)).next_run_at_ms == T0 + 2 * HOUR  # the fence of the claim
    assert await store.record_poll(Poll("s1", T0 + 2 * HOUR, T0 + 3 * HOUR, T0 + 9)) == []
    assert ((await got(store)).next_run_at_ms, (await got(store)).pushed_ms) == (T0 + 9, None)
    assert await store.claim_poll("s1", T0 + 9, T0 + 2 * HOUR)
    assert await store.record_poll(Poll("s1", T0 + 2 * HOUR, T0 + 3 * HOUR, T0 + 9)) == []
    assert await store.poll_pushed(T0 + 20) == 1
    assert ((await got(store)).next_run_at_ms, (await got(store, "s2")).next_run_at_ms) == (T0 + 20, T0 + HOUR)


async def test_a_registration_belongs_to_one_process_and_outlives_its_trigger(store: Store) -> None:
    push = b'{"type":"event.shop"}'
    await store.put_schedule(schedule(poll=b"null", push=push))
    await store.add_hook("h", "s1", "expense", push, T0)
    assert not await store.keep_hook_secret("h", b"early", T0)
    assert await store.claim_hook("h", 0, T0 + 9, "here")
    assert not await store.claim_hook("h", 0, T0 + 10, "there") and await store.due_hooks(T0, "here", 9) == []
    assert await store.keep_hook_secret("h", b"sealed", T0)
    change = HookChange("h", T0 + 9, T0, T0 + HOUR, "here", "17", None, T0 + 2 * HOUR)
    assert await store.record_hook(change) and not await store.record_hook(change)
    (row,) = await store.list_hooks()
    assert (row.wanted, row.registered, row.secret, row.is_live(T0)) == (True, "17", b"sealed", True)
    assert not row.is_live(T0 + 2 * HOUR)

    async def due(now_ms: int, place: str = "here") -> list[str]:
        return [each.id for each in await store.due_hooks(now_ms, place, 9)]

    assert (await due(T0), await due(T0, "there"), await due(T0, ""), await due(T0 + HOUR)) == ([], ["h"], [], ["h"])
    await store.switch_schedule("s1", False, None, T0, TIMES)
    assert await due(T0) == ["h"] and not await store.push_hook("h", T0)
    await store.switch_schedule("s1", True, T0 + HOUR, T0, TIMES)
    assert await due(T0) == []
    await store.delete_schedule("s1")
    assert await due(T0) == ["h"] and not (await store.list_hooks())[0].wanted
    assert await store.claim_hook("h", T0, T0 + 9, "here")
    assert await store.record_hook(HookChange("h", T0 + 9, 0, gone=True))
    assert await store.list_hooks() == [] and not await store.push_hook("h", T0)


async def test_the_state_of_a_poll_is_of_its_source(store: Store) -> None:
    await store.put_schedule(schedule(poll=b"[1]", input=b'"a"'))
    await store.put_schedule(schedule(poll=b"null", input=b'"a"', cron="5 * * * *"))
    assert (await got(store)).poll == b"[1]"
    await store.put_schedule(schedule(poll=b"null", input=b'"b"'))
    assert (await got(store)).poll == b"null"
    await store.put_schedule(schedule(poll=b"[2]", input=b'"c"'))
    await store.switch_schedule("s1", False, None, T0, TIMES)
    await store.switch_schedule("s1", True, T0 + HOUR, T0, TIMES)
    assert (await got(store)).poll == b"null"
    assert await store.claim_poll("s1", T0 + HOUR, T0 + 2 * HOUR)
    await store.put_schedule(schedule())
    assert not await store.claim_poll("s1", T0 + HOUR, T0 + 2 * HOUR)


async def test_a_moment_that_has_gone_starts_nothing(store: Store) -> None:
    await store.put_schedule(schedule())
    replies = await asyncio.gather(*(store.fire(due(f"run-{i}")) for i in range(20)))
    assert [fired.outcome for fired in replies if fired is not None] == ["started"]
    assert len(await store.list_runs()) == 1
    assert await store.fire(replace(due("late"), schedule_id="none")) is None
    await store.switch_schedule("s1", False, None, T0, TIMES)
    assert await store.fire(due("off", T0 + 2 * HOUR)) is None
    assert len(await store.list_runs()) == 1


async def test_skipped_while_a_run_is_open(store: Store) -> None:
    await store.put_schedule(schedule())
    await store.fire(due())
    assert await store.fire(due("run-2", T0 + 2 * HOUR, T0 + 3 * HOUR)) == Fired("skipped")
    assert await store.get_run("run-2") is None
    assert [fire.outcome for fire in await store.list_fires("s1")] == ["skipped", "started"]
    await end(store, "run-1")
    third = await store.fire(due("run-3", T0 + 3 * HOUR, T0 + 4 * HOUR))
    assert third is not None and third.outcome == "started"


async def test_allowed_while_a_run_is_open(store: Store) -> None:
    await store.put_schedule(schedule())
    for n in range(1, 4):
        fired = await store.fire(due(f"run-{n}", T0 + n * HOUR, T0 + (n + 1) * HOUR, overlap="allow"))
        assert fired is not None and fired.outcome == "started"
    assert len(await store.list_runs()) == 3


async def test_one_moment_is_queued_until_the_run_has_ended(store: Store) -> None:
    await store.put_schedule(schedule(overlap="queue"))
    await store.fire(due(overlap="queue"))
    for n, outcome in ((2, "queued"), (3, "skipped")):
        fired = await store.fire(due(f"run-{n}", T0 + n * HOUR, T0 + (n + 1) * HOUR, overlap="queue"))
        assert fired == Fired(outcome)  # type: ignore[arg-type]
    assert (await got(store)).queued_at_ms == T0 + 2 * HOUR
    assert await store.next_schedule_ms() == (T0 + 4 * HOUR, True)
    assert await store.due_schedules(T0 + 3 * HOUR, 10) == []
    queued = due("run-4", T0 + 2 * HOUR, expects="queued", overlap="queue")
    assert await store.fire(queued) is None
    await end(store, "run-1")
    assert [found.id for found in await store.due_schedules(T0 + 3 * HOUR, 10)] == ["s1"]
    started = await store.fire(queued)
    assert started is not None and started.outcome == "started"
    assert (await got(store)).queued_at_ms is None
    assert (await got(store)).next_run_at_ms == T0 + 4 * HOUR
    assert await store.fire(queued) is None


async def test_a_failure_is_noted_and_cleared_by_the_next_run(store: Store) -> None:
    await store.put_schedule(schedule())
    assert await store.fire(due(None, error="there is no such workflow")) == Fired("failed")
    assert (await got(store)).error == "there is no such workflow"
    assert (await got(store)).next_run_at_ms == T0 + 2 * HOUR
    assert (await store.list_fires("s1"))[0].error == "there is no such workflow"
    assert await store.fire(due(None, T0 + 2 * HOUR, T0 + 3 * HOUR)) == Fired("missed")
    assert (await got(store)).error == "there is no such workflow"
    await store.fire(due("run-3", T0 + 3 * HOUR, None))
    assert ((await got(store)).error, (await got(store)).next_run_at_ms) == (None, None)


async def test_a_run_that_a_client_asked_for(store: Store) -> None:
    await store.put_schedule(schedule())
    await store.fire(due())
    asked = due("run-2", T0 + HOUR + 5, None, expects=None)
    fired = await store.fire(asked)
    assert fired is not None and fired.outcome == "started"
    assert (await got(store)).next_run_at_ms == T0 + 2 * HOUR, "the moments are not touched"
    await end(store, "run-1")
    assert await store.fire(due("run-3", T0 + 2 * HOUR, T0 + 3 * HOUR)) == Fired("skipped"), "run-2 is open"


async def test_an_open_run_is_remembered_however_many_moments_are_skipped(store: Store) -> None:
    await store.put_schedule(schedule())
    await store.fire(due())
    for n in range(2, FIRES_KEPT + 30):
        fired = await store.fire(due(f"run-{n}", T0 + n * HOUR, T0 + (n + 1) * HOUR))
        assert fired == Fired("skipped")
    kept = await store.list_fires("s1", 1_000)
    assert len(kept) == FIRES_KEPT + 1 and kept[-1].run_id == "run-1"
    await end(store, "run-1")
    n = FIRES_KEPT + 30
    await store.fire(due(f"run-{n}", T0 + n * HOUR, None))
    assert len(await store.list_fires("s1", 1_000)) == FIRES_KEPT


async def end(store: Store, run: str) -> None:
    (claimed,) = await store.claim("w1", T0 + 999 * HOUR, 15_000, run_id=run)
    await finish(store, claimed)


# --- deliveries ---


def delivery(id: str = "d1", digest: str | None = None, at_ms: int = T0) -> DeliveryRow:
    return DeliveryRow("h1", id, digest, at_ms, "")


async def test_a_delivery_starts_one_run(store: Store) -> None:
    hook, other = await store.put_webhook(webhook()), await store.put_webhook(webhook("h2"))
    first, run = await store.deliver(hook, delivery("d1", "sig"), new_run("run-1"))
    assert first == DeliveryRow("h1", "d1", "sig", T0, "run-1")
    assert run == await store.get_run("run-1")
    now = await store.get_webhook("h1")
    assert now == replace(hook, last_run_at_ms=T0, last_run_id="run-1")
    for copy in (delivery("d1", "sig"), delivery("d1", "other"), delivery("d2", "sig"), delivery("d1")):
        assert await store.deliver(hook, copy, new_run("run-2")) == (first, None)
    assert await store.get_run("run-2") is None
    assert (await store.deliver(hook, delivery("d2"), new_run("run-2")))[1] is not None
    assert (await store.deliver(other, replace(delivery("d1", "sig"), webhook_id="h2"), new_run("run-3")))[
        1
    ] is not None
    assert [row.id for row in await store.list_deliveries("h1")] == ["d2", "d1"]


async def test_a_webhook_that_was_changed_meanwhile_takes_nothing(store: Store) -> None:
    await store.put_webhook(webhook())
    judged = await store.switch_webhook("h1", True, T0 + 1)
    assert judged is not None
    for change in (
        store.switch_webhook("h1", False, T0 + 2),
        store.rotate_webhook("h1", 2, T0 + 2),
        store.put_webhook(webhook(version=2)),
        store.delete_webhook("h1"),
    ):
        await change
        with pytest.raises(Fenced):
            await store.deliver(judged, delivery(), new_run("run-1"))
        assert await store.list_deliveries("h1") == []
        await store.delete_webhook("h1")
        await store.put_webhook(judged)
    assert await store.list_runs() == []
    assert (await store.deliver(judged, delivery(), new_run("run-1")))[1] is not None


async def test_of_many_copies_at_once_one_starts_a_run(store: Store) -> None:
    hook = await store.put_webhook(webhook())
    copies = (store.deliver(hook, delivery("d1", "sig"), new_run(f"run-{i}")) for i in range(20))
    replies = await asyncio.gather(*copies)
    assert len([run for _, run in replies if run is not None]) == 1
    assert len({row.run_id for row, _ in replies}) == 1
    assert len(await store.list_runs()) == 1


async def test_deliveries_stay_for_a_day_and_the_last_ones_longer(store: Store) -> None:
    hook = await store.put_webhook(webhook())
    for n in range(DELIVERIES_KEPT + 20):
        await store.deliver(hook, delivery(f"d{n}", None, T0 + n), new_run(f"run-{n}"))
    later = T0 + 20 + DELIVERY_KEPT_MS - 1
    old, run = await store.deliver(hook, delivery("d20", None, later), new_run("again-20"))
    assert run is None and old.run_id == "run-20"
    fresh, run = await store.deliver(hook, delivery("d19", None, later), new_run("again-19"))
    assert run is not None and fresh.run_id == "again-19"
    assert len(await store.list_deliveries("h1", 1_000)) == DELIVERIES_KEPT + 1
    assert await store.delete_webhook("h1")
    assert await store.list_deliveries("h1") == []


async def test_signatures_without_a_time_count_once_for_as_long_as_the_secret(store: Store) -> None:
    """A captured delivery was taken again when 50 newer ones were a day old."""
    hook = await store.put_webhook(replace(webhook(), auth="github"))
    timed = await store.put_webhook(webhook("h2"))
    digests = [f"{n:064d}"[::-1] for n in range(DELIVERIES_KEPT + 5)]

    async def deliver(to: WebhookRow, n: int, at_ms: int, name: str) -> tuple[DeliveryRow, RunRow | None]:
        given = DeliveryRow(to.id, name, digests[n], at_ms, f"run-{to.id}-{name}")
        return await store.deliver(to, given, new_run(given.run_id))

    for n in range(DELIVERIES_KEPT + 5):
        for to in (hook, timed):
            assert (await deliver(to, n, T0 + n, f"d{n}"))[1] is not None
    later = T0 + 100 * DELIVERY_KEPT_MS
    for n in (0, 1, DELIVERIES_KEPT):
        first, run = await deliver(hook, n, later, f"copy-{n}")
        assert (run, first.run_id, first.at_ms) == (None, f"run-h1-d{n}", T0 + n)
    assert (await deliver(timed, 0, later, "copy-0"))[1] is not None, "its signature has expired long ago"
    assert len(await store.list_deliveries("h1", 1_000)) == DELIVERIES_KEPT
    rotated = await store.rotate_webhook("h1", 7, later)
    assert rotated is not None
    assert (await deliver(rotated, 0, later, "copy-0"))[1] is not None, "with another secret it is another signature"


async def test_refusals_are_counted_by_reason(store: Store) -> None:
    await store.put_webhook(webhook())
    first = RefusalRow("h1", "signature_invalid", 1, T0, T0)
    copies = RefusalRow("h1", "delivery_replayed", 2, T0, T0 + 5, "order-1", "run-1")
    await store.add_refusals([first, copies, RefusalRow("unknown", "signature_invalid", 1, T0, T0)])
    assert await store.list_refusals("h1") == [copies, first]
    await store.add_refusals([RefusalRow("h1", "signature_invalid", 40, T0 + 6, T0 + 9)])
    assert await store.list_refusals("h1") == [RefusalRow("h1", "signature_invalid", 41, T0, T0 + 9), copies]
    await store.put_webhook(webhook("unknown"))
    assert await store.list_refusals("unknown") == []
    await store.delete_webhook("h1")
    await store.put_webhook(webhook())
    assert await store.list_refusals("h1") == []


async def test_two_processes_fire_once(tmp_path: Path) -> None:
    stores = [SQLiteStore(tmp_path / "weft.db") for _ in range(2)]
    for one in stores:
        await one.open()
    try:
        await stores[0].put_schedule(schedule(overlap="allow"))
        for n in range(1, 30):
            replies = await asyncio.gather(
                *(
                    one.fire(due(f"run-{n}-{i}", T0 + n * HOUR, T0 + (n + 1) * HOUR, overlap="allow"))
                    for i, one in enumerate(stores)
                )
            )
            assert len([fired for fired in replies if fired is not None]) == 1
        assert len(await stores[1].list_runs()) == 29
    finally:
        for one in stores:
            await one.close()
