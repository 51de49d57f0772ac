from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from executor.errors import Fenced
from executor.kernel.store.run_rows import Append
from executor.kernel.store.topics.alerts import AlertCount, AlertRow
from executor.kernel.store.topics.store import Store
from tests.support.rows import T0, new_run, owned_run, record

EVERY = 300_000


def alert(run: str = "r", channel: str = "email", target: str = "", at_ms: int = T0) -> AlertRow:
    return AlertRow(f"failed:{run}", channel, target, "run.failed", "expense", run, "", at_ms, at_ms)  # type: ignore[arg-type]


async def fail(store: Store, run: str, *alerts: AlertRow, epoch: int | None = None) -> None:
    stored = await store.get_run(run)
    assert stored is not None
    change = Append(run, epoch or stored.epoch, stored.seq, (record(),), T0, status="failed", alerts=alerts)
    await store.append(replace(change, finished=True))


async def test_what_operators_hear_of_is_written_with_the_end_of_the_run(store: Store) -> None:
    await owned_run(store, "r")
    with pytest.raises(Fenced):
        await fail(store, "r", alert(), epoch=99)
    assert await store.next_alert_ms() is None
    await fail(store, "r", alert(), alert(channel="webhook"))
    assert await store.next_alert_ms() == T0


async def test_a_run_that_begins_and_fails_in_one_commit_has_its_alerts(store: Store) -> None:
    run = new_run("r")
    first = Append("r", 1, len(run.records), (record(),), T0, status="failed", finished=True, alerts=(alert(),))
    await store.begin_run(run, "w1", 10_000, first)
    assert await store.next_alert_ms() == T0


async def test_a_cause_is_told_once_to_each_address(store: Store) -> None:
    assert await store.add_alerts((alert(), alert(), alert(channel="webhook"))) == 2
    assert await store.group_alerts(T0, EVERY) == 2
    assert await store.add_alerts((alert(),)) == 0
    assert await store.group_alerts(T0 + EVERY, EVERY) == 0


async def test_alerts_to_one_address_are_grouped(store: Store) -> None:
    await store.add_alerts((alert("a"), alert("b"), replace(alert("c"), target="ada@example.org")))
    assert await store.group_alerts(T0, EVERY) == 2
    claimed = await store.claim_alert_messages(T0, 90_000, 10)
    assert sorted(message.target for message in claimed) == ["", "ada@example.org"]
    first = next(message for message in claimed if message.target == "")
    assert [each.run_id for each in await store.alerts_of(first.id, 10)] == ["a", "b"]
    assert [each.run_id for each in await store.alerts_of(first.id, 1)] == ["a"]
    assert await store.count_alerts_of(first.id) == [AlertCount("run.failed", "expense", 2)]
    for message in claimed:
        await store.record_alert_message(message.id, 1, "sent", T0)
    # What comes up meanwhile waits for the next.
    await store.add_alerts((alert("d", at_ms=T0 + 1),))
    await store.add_alerts((alert("e", at_ms=T0 + 2),))
    assert await store.group_alerts(T0 + EVERY - 1, EVERY) == 0
    assert await store.group_alerts(T0 + EVERY, EVERY) == 1
    (second,) = await store.claim_alert_messages(T0 + EVERY, 90_000, 1)
    assert second.id != first.id and len(await store.alerts_of(second.id, 10)) == 2


async def test_two_that_group_at_once_make_one_message(store: Store) -> None:
    await store.add_alerts((alert("a"), alert("b")))
    assert sum(await asyncio.gather(*(store.group_alerts(T0, EVERY) for _ in range(5)))) == 1


async def test_an_alert_that_is_not_due_waits(store: Store) -> None:
    await store.add_alerts((replace(alert(), due_at_ms=T0 + 50),))
    assert await store.next_alert_ms() == T0 + 50
    assert await store.group_alerts(T0 + 49, EVERY) == 0 and await store.group_alerts(T0 + 50, EVERY) == 1


async def test_a_wait_that_is_closed_is_not_late(store: Store) -> None:
    late = AlertRow("waiting:r:ask!1", "email", "", "run.waiting", "expense", "r", "ask!1", T0, T0)
    await store.add_alerts((late,))
    assert await store.group_alerts(T0, EVERY) == 0
    assert await store.next_alert_ms() is None


async def test_messages_are_claimed_and_settled_by_attempt(store: Store) -> None:
    await store.add_alerts((alert(channel="workflow", target="notify"),))
    (message,) = await store.claim_alert_messages(T0, 90_000, 10)
    assert (message.target, message.run_id, message.attempts) == ("notify", "r", 1)
    assert await store.claim_alert_messages(T0, 90_000, 10) == []
    assert await store.record_alert_message(message.id, 1, "pending", T0, T0 + 5, "no answer")
    (again,) = await store.claim_alert_messages(T0 + 5, 90_000, 10)
    assert (again.attempts, again.error) == (2, "no answer")
    assert not await store.record_alert_message(message.id, 1, "failed", T0 + 6)
    assert await store.record_alert_message(message.id, 2, "sent", T0 + 6)
    assert await store.next_alert_ms() is None


async def test_a_claim_of_a_message_is_kept_and_freed(store: Store) -> None:
    await store.add_alerts((alert(channel="workflow", target="notify"),))
    (message,) = await store.claim_alert_messages(T0, 15_000, 10)
    assert await store.keep_alert_message(message.id, 1, T0 + 30_000)
    assert await store.claim_alert_messages(T0 + 29_999, 15_000, 10) == []
    assert await store.keep_alert_message(message.id, 1, T0 + 1, False)
    (again,) = await store.claim_alert_messages(T0 + 1, 15_000, 10)
    assert again.attempts == 1, "the first sent nothing"
    assert await store.keep_alert_message(message.id, 1, T0 + 2)
    (again,) = await store.claim_alert_messages(T0 + 2, 15_000, 10)
    assert again.attempts == 2
    assert not await store.keep_alert_message(message.id, 1, T0 + 9), "another has it"
    assert await store.record_alert_message(message.id, 2, "sent", T0 + 6)
    assert not await store.keep_alert_message(message.id, 2, T0 + 9)


async def test_runs_that_no_worker_has_begun(store: Store) -> None:
    for id in ("a", "b"):
        await store.create_run(new_run(id))
    await owned_run(store, "busy")
    assert {run.id for run in await store.queued_since(T0 + 1)} == {"a", "b"}
    assert await store.queued_since(T0) == []
    await store.add_alerts((AlertRow("queued:a", "email", "", "run.queued", "expense", "a", "", T0, T0),))
    assert [run.id for run in await store.queued_since(T0 + 1)] == ["b"]


async def test_alerts_go_with_their_run_and_when_they_are_old(store: Store) -> None:
    for id in ("r", "s"):
        await owned_run(store, id)
        await fail(store, id, alert(id), alert(id, "workflow", "notify"))
    assert await store.delete_runs(["r"]) == ["r"]
    assert await store.group_alerts(T0, EVERY) == 1
    messages = await store.claim_alert_messages(T0, 90_000, 10)
    assert sorted(message.run_id for message in messages) == ["", "s"]
    grouped = next(message for message in messages if not message.run_id)
    assert [each.run_id for each in await store.alerts_of(grouped.id, 10)] == ["s"]
    for message in messages:
        await store.record_alert_message(message.id, 1, "sent", T0 + 1)
    assert await store.delete_old_alerts(T0 + 1, 10) == 0
    assert await store.delete_old_alerts(T0 + 2, 1) == 1 and await store.delete_old_alerts(T0 + 2, 9) == 1
