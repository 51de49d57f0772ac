"""The outbox: messages about waits, given to one sender at a time, and never for a wait that is over."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from executor.errors import Fenced
from executor.kernel.store.topics.outbox import NotificationRow
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.waits import WaitUpdate
from tests.support.rows import T0, change, finish, owned_run, record, wait

LEASE = 60_000


def message(run_id: str, wait_id: str = "ask!1", n: int = 1, **fields: Any) -> NotificationRow:
    return NotificationRow(
        run_id=run_id,
        wait_id=wait_id,
        n=n,
        channel=fields.pop("channel", "email"),
        content=b'["to"]',
        status="pending",
        attempts=0,
        created_at_ms=T0,
        due_at_ms=fields.pop("due_at_ms", T0),
        **fields,
    )


async def opened(store: Store, *messages: NotificationRow, run_id: str = "run-1") -> None:
    run = await owned_run(store, run_id)
    ids = dict.fromkeys(row.wait_id for row in messages)
    await store.append(
        change(run, record("wait.opened"), waits=tuple(wait(run_id, id) for id in ids), notifications=messages)
    )


async def test_a_message_is_claimed_once_per_lease(store: Store) -> None:
    await opened(store, message("run-1"), message("run-1", n=2, due_at_ms=T0 + 5))
    assert await store.next_notification_ms() == T0
    assert await store.claim_notifications(T0 - 1, LEASE, 10) == []
    (first,) = await store.claim_notifications(T0, LEASE, 10)
    assert (first.n, first.attempts, first.due_at_ms, first.content) == (1, 1, T0 + LEASE, b'["to"]')
    assert [row.n for row in await store.claim_notifications(T0 + 5, LEASE, 10)] == [2]
    assert await store.claim_notifications(T0 + LEASE - 1, LEASE, 10) == []
    (again,) = await store.claim_notifications(T0 + LEASE, LEASE, 10)
    assert (again.n, again.attempts) == (1, 2)


async def test_fifty_senders_do_not_send_one_message_twice(store: Store) -> None:
    await opened(store, *(message("run-1", n=n) for n in range(1, 31)))
    claims = await asyncio.gather(*(store.claim_notifications(T0, LEASE, 2) for _ in range(50)))
    claimed = [row.n for rows in claims for row in rows]
    assert sorted(claimed) == list(range(1, 31))


async def test_how_an_attempt_ends(store: Store) -> None:
    await opened(store, *(message("run-1", n=n) for n in (1, 2, 3)))
    await store.claim_notifications(T0, LEASE, 10)
    assert await store.record_notification("run-1", "ask!1", 1, 1, "sent", T0 + 7)
    assert await store.record_notification("run-1", "ask!1", 2, 1, "failed", T0 + 8, error="no such host")
    assert await store.record_notification("run-1", "ask!1", 3, 1, "pending", T0 + 9, T0 + 100, "busy")
    sent, failed, waiting = await store.list_notifications([("run-1", "ask!1")])
    assert (sent.status, sent.settled_at_ms, sent.error) == ("sent", T0 + 7, None)
    assert (failed.status, failed.settled_at_ms, failed.error) == ("failed", T0 + 8, "no such host")
    assert (waiting.status, waiting.settled_at_ms, waiting.error, waiting.due_at_ms) == (
        "pending",
        None,
        "busy",
        T0 + 100,
    )
    assert await store.next_notification_ms() == T0 + 100
    (retried,) = await store.claim_notifications(T0 + 100, LEASE, 10)
    assert (retried.n, retried.attempts) == (3, 2)


async def test_who_slept_through_its_lease_settles_nothing(store: Store) -> None:
    await opened(store, message("run-1"))
    await store.claim_notifications(T0, LEASE, 1)
    await store.claim_notifications(T0 + LEASE, LEASE, 1)
    assert not await store.record_notification("run-1", "ask!1", 1, 1, "failed", T0 + LEASE, error="late")
    assert await store.record_notification("run-1", "ask!1", 1, 2, "sent", T0 + LEASE + 1)
    assert not await store.record_notification("run-1", "ask!1", 9, 1, "sent", T0)
    (row,) = await store.list_notifications([("run-1", "ask!1")])
    assert (row.status, row.error) == ("sent", None)


async def test_a_claim_that_is_kept_lasts_longer(store: Store) -> None:
    await opened(store, message("run-1"))
    await store.claim_notifications(T0, LEASE, 1)
    assert await store.keep_notification("run-1", "ask!1", 1, 1, T0 + 2 * LEASE)
    assert await store.claim_notifications(T0 + 2 * LEASE - 1, LEASE, 1) == []
    (again,) = await store.claim_notifications(T0 + 2 * LEASE, LEASE, 1)
    assert again.attempts == 2
    assert not await store.keep_notification("run-1", "ask!1", 1, 1, T0 + 9 * LEASE), "another has it"
    assert not await store.keep_notification("run-1", "ask!1", 9, 1, T0)
    assert await store.next_notification_ms() == T0 + 3 * LEASE


@pytest.mark.parametrize("counts", [True, False])
async def test_a_claim_that_is_freed_is_found_at_once(store: Store, counts: bool) -> None:
    await opened(store, message("run-1"))
    await store.claim_notifications(T0, LEASE, 1)
    assert await store.keep_notification("run-1", "ask!1", 1, 1, T0 + 1, counts)
    (row,) = await store.list_notifications([("run-1", "ask!1")])
    assert (row.status, row.attempts, row.due_at_ms) == ("pending", int(counts), T0 + 1)
    (again,) = await store.claim_notifications(T0 + 1, LEASE, 1)
    assert again.attempts == 1 + counts


async def test_what_is_settled_is_not_kept(store: Store) -> None:
    await opened(store, message("run-1"))
    await store.claim_notifications(T0, LEASE, 1)
    assert await store.record_notification("run-1", "ask!1", 1, 1, "sent", T0 + 1)
    assert not await store.keep_notification("run-1", "ask!1", 1, 1, T0 + LEASE)
    assert await store.next_notification_ms() is None


@pytest.mark.parametrize("how", ["answered", "expired", "cancelled", "closed by the owner", "run ended"])
async def test_no_message_about_a_wait_that_is_over(store: Store, how: str) -> None:
    await opened(store, message("run-1"), message("run-1", "other!1", due_at_ms=T0 + 10**6))
    token = wait("run-1").token_hash
    run = await store.get_run("run-1")
    assert run is not None
    match how:
        case "answered":
            await store.answer_wait(token, b"{}", "ada", b"fact", T0)
        case "expired":
            await store.expire_wait("run-1", "ask!1", b"fact", T0)
        case "cancelled":
            await store.cancel_wait("run-1", "ask!1", "ada", b"fact", T0)
        case "closed by the owner":
            await store.append(change(run, record(), closed_waits=(WaitUpdate("ask!1", "cancelled", at_ms=T0),)))
        case _:
            await finish(store, run)
    assert await store.claim_notifications(T0 + 1, LEASE, 10) == []
    told, other = await store.list_notifications([("run-1", "ask!1"), ("run-1", "other!1")])
    assert (told.status, told.attempts, told.settled_at_ms) == ("cancelled", 0, T0 + 1)
    assert other.status == "pending"  # nothing is looked at before it is due
    claimed = await store.claim_notifications(T0 + 10**6, LEASE, 10)
    assert [row.wait_id for row in claimed] == ([] if how == "run ended" else ["other!1"])
    (other,) = await store.list_notifications([("run-1", "other!1")])
    assert other.status == ("cancelled" if how == "run ended" else "pending")


async def test_a_message_that_got_out_in_time_counts_as_sent(store: Store) -> None:
    """The wait was answered while the message was being sent, and another sender tidied up before it was through."""
    await opened(store, message("run-1"), message("run-1", n=2, due_at_ms=T0 + 1))
    (first,) = await store.claim_notifications(T0, LEASE, 10)
    await store.answer_wait(wait("run-1").token_hash, b"{}", "ada", b"fact", T0)
    assert await store.claim_notifications(T0 + 1, LEASE, 10) == []
    assert await store.record_notification("run-1", "ask!1", 1, first.attempts, "sent", T0 + 2)
    assert [row.status for row in await store.list_notifications([("run-1", "ask!1")])] == ["sent", "cancelled"]


async def test_a_fenced_append_leaves_no_message(store: Store) -> None:
    run = await owned_run(store)
    bad = change(run, record(), expected_seq=9, waits=(wait(run.id),), notifications=(message(run.id),))
    with pytest.raises(Fenced):
        await store.append(bad)
    assert await store.list_notifications([(run.id, "ask!1")]) == []
    assert await store.next_notification_ms() is None


async def test_messages_are_listed_by_wait(store: Store) -> None:
    await opened(store, message("run-1", n=2), message("run-1"), message("run-1", "b'\"!1"))
    await opened(store, message("run-2"), run_id="run-2")
    found = await store.list_notifications([("run-2", "ask!1"), ("run-1", "ask!1")])
    assert [(row.run_id, row.wait_id, row.n) for row in found] == [
        ("run-1", "ask!1", 1),
        ("run-1", "ask!1", 2),
        ("run-2", "ask!1", 1),
    ]
    assert len(await store.list_notifications([("run-1", "b'\"!1")])) == 1
    assert await store.list_notifications([]) == []
