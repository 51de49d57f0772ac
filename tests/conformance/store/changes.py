"""Every change that the SQLite store makes, each with arguments for one small database, so that any two of them meet.

`furnish` makes that database; `CHANGES` has the functions that write, as the writer's thread calls them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from executor.store.rows import (
    Append,
    CacheRow,
    CheckpointRow,
    DeliveryRow,
    FamilyMax,
    Fire,
    NewRun,
    NotificationRow,
    RefusalRow,
    ScheduleRow,
    SessionRow,
    WaitUpdate,
    WebhookRow,
)
from executor.store.sqlite import (
    cache,
    checkpoints,
    contents,
    drafts,
    inbox,
    journal,
    leases,
    outbox,
    runs,
    schedules,
    sessions,
    upkeep,
    waits,
    webhooks,
    workflows,
)
from executor.store.sqlite.connection import Tx
from executor.store.sqlite.store import SQLiteStore
from executor.store.sqlite.writer import ping
from tests.support.rows import LEASE_MS, LONG_AFTER, T0, finish, new_run, owned_run, record, wait

Change = Callable[[Tx], Any]

LONG_AGO: Final = T0 - 86_400_000
NOW: Final = T0 + 1
LAPSED: Final = T0 + LEASE_MS + 1  # what the owners of the database held is free
CRON = "0 * * * *"
SCHEDULE = ScheduleRow(
    id="s",
    workflow="idle",
    version=None,
    trigger=None,
    cron=CRON,
    tz="UTC",
    input=b"{}",
    enabled=True,
    declared=None,
    overlap="queue",
    catch_up="one",
    origin="api",
    next_run_at_ms=T0,
    created_at_ms=T0,
    updated_at_ms=T0,
)
WEBHOOK = WebhookRow(
    id="h",
    workflow="idle",
    version=None,
    trigger=None,
    auth="github",
    secret_env=None,
    generation=1,
    respond="immediate",
    timeout_ms=1,
    headers=b"[]",
    enabled=True,
    declared=None,
    origin="api",
    created_at_ms=T0,
    updated_at_ms=T0,
)
DELIVERED = replace(WEBHOOK, last_run_at_ms=T0, last_run_id="delivered")


async def furnish(store: SQLiteStore) -> None:
    for n in (1, 2):
        await store.put_workflow("idle", b"%d" % n, f"h{n}", LONG_AGO)
    await store.put_workflow("gone", b"1", "h1", LONG_AGO)
    await store.delete_workflow("gone")
    await store.put_plan("lone", b"plan", LONG_AGO)
    await store.put_draft("d", 0, "idle", b"1", T0, 1)
    await store.put_schedule(SCHEDULE)
    await store.put_webhook(WEBHOOK)
    await store.deliver(WEBHOOK, DeliveryRow("h", "earlier", "digest", T0, "delivered"), new_run("delivered"))
    await finish(store, await _claimed(store, "delivered"))
    await store.put_session(SessionRow("session", "mark", T0, T0), 0, 0)
    await finish(store, await owned_run(store, "done"))
    run = await owned_run(store, "open")
    await store.append(
        Append(
            run_id="open",
            epoch=run.epoch,
            expected_seq=run.seq,
            records=(record(),),
            now_ms=T0,
            waits=(wait("open"),),
            notifications=(NotificationRow("open", "ask!1", 1, "email", b"[]", "pending", 0, T0, T0),),
            cached=(_cached("key", T0),),
        )
    )
    await store.post_signal("open", "go", None, b"1", "earlier", None, b"m", T0)
    await store.put_checkpoint(1, CheckpointRow("open", "n", 1, T0, b"1"))
    parent = await owned_run(store, "parent")
    await store.append(
        Append("parent", parent.epoch, parent.seq, (record(),), T0, children=(_child("child"),), root="parent")
    )
    await store.claim("w1", T0, LEASE_MS, run_id="child")


async def _claimed(store: SQLiteStore, run: str) -> Any:
    (row,) = await store.claim("w1", T0, LEASE_MS, run_id=run)
    return row


def _child(id: str) -> NewRun:
    return new_run(id, parent_run_id="parent", parent_key=f"call-{id}!1")


def _cached(key: str, expires_at_ms: int) -> CacheRow:
    return CacheRow(key, "workflow", "expense", "open", "b", "set", "", None, T0, expires_at_ms, b"1")


def _change(run: str, seq: int, *records: Any, **fields: Any) -> Change:
    given: dict[str, Any] = {"run_id": run, "epoch": 1, "expected_seq": seq, "now_ms": NOW}
    change = Append(**{**given, "records": records or (record(),), **fields})
    return lambda tx: journal.append(tx, change)


def _to(function: Callable[..., Any], *args: Any, **fields: Any) -> Change:
    return lambda tx: function(tx, *args, **fields)


_of_key = partial(new_run, idempotency_key="key", now_ms=NOW)
_token = wait("open").token_hash
_ended: dict[str, Any] = {"status": "succeeded", "finished": True}
_fire = partial(Fire, "s", now_ms=NOW, overlap="queue", due_ms=T0)

CHANGES: dict[str, Change] = {
    "answer a wait": _to(waits.answer_wait, _token, b'"yes"', "ada", b"m", NOW),
    "answer and claim": _to(leases.answer_and_claim, _token, b'"yes"', "cyd", b"m", LAPSED, "w2", LEASE_MS),
    "answer it otherwise": _to(waits.answer_wait, _token, b'"no"', "bob", b"m", NOW),
    "withdraw the wait": _to(waits.cancel_wait, "open", "ask!1", "eve", b"m", NOW),
    "let the wait expire": _to(waits.expire_wait, "open", "ask!1", b"m", NOW),
    "claim a notification": _to(outbox.claim_notifications, T0, LEASE_MS, 10),
    "claim it too": _to(outbox.claim_notifications, NOW, LEASE_MS, 1),
    "settle an attempt": _to(outbox.settle_notification, "open", "ask!1", 1, 1, "sent", NOW),
    "append": _change("open", 2),
    "append, and close the wait": _change("open", 2, closed_waits=(WaitUpdate("ask!1", "answered", b"1", "x", NOW),)),
    "append, and take the message": _change("open", 2, consumed_inbox=(1,), consumed_signals=((1, "ask!1"),)),
    "append, and end": _change("open", 2, consumed_inbox=(1,), **_ended),
    "append, and cache": _change("open", 2, cached=(_cached("key", LONG_AFTER),)),
    "append, and post": _change("open", 2, posts=(("child", b"m"),), cancels=(("done", b"m"),)),
    "make a child": _change("parent", 2, children=(_child("second"),), root="parent", family_max=FamilyMax(2, 2)),
    "make a child of the child": _change(
        "child", 1, children=(new_run("third", parent_run_id="child", parent_key="k"),), root="parent"
    ),
    "end the child": _change("child", 1, posts=(("parent", b"ended"),), root="parent", **_ended),
    "end the parent": _change("parent", 2, root="parent", **_ended),
    "post a message": _to(inbox.post_message, "open", b"m", NOW),
    "ask for a move": _to(inbox.post_message, "open", b"m", NOW, "lone"),
    "cancel": _to(inbox.cancel_run, "open", b"cancel", NOW),
    "cancel the parent": _to(inbox.cancel_run, "parent", b"cancel", NOW),
    "signal": _to(inbox.post_signal, "open", "go", None, b"2", None, "ada", b"m", NOW),
    "signal with a key": _to(inbox.post_signal, "open", "go", None, b"3", "key", "ada", b"m", NOW),
    "signal with the same key": _to(inbox.post_signal, "open", "go", None, b"4", "key", "bob", b"m", NOW),
    "claim": _to(leases.claim, "w2", LAPSED, LEASE_MS, 10),
    "claim one": _to(leases.claim, "w3", LAPSED, LEASE_MS, 1, "open"),
    "release": _to(leases.release, "open", 1, 2, None, "running"),
    "wait without a lease": _to(leases.release, "parent", 1, 2, None, "waiting"),
    "renew": _to(leases.renew, "w1", ["open", "parent"], NOW, LEASE_MS),
    "set the clock back": _to(leases.repair_clock_skew, T0 - 100 * LEASE_MS, LEASE_MS),
    "checkpoint": _to(checkpoints.put_checkpoint, 1, CheckpointRow("open", "n", 2, NOW, b"2")),
    "create a run": _to(runs.create_run, _of_key("new")),
    "create it again": _to(runs.create_run, _of_key("again")),
    "begin a run": _to(leases.begin_run, _of_key("begun"), "w9", 9 * LEASE_MS, Append("begun", 1, 1, (record(),), NOW)),
    "create a run of an old plan": _to(runs.create_run, new_run("old", NOW, plan_hash="lone")),
    "create a run of a deleted workflow": _to(runs.create_run, new_run("of-gone", NOW, "gone")),
    "fork": _to(runs.create_run, new_run("fork", NOW, sources=("done",), source_run_id="done")),
    "delete runs": _to(upkeep.delete_runs, ["child", "done", "open", "parent"]),
    "delete orphans": _to(upkeep.delete_orphans, ('["lone"]', "[]", "[]", '["gone"]'), T0),
    "store a plan": _to(contents.put_plan, "lone", b"plan", NOW),
    "revise a draft": _to(drafts.put_draft, "d", 1, "idle", b"a", NOW),
    "revise it otherwise": _to(drafts.put_draft, "d", 1, "idle", b"b", NOW),
    "make a draft": _to(drafts.put_draft, "e", 0, "idle", b"a", NOW),
    "make the same draft": _to(drafts.put_draft, "e", 0, "idle", b"b", NOW, 2),
    "base a draft": _to(drafts.rebase_draft, "d", 1, "idle", 2),
    "delete a draft": _to(drafts.delete_draft, "d"),
    "delete a draft at its revision": _to(drafts.delete_draft, "d", 1),
    "store a version": _to(workflows.put_workflow, "idle", b"3", "h3", NOW),
    "store another version": _to(workflows.put_workflow, "idle", b"4", "h4", NOW),
    "store an old version": _to(workflows.put_workflow, "idle", b"1", "h1", NOW),
    "store a first version": _to(workflows.put_workflow, "new", b"1", "h1", NOW),
    "store the first version otherwise": _to(workflows.put_workflow, "new", b"2", "h2", NOW),
    "store what was deleted": _to(workflows.put_workflow, "gone", b"1", "h1", NOW),
    "activate": _to(workflows.activate_workflow, "idle", 1, NOW),
    "delete a workflow": _to(workflows.delete_workflow, "idle"),
    "create a run of the workflow": _to(runs.create_run, new_run("idles", NOW, "idle")),
    "change a schedule": _to(schedules.put_schedule, replace(SCHEDULE, cron="1 * * * *", updated_at_ms=NOW)),
    "change it otherwise": _to(schedules.put_schedule, replace(SCHEDULE, input=b"1", enabled=False)),
    "make a schedule": _to(schedules.put_schedule, replace(SCHEDULE, id="t", workflow="expense")),
    "make the same schedule": _to(schedules.put_schedule, replace(SCHEDULE, id="t", enabled=False)),
    "switch a schedule off": _to(schedules.switch_schedule, "s", False, None, NOW, (CRON, "UTC")),
    "switch a schedule on": _to(schedules.switch_schedule, "s", True, NOW, NOW, (CRON, "UTC")),
    "delete a schedule": _to(schedules.delete_schedule, "s"),
    "fire": _to(schedules.fire, _fire("due", T0, T0 + 60_000, run=new_run("fired", NOW, "idle"))),
    "fire the same time": _to(schedules.fire, _fire("due", T0, T0 + 60_000, run=new_run("fired-too", NOW, "idle"))),
    "fire a queued time": _to(schedules.fire, _fire("queued", T0, None, run=new_run("late", NOW, "idle"))),
    "fire now": _to(schedules.fire, _fire(None, 0, None, run=new_run("asked", NOW, "idle"))),
    "change a webhook": _to(webhooks.put_webhook, replace(WEBHOOK, timeout_ms=2, updated_at_ms=NOW)),
    "change a webhook otherwise": _to(webhooks.put_webhook, replace(WEBHOOK, enabled=False, updated_at_ms=NOW)),
    "make a webhook": _to(webhooks.put_webhook, replace(WEBHOOK, id="i", timeout_ms=2)),
    "make the same webhook": _to(webhooks.put_webhook, replace(WEBHOOK, id="i", generation=2)),
    "switch a webhook off": _to(webhooks.switch_webhook, "h", False, NOW),
    "rotate a secret": _to(webhooks.rotate_webhook, "h", 2, NOW),
    "delete a webhook": _to(webhooks.delete_webhook, "h"),
    "deliver": _to(webhooks.deliver, DELIVERED, DeliveryRow("h", "a", "x", NOW, ""), new_run("d1", NOW, "idle")),
    "deliver again": _to(webhooks.deliver, DELIVERED, DeliveryRow("h", "a", "x", NOW, ""), new_run("d2", NOW, "idle")),
    "deliver under a new name": _to(
        webhooks.deliver, DELIVERED, DeliveryRow("h", "b", "x", NOW, ""), new_run("d3", NOW, "idle")
    ),
    "count refusals": _to(
        webhooks.add_refusals, [RefusalRow("h", "bad", 1, NOW, NOW), RefusalRow("h", "no", 2, T0, T0)]
    ),
    "count more refusals": _to(webhooks.add_refusals, [RefusalRow("h", "bad", 3, NOW, NOW, "x", "r")]),
    "clear the cache": _to(cache.clear_cache),
    "clear the cache of a workflow": _to(cache.clear_cache, "expense"),
    "delete expired results": _to(cache.delete_expired_cache, NOW, 10),
    "sign in": _to(sessions.put_session, SessionRow("other", "mark", NOW, NOW), 0, 0),
    "see a session": _to(sessions.see_session, "session", NOW),
    "sign out": _to(sessions.delete_session, "session"),
    "sign all out": _to(sessions.delete_sessions),
    "ping": ping,
}
