"""How much there is to do, as metrics ask for it."""

from __future__ import annotations

from executor.kernel.store.topics.load import Queue, WorkerLoad
from executor.kernel.store.topics.outbox import NotificationRow
from executor.kernel.store.topics.store import Store
from tests.support.rows import LEASE_MS, T0, change, finish, new_run, owned_run, placed, record, wait


async def test_an_empty_database_has_nothing_to_do(store: Store) -> None:
    found = await store.load()
    assert (found.open, found.queues, found.waits, found.workers, found.notifications) == ({}, (), {}, (), 0)
    assert found.timer_due_ms is found.schedule_due_ms is found.notification_due_ms is None


async def test_runs_that_wait_for_a_worker_by_pool(store: Store) -> None:
    for run in (new_run("a", T0 + 5), new_run("b", T0 + 3), placed("c", T0 + 9, pool="slow")):
        await store.create_run(run)
    found = await store.load()
    assert found.open == {"queued": 3}
    assert found.queues == (Queue("default", 2, T0 + 3), Queue("slow", 1, T0 + 9))


async def test_runs_of_a_worker_are_in_no_queue(store: Store) -> None:
    await owned_run(store, "a", "w1")
    await owned_run(store, "b", "w1")
    await owned_run(store, "c", "w2")
    found = await store.load()
    assert (found.open, found.queues) == ({"running": 3}, ())
    until = T0 + LEASE_MS
    assert [(each.name, each.runs) for each in found.workers] == [("w1", 2), ("w2", 1)]
    assert all(isinstance(each, WorkerLoad) and each.until_ms >= until for each in found.workers)


async def test_what_sleeps_waits_and_is_to_be_sent(store: Store) -> None:
    run = await owned_run(store, "a")
    message = NotificationRow("a", "ask!1", 1, "email", b'"x"', "pending", 0, T0, T0 + 7)
    opened = change(run, record("wait.opened", "ask"), waits=(wait("a"),), notifications=(message,))
    appended = await store.append(opened)
    assert await store.release("a", run.epoch, appended.seq, T0 + 60_000, "waiting")
    other = await owned_run(store, "b")
    assert await store.release("b", other.epoch, other.seq, T0 + 20_000, "waiting")
    found = await store.load()
    assert (found.open, found.queues, found.timer_due_ms) == ({"waiting": 2}, (), T0 + 20_000)
    assert (found.waits, found.notifications, found.notification_due_ms) == ({"approval": 1}, 1, T0 + 7)


async def test_what_has_ended_is_not_counted(store: Store) -> None:
    run = await owned_run(store, "a")
    await finish(store, run)
    assert (await store.load()).open == {}
