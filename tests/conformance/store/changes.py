"""Every change that a store makes, each with arguments for one small database, so that any two of them meet.

`furnish` makes that database; `CHANGES` has the functions that write, as the writer's thread calls them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from executor.kernel.process.acting import Act, acting
from executor.kernel.store.run_rows import DEFAULT_POOLS, Append, NewRun
from executor.kernel.store.sqlite.writer import ping
from executor.kernel.store.statements import Tx, as_list
from executor.kernel.store.topics import (
    alerts,
    audit,
    cache,
    claims,
    connectors,
    contents,
    drafts,
    hooks,
    inbox,
    journal,
    knowledge,
    leases,
    memory,
    outbox,
    people,
    places,
    runs,
    schedules,
    secrets,
    snapshots,
    upkeep,
    usage,
    waits,
    webhooks,
    workflows,
)
from executor.kernel.store.topics.alerts import AlertChannel, AlertRow
from executor.kernel.store.topics.cache import CacheRow
from executor.kernel.store.topics.connectors import ConnectorRow
from executor.kernel.store.topics.contents import FileHead, key_of
from executor.kernel.store.topics.families import FamilyMax
from executor.kernel.store.topics.hooks import HookChange
from executor.kernel.store.topics.knowledge import ChunkVector, CollectionRow, NewDocument, SweptChunk
from executor.kernel.store.topics.memory import Conversation, MemoryTurn
from executor.kernel.store.topics.outbox import NotificationRow
from executor.kernel.store.topics.people import SessionRow, TokenRow, UserRow
from executor.kernel.store.topics.places import Ask, Assigned
from executor.kernel.store.topics.schedules import Fire, Poll, ScheduleRow
from executor.kernel.store.topics.secrets import Relinked, Resealed, SecretRow
from executor.kernel.store.topics.snapshots import SNAPSHOT_SEQ_MIN, CheckpointRow, SnapshotRow
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.usage import Spent, UsageRow
from executor.kernel.store.topics.waits import WaitUpdate
from executor.kernel.store.topics.webhooks import DeliveryRow, RefusalRow, WebhookRow
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
CHAT = Conversation("idle", "", "ada")
PART = key_of("part", b"part")
HEAD = msgspec.json.encode(FileHead("a.txt", "text/plain", 4, "", (PART,)))
FILE = key_of("file", HEAD)
SECRET = SecretRow("SECRET", 1, b"sealed", "k1", ("api.example.com",), "ada", T0)
DOCS = CollectionRow("docs", "", "dev:m", 0, 1_000, 0, T0, None)
BOOK = NewDocument("book", "Book", "", "text/plain", "sha-1", 3, 1, "done", T0, None)
CONNECTOR = ConnectorRow("tea", b"{}", "h1", "ada", T0)
DELIVERED = replace(WEBHOOK, last_run_at_ms=T0, last_run_id="delivered")


async def furnish(store: Store) -> None:
    for n in (1, 2):
        await store.put_workflow("idle", b"%d" % n, f"h{n}", LONG_AGO)
    await store.put_workflow("gone", b"1", "h1", LONG_AGO)
    await store.delete_workflow("gone")
    await store.put_plan("lone", b"plan", LONG_AGO)
    await store.put_parts([(PART, b"part"), (FILE, HEAD)], None, LONG_AGO)
    await store.put_draft("d", 0, "idle", b"1", T0, 1)
    await store.put_schedule(SCHEDULE)
    await store.add_hook("k", "s", "idle", b"2", T0)
    await store.put_webhook(WEBHOOK)
    await store.deliver(WEBHOOK, DeliveryRow("h", "earlier", "digest", T0, "delivered"), new_run("delivered"))
    await finish(store, await _claimed(store, "delivered"))
    await store.put_secret(SECRET)
    await store.claim_key("k1", T0)
    await store.remember(CHAT, _turn(1, T0))
    await store.put_connector(CONNECTOR)
    await store.put_collection(DOCS)
    for n, name in enumerate(("seen", "book", "gone"), 1):  # the numbers of their rows, and of their chunks
        await store.add_knowledge("docs", replace(BOOK, name=name), ["one"])
        if name == "seen":
            await store.put_vectors(n, 1, [_vector(n)])
            await store.publish_knowledge(n)
    await store.delete_knowledge("docs", "gone")
    await store.put_session(SessionRow("session", "mark", T0, T0, "ada"), 0, 0)
    await store.put_user(UserRow("ada", "Ada", "admin", T0))
    await store.put_code("code", "ada", LAPSED, T0)
    await store.put_token(TokenRow("t1", "hash", "ci", "ada", "editor", None, T0, LAPSED))
    with acting(_ACT):
        await store.record_act()
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
            usage=(_used("open"),),
        )
    )
    await store.post_signal("open", "go", None, b"1", "earlier", None, b"m", T0)
    await store.add_alerts((_alert("done", at_ms=LONG_AGO),))
    await store.group_alerts(LONG_AGO, 1)
    (message,) = await store.claim_alert_messages(LONG_AGO, 1, 1)
    await store.record_alert_message(message.id, 1, "sent", LONG_AGO)
    await store.add_alerts((_alert("open"), _alert("open", "workflow", "notify"), _LATE))
    await store.put_checkpoint(1, CheckpointRow("open", "n", 1, T0, b"1"))
    parked = await owned_run(store, "parked")
    await store.append(Append("parked", 1, parked.seq, (record(),), T0, waits=(wait("parked"),)))
    await store.release("parked", 1, parked.seq + 1, None, "waiting")
    parent = await owned_run(store, "parent")
    await store.append(
        Append("parent", parent.epoch, parent.seq, (record(),), T0, children=(_child("child"),), root="parent")
    )
    await store.claim("w1", T0, LEASE_MS, run_id="child")
    await store.ask_places("p1", [Ask("open", 1, node, 1, "k", 1) for node in ("n1", "n2", "n3")])
    await store.ask_places("p2", [Ask("child", 1, "n", 1, "other", 1)])


async def _claimed(store: Store, run: str) -> Any:
    (row,) = await store.claim("w1", T0, LEASE_MS, run_id=run)
    return row


def _child(id: str) -> NewRun:
    return new_run(id, parent_run_id="parent", parent_key=f"call-{id}!1")


def _used(run: str) -> UsageRow:
    return UsageRow(run, 5, "expense", "dev:m", "prices", Spent(1, 0, 10, cost_nanos=7))


def _alert(run: str, channel: AlertChannel = "email", target: str = "", at_ms: int = T0) -> AlertRow:
    return AlertRow(f"{channel}:{run}", channel, target, "run.failed", "expense", run, "", at_ms, at_ms)


def _cached(key: str, expires_at_ms: int) -> CacheRow:
    return CacheRow(key, "workflow", "expense", "open", "b", "set", "", None, T0, expires_at_ms, b"1")


def _change(run: str, seq: int, *records: Any, **fields: Any) -> Change:
    given: dict[str, Any] = {"run_id": run, "epoch": 1, "expected_seq": seq, "now_ms": NOW}
    change = Append(**{**given, "records": records or (record(),), **fields})
    return lambda tx: journal.append(tx, change)


def _to(function: Callable[..., Any], *args: Any, **fields: Any) -> Change:
    return lambda tx: function(tx, *args, **fields)


def _noted(function: Callable[..., Any], *args: Any) -> Change:
    write = audit.audited
    return lambda tx: write(tx, _ACT, function, args)


def _vector(chunk: int) -> ChunkVector:
    return ChunkVector(chunk, b"\x01", b"\0\0\x80\x3f", [(7, 1)])


def _published(document: int) -> Change:
    def change(tx: Tx) -> object:
        return knowledge.put_vectors(tx, document, 1, [_vector(document)]), knowledge.publish_knowledge(tx, document)

    return change


def _turn(n: int, at_ms: int) -> MemoryTurn:
    return MemoryTurn(f"done:agent{n}", "done", at_ms, b"[]")


def _ask(node: str, key: str, at_most: int) -> Ask:
    return Ask("open", 1, node, 1, key, at_most)


def _unnumbered(function: Callable[..., Assigned], *args: Any) -> Change:
    """Without the numbers of places, which are those of the database."""

    def change(tx: Tx) -> Any:
        assigned = function(tx, *args)
        return [number is not None for number in assigned.asked], len(assigned.begin), assigned.others, assigned.again

    return change


_of_key = partial(new_run, idempotency_key="key", now_ms=NOW)
_LATE = AlertRow("waiting:open:ask!1", "email", "", "run.waiting", "expense", "open", "ask!1", T0, T0)
_of_open = _alert("open", "workflow", "notify").cause
_ACT = Act("user:ada", "session", "tokens.create", "t1", NOW)
_snapshot = SnapshotRow(SNAPSHOT_SEQ_MIN, 1, "code", "plan", 0, b"folded")
_token = wait("open").token_hash
_ended: dict[str, Any] = {"status": "succeeded", "finished": True}
_fire = partial(Fire, "s", now_ms=NOW, overlap="queue", due_ms=T0)

_answer = b'"yes"', "cyd", b"m", NOW, "w4", LEASE_MS, DEFAULT_POOLS
_goes_on = partial(Append, epoch=2, expected_seq=2, records=(record(),), now_ms=NOW)

CHANGES: dict[str, Change] = {
    "answer a wait": _to(waits.answer_wait, _token, b'"yes"', "ada", b"m", NOW),
    "answer and go on": _to(claims.answer_and_continue, wait("parked").token_hash, *_answer, _goes_on("parked")),
    "answer what has an owner": _to(claims.answer_and_continue, _token, *_answer, _goes_on("open")),
    "answer what waits": _to(waits.answer_wait, wait("parked").token_hash, b"1", "ada", b"m", NOW),
    "send what waits a message": _to(inbox.post_message, "parked", b"m", NOW),
    "answer it otherwise": _to(waits.answer_wait, _token, b'"no"', "bob", b"m", NOW),
    "withdraw the wait": _to(waits.cancel_wait, "open", "ask!1", "eve", b"m", NOW),
    "let the wait expire": _to(waits.expire_wait, "open", "ask!1", b"m", NOW),
    "claim a notification": _to(outbox.claim_notifications, T0, LEASE_MS, 10),
    "claim it too": _to(outbox.claim_notifications, NOW, LEASE_MS, 1),
    "keep the claim": _to(outbox.keep_notification, "open", "ask!1", 1, 1, LONG_AFTER),
    "free the claim": _to(outbox.keep_notification, "open", "ask!1", 1, 1, T0, False),
    "settle an attempt": _to(outbox.record_notification, "open", "ask!1", 1, 1, "sent", NOW),
    "add an alert": _to(alerts.add_alerts, (_alert("parent"),)),
    "add it with a message": _to(alerts.add_alerts, (_alert("parent"), _alert("parent", "workflow", "notify"))),
    "group alerts": _to(alerts.group_alerts, NOW, 300_000),
    "claim messages of alerts": _to(alerts.claim_alert_messages, NOW, LEASE_MS, 10),
    "keep a message of alerts": _to(alerts.keep_alert_message, _of_open, 0, LONG_AFTER),
    "settle a message of alerts": _to(alerts.record_alert_message, _of_open, 0, "failed", NOW),
    "delete old alerts": _to(alerts.delete_old_alerts, T0, 10),
    "append": _change("open", 2),
    "append, and close the wait": _change("open", 2, closed_waits=(WaitUpdate("ask!1", "answered", b"1", "x", NOW),)),
    "append, and take the message": _change("open", 2, consumed_inbox=(1,), consumed_signals=((1, "ask!1"),)),
    "append, and end": _change("open", 2, consumed_inbox=(1,), **_ended),
    "append, and continue as new": _change("open", 2, consumed_inbox=(1,), **_ended, next=new_run("next", NOW)),
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
    "append, and leave a place": _change("open", 2, places=(("n1", 1),)),
    "ask for a place": _unnumbered(places.ask_places, "p2", [_ask("m", "new", 1), _ask("o", "k", 2)]),
    "ask in vain": _unnumbered(places.ask_places, "p2", [Ask("parent", 2, "n", 1, "k", 1)]),
    "assign places": _unnumbered(places.assign_places, "p2", ["k", "other"]),
    "claim": _to(claims.claim, "w2", LAPSED, LEASE_MS, 10),
    "claim one": _to(claims.claim, "w3", LAPSED, LEASE_MS, 1, "open"),
    "release": _to(leases.release, "open", 1, 2, None, "running"),
    "wait without a lease": _to(leases.release, "parent", 1, 2, None, "waiting"),
    "renew": _to(leases.renew, "w1", ["open", "parent"], NOW, LEASE_MS),
    "set the clock back": _to(claims.repair_clock_skew, T0 - 100 * LEASE_MS, LEASE_MS),
    "append, with a snapshot": _change("open", 2, snapshot=_snapshot),
    "release, with a snapshot": _to(leases.release, "open", 1, 2, None, "running", _snapshot),
    "delete snapshots": _to(snapshots.delete_snapshots),
    "checkpoint": _to(snapshots.put_checkpoint, 1, CheckpointRow("open", "n", 2, NOW, b"2")),
    "create a run": _to(runs.create_run, _of_key("new")),
    "create it again": _to(runs.create_run, _of_key("again")),
    "begin a run": _to(leases.begin_run, _of_key("begun"), "w9", 9 * LEASE_MS, Append("begun", 1, 1, (record(),), NOW)),
    "create a run of an old plan": _to(runs.create_run, new_run("old", NOW, plan_hash="lone")),
    "create a run of a deleted workflow": _to(runs.create_run, new_run("of-gone", NOW, "gone")),
    "fork": _to(runs.create_run, new_run("fork", NOW, sources=("done",), source_run_id="done")),
    "delete runs": _to(upkeep.delete_runs, ["child", "done", "open", "parent"]),
    "delete orphans": _to(upkeep.delete_orphans, ('["lone"]', "[]", as_list([FILE, PART]), '["gone"]'), T0),
    "store a file": _to(contents.put_parts, [(PART, b"part"), (FILE, HEAD)], None, NOW),
    "store it for a run": _to(contents.put_parts, [(PART, b"part"), (FILE, HEAD)], "open", NOW),
    "hold a file": _to(contents.hold_files, [FILE, "file_" + "0" * 64], "open", NOW),
    "create a run with a file": _to(
        runs.create_run, replace(_of_key("filed"), input=b'{"a":{"id":"%s"}}' % FILE.encode())
    ),
    "store a plan": _to(contents.put_plan, "lone", b"plan", NOW),
    "revise a draft": _to(drafts.put_draft, "d", 1, "idle", b"a", NOW),
    "revise it otherwise": _to(drafts.put_draft, "d", 1, "idle", b"b", NOW),
    "make a draft": _to(drafts.put_draft, "e", 0, "idle", b"a", NOW),
    "make the same draft": _to(drafts.put_draft, "e", 0, "idle", b"b", NOW, 2),
    "base a draft": _to(drafts.rebase_draft, "d", 1, "idle", 2),
    "put a draft into a folder": _to(drafts.put_draft_in_folder, "d", "Shop"),
    "delete a draft": _to(drafts.delete_draft, "d"),
    "delete a draft at its revision": _to(drafts.delete_draft, "d", 1),
    "store a version": _to(workflows.put_workflow, "idle", b"3", "h3", NOW),
    "store another version": _to(workflows.put_workflow, "idle", b"4", "h4", NOW),
    "store an old version": _to(workflows.put_workflow, "idle", b"1", "h1", NOW),
    "store a first version": _to(workflows.put_workflow, "new", b"1", "h1", NOW),
    "store the first version otherwise": _to(workflows.put_workflow, "new", b"2", "h2", NOW),
    "store what was deleted": _to(workflows.put_workflow, "gone", b"1", "h1", NOW),
    "activate": _to(workflows.activate_workflow, "idle", 1, NOW),
    "put a workflow into a folder": _to(workflows.put_in_folder, "idle", "Shop"),
    "rename a workflow": _to(workflows.put_title, "idle", "Idle"),
    "rename another workflow": _to(workflows.put_title, "expense", "Idle"),
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
    "make it poll": _to(schedules.put_schedule, replace(SCHEDULE, poll=b"null", input=b"2", updated_at_ms=NOW)),
    "claim a poll": _to(schedules.claim_poll, "s", T0, T0 + 1),
    "record a poll": _to(
        schedules.record_poll, Poll("s", T0, T0 + 2, NOW, (new_run("polled", NOW, "idle"),), b"{}", None, ("no",))
    ),
    "make it pushed": _to(schedules.put_schedule, replace(SCHEDULE, poll=b"null", push=b"2", updated_at_ms=NOW)),
    "add a registration": _to(hooks.add_hook, "l", "s", "idle", b"3", NOW),
    "add it again": _to(hooks.add_hook, "m", "s", "idle", b"3", NOW),
    "claim a registration": _to(hooks.claim_hook, "k", 0, NOW + 9, "here"),
    "record a registration": _to(hooks.record_hook, HookChange("k", NOW + 9, NOW, NOW, "here", "17", b"x")),
    "remove a registration": _to(hooks.record_hook, HookChange("k", 0, 0, gone=True)),
    "keep a secret of a service": _to(hooks.keep_hook_secret, "k", b"y", NOW),
    "receive a push": _to(hooks.push_hook, "k", NOW),
    "poll what is pushed": _to(hooks.poll_pushed, NOW),
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
    "use a model again": _change("open", 2, usage=(_used("open"), _used("open"))),
    "clear the cache": _to(cache.clear_cache),
    "clear the cache of a workflow": _to(cache.clear_cache, "expense"),
    "delete expired results": _to(cache.delete_expired_cache, NOW, 10),
    "set a secret": _to(secrets.put_secret, replace(SECRET, version=2, sealed=b"2")),
    "set it otherwise": _to(secrets.put_secret, replace(SECRET, version=2, sealed=b"other")),
    "set another secret": _to(secrets.put_secret, replace(SECRET, name="OTHER")),
    "use secrets": _to(secrets.use_secrets, ["SECRET", "OTHER"], NOW),
    "seal a secret again": _to(secrets.reseal_secrets, [Resealed("SECRET", 1, "k1", b"again", "k2")]),
    "take a key": _to(secrets.claim_key, "k1", NOW),
    "take another key": _to(secrets.claim_key, "k2", NOW),
    "change the key": _to(secrets.change_key, "k2", NOW, NOW + 1),
    "make a link anew": _to(secrets.relink, [Relinked("open", "ask!1", _token, "n1", "k1")]),
    "make it otherwise": _to(secrets.relink, [Relinked("open", "ask!1", _token, "n2", None)]),
    "delete a secret": _to(secrets.delete_secret, "SECRET"),
    "remember": _to(memory.remember, CHAT, _turn(2, NOW)),
    "remember something else": _to(memory.remember, CHAT, _turn(3, NOW)),
    "remember it again": _to(memory.remember, CHAT, _turn(2, NOW)),
    "forget": _to(memory.forget, CHAT),
    "make a collection": _to(knowledge.put_collection, replace(DOCS, name="other")),
    "make the collection otherwise": _to(knowledge.put_collection, replace(DOCS, name="other", model="dev:other")),
    "delete a collection": _to(knowledge.delete_collection, "docs"),
    "add a document": _to(knowledge.add_knowledge, "docs", replace(BOOK, name="new"), ["one"]),
    "add a version": _to(knowledge.add_knowledge, "docs", replace(BOOK, sha256="sha-2"), ["two"]),
    "add another version": _to(knowledge.add_knowledge, "docs", replace(BOOK, sha256="sha-3"), ["three"]),
    "store vectors": _to(knowledge.put_vectors, 2, 1, [_vector(2)]),
    "store vectors and publish": _published(2),
    "publish a document": _to(knowledge.publish_knowledge, 2),
    "delete a document": _to(knowledge.delete_knowledge, "docs", "book"),
    "delete one that is seen": _to(knowledge.delete_knowledge, "docs", "seen"),
    "sweep chunks": _to(knowledge.sweep_chunks, [SweptChunk(1, 3, 3, [7])]),
    "sweep a document": _to(knowledge.sweep_chunks, [SweptChunk(1, 3, 3, [7]), SweptChunk(1, 3, None)]),
    "keep a run": _to(upkeep.keep_run, "done", b"a", NOW),
    "keep it with another note": _to(upkeep.keep_run, "done", b"b", NOW),
    "keep it no longer": _to(upkeep.drop_kept_run, "done"),
    "add usage": _to(usage.add_usage, [UsageRow("", 5, "expense", "dev:m", "", Spent(calls=1))]),
    "note upkeep": _to(upkeep.put_upkeep_note, "gc", b"1", NOW),
    "note it otherwise": _to(upkeep.put_upkeep_note, "gc", b"2", NOW),
    "forget what is old": _to(memory.delete_old_memory, NOW, 10),
    "put a connector": _to(connectors.put_connector, replace(CONNECTOR, document=b"2", hash="h2")),
    "put it otherwise": _to(connectors.put_connector, replace(CONNECTOR, document=b"other", hash="h3")),
    "put another connector": _to(connectors.put_connector, replace(CONNECTOR, service="coffee")),
    "delete a connector": _to(connectors.delete_connector, "tea"),
    "sign in": _to(people.put_session, SessionRow("other", "mark", NOW, NOW), 0, 0),
    "see a session": _to(people.see_session, "session", NOW),
    "sign out": _to(people.delete_session, "session"),
    "sign all out": _to(people.delete_sessions),
    "sign a user out": _to(people.delete_sessions, "ada"),
    "add a user": _to(people.put_user, UserRow("bob", "Bob", "viewer", NOW)),
    "add the same user": _to(people.put_user, UserRow("bob", "Robert", "editor", NOW)),
    "add a user of a provider": _to(people.put_user, UserRow("bob", "Bob", "viewer", NOW, "https://i s")),
    "say who a user is": _to(people.identify, "ada", "https://i ada"),
    "say who a user is otherwise": _to(people.identify, "ada", "https://i eve"),
    "change a role": _to(people.set_role, "ada", "viewer"),
    "change a role otherwise": _to(people.set_role, "ada", "editor"),
    "delete a user": _to(people.delete_user, "ada"),
    "make a sign-in link": _to(people.put_code, "new", "ada", LAPSED, NOW),
    "use a sign-in link": _to(people.redeem_code, "code", NOW),
    "make a token": _to(people.put_token, TokenRow("t2", "h2", "ci", None, "viewer", '["w"]', NOW, LAPSED)),
    "use a token": _to(people.use_token, "t1", NOW),
    "revoke a token": _to(people.delete_token, "t1"),
    "note what was done": _noted(audit.record_act),
    "change a role, noted": _noted(people.set_role, "ada", "viewer"),
    "revoke a token, noted": _noted(people.delete_token, "t1"),
    "ping": _to(ping),
}
