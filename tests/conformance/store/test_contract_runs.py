"""Workflows, runs, leases: promises 4 and 5."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from executor.errors import Conflict
from executor.kernel.store.run_rows import ClockRepair, RunRow, new_row
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from tests.support.rows import LEASE_MS, T0, change, finish, new_run, owned_run, record, row


async def test_a_new_run_is_queued_and_due(store: Store) -> None:
    run, created = await store.create_run(new_run("run-1", parent_run_id="up", parent_key="call@review#2"))
    assert created
    assert run == RunRow(
        id="run-1",
        workflow="expense",
        version=1,
        plan_hash="plan-1",
        status="queued",
        input=b'{"amount":5}',
        output=None,
        error=None,
        seq=1,
        epoch=0,
        lease_owner=None,
        lease_until_ms=None,
        next_run_at_ms=T0,
        idempotency_key=None,
        request_hash="",
        parent_run_id="up",
        parent_key="call@review#2",
        created_at_ms=T0,
        started_at_ms=None,
        finished_at_ms=None,
        stalls=0,
        root_id="up",
    )
    assert await store.get_run("run-1") == run
    assert await store.get_run("run-2") is None
    assert [event.type for event in await store.read_events("run-1")] == ["run.started"]
    assert await store.get_plan("plan-1") == b'{"plan":1}'
    assert await store.get_plan("plan-2") is None


async def test_an_idempotency_key_gives_the_first_run(store: Store) -> None:
    first, _ = await store.create_run(new_run("run-1", idempotency_key="k", request_hash="h1"))
    again, created = await store.create_run(new_run("run-2", T0 + 5, idempotency_key="k", request_hash="h2"))
    assert (again, created) == (first, False)
    assert await store.get_run("run-2") is None
    assert await store.read_events("run-2") == []
    _, created = await store.create_run(new_run("run-3", workflow="other", idempotency_key="k"))
    assert created  # a key belongs to its workflow


async def test_a_new_run_can_be_created_owned_and_begun_at_once(store: Store) -> None:
    run = new_run("run-1", idempotency_key="k", request_hash="h1")
    claimed = RunRow(**{**structs.asdict(new_row(run, None)), "epoch": 1})
    first = change(claimed, record("node.started"))
    stored, created = await store.begin_run(run, "w1", LEASE_MS, first)
    assert (created, stored) == (True, new_row(run, None)), "what `create_run` says"
    begun = await row(store, "run-1")
    assert (begun.status, begun.seq, begun.epoch, begun.stalls) == ("running", 2, 1, 0)
    assert (begun.lease_owner, begun.lease_until_ms, begun.started_at_ms) == ("w1", T0 + LEASE_MS, T0)
    assert [event.type for event in await store.read_events("run-1")] == ["run.started", "node.started"]
    assert await store.claim("w2", T0, LEASE_MS) == []
    assert await store.renew("w1", ["run-1"], T0 + 1, LEASE_MS) == {"run-1"}

    other = structs.replace(run, id="run-2")
    again, created = await store.begin_run(other, "w2", LEASE_MS, structs.replace(first, run_id="run-2"))
    assert (again.id, created) == ("run-1", False)
    assert await store.get_run("run-2") is None
    assert (await row(store, "run-1")) == structs.replace(begun, lease_until_ms=T0 + 1 + LEASE_MS)
    await store.append(change(begun, record("node.succeeded")))


async def test_a_new_run_may_end_at_once(store: Store) -> None:
    """What is stored is the same as when it is created, owned and ended in commits of their own."""
    run = new_run("run-1", idempotency_key="k", request_hash="h1")
    claimed = RunRow(**{**structs.asdict(new_row(run, None)), "epoch": 1})
    events = (record("node.succeeded", output=b"7"), record("run.finished"))
    first = structs.replace(change(claimed, *events), status="succeeded", output=b"7", finished=True, now_ms=T0 + 5)
    assert await store.begin_run(run, "w1", LEASE_MS, first) == (new_row(run, None), True)
    ended = await row(store, "run-1")
    assert (ended.status, ended.seq, ended.epoch, ended.output, ended.error) == ("succeeded", 3, 1, b"7", None)
    assert (ended.started_at_ms, ended.finished_at_ms, ended.stalls) == (T0, T0 + 5, 0)
    assert (ended.lease_owner, ended.next_run_at_ms) == (None, None)
    found = await store.read_events("run-1")
    assert [(event.seq, event.type) for event in found] == [
        (1, "run.started"),
        (2, "node.succeeded"),
        (3, "run.finished"),
    ]
    assert found[1].output == b"7"
    assert await store.get_plan("plan-1") == b'{"plan":1}'
    assert await store.claim("w2", T0 + LEASE_MS, LEASE_MS) == []
    assert await store.post_message("run-1", b"late", T0 + 6) is False

    other = await store.create_run(new_run("run-2"))
    (owned,) = await store.claim("w1", T0, LEASE_MS)
    assert owned.id == other[0].id
    await store.append(
        structs.replace(change(owned, *events), status="succeeded", output=b"7", finished=True, now_ms=T0 + 5)
    )
    twin = await row(store, "run-2")
    assert structs.replace(twin, id="run-1", idempotency_key="k", request_hash="h1") == ended

    again = await store.begin_run(
        structs.replace(run, id="run-3"), "w1", LEASE_MS, structs.replace(first, run_id="run-3")
    )
    assert (again[0].id, again[1]) == ("run-1", False)
    assert await store.get_run("run-3") is None


async def test_concurrent_submits_with_one_key_make_one_run(store: Store) -> None:
    results = await asyncio.gather(*(store.create_run(new_run(f"run-{i}", idempotency_key="k")) for i in range(25)))
    assert sum(created for _, created in results) == 1
    assert len({run.id for run, _ in results}) == 1


async def test_a_run_id_is_used_once(store: Store) -> None:
    await store.create_run(new_run("run-1"))
    with pytest.raises(Conflict):
        await store.create_run(new_run("run-1", T0 + 1))
    assert (await row(store, "run-1")).created_at_ms == T0


async def test_list_runs_pages_from_the_newest(store: Store) -> None:
    for i in range(7):
        await store.create_run(new_run(f"run-{i}", T0 + i // 2, workflow="ab"[i % 2]))  # pairs share a time
    await store.claim("w1", T0, LEASE_MS, run_id="run-1")

    async def ids(**where: object) -> list[str]:
        return [run.id for run in await store.list_runs(**where)]  # type: ignore[arg-type]

    assert await ids() == ["run-6", "run-5", "run-4", "run-3", "run-2", "run-1", "run-0"]
    assert await ids(limit=3) == ["run-6", "run-5", "run-4"]
    assert await ids(before="run-4", limit=3) == ["run-3", "run-2", "run-1"]
    assert await ids(before="run-0") == []
    assert await ids(before="no such run") == []
    assert await ids(workflow="a") == ["run-6", "run-4", "run-2", "run-0"]
    assert await ids(workflow="b", before="run-5") == ["run-3", "run-1"]
    assert await ids(status="running") == ["run-1"]
    assert await ids(workflow="a", status="running") == []


async def test_claim_leases_what_is_due_oldest_first(store: Store) -> None:
    for id, due in (("late", T0 + 50), ("first", T0), ("second", T0 + 10)):
        await store.create_run(new_run(id, due))
    assert await store.claim("w1", T0 - 1, LEASE_MS) == []

    (run,) = await store.claim("w1", T0 + 20, LEASE_MS)
    assert (run.id, run.epoch, run.stalls, run.status) == ("first", 1, 1, "running")
    assert (run.lease_owner, run.lease_until_ms, run.started_at_ms) == ("w1", T0 + 20 + LEASE_MS, T0 + 20)
    assert (run.pool, run.fair) == ("default", "expense")
    assert await row(store, "first") == structs.replace(run, pool="", fair="")

    assert [run.id for run in await store.claim("w1", T0 + 60, LEASE_MS, limit=10)] == ["second", "late"]
    assert await store.claim("w1", T0 + 60, LEASE_MS, limit=10) == []


async def test_claim_can_be_narrowed_to_one_run(store: Store) -> None:
    for id in ("a", "b"):
        await store.create_run(new_run(id))
    assert [run.id for run in await store.claim("w1", T0, LEASE_MS, run_id="b")] == ["b"]
    assert await store.claim("w1", T0, LEASE_MS, run_id="b") == []
    assert await store.claim("w1", T0, LEASE_MS, run_id="c") == []


async def test_a_lapsed_lease_is_claimed(store: Store) -> None:
    run = await owned_run(store)
    until = T0 + LEASE_MS
    assert await store.claim("w2", until - 1, LEASE_MS) == []
    (taken,) = await store.claim("w2", until, LEASE_MS)
    assert (taken.id, taken.lease_owner, taken.epoch, taken.stalls) == (run.id, "w2", 2, 2)
    assert taken.started_at_ms == T0


async def test_a_claim_is_a_lease_on_all_that_a_worker_has(store: Store) -> None:
    await owned_run(store, "first")
    await store.create_run(new_run("second", T0 + 100))
    assert len(await store.claim("w1", T0 + 100, LEASE_MS)) == 1
    assert (await row(store, "first")).lease_until_ms == T0 + 100 + LEASE_MS
    assert await store.claim("w2", T0 + LEASE_MS, LEASE_MS, limit=9) == []
    assert len(await store.claim("w2", T0 + 100 + LEASE_MS, LEASE_MS, limit=9)) == 2


async def test_concurrent_claims_never_share_a_run(store: Store) -> None:
    for i in range(40):
        await store.create_run(new_run(f"run-{i:02}"))
    claimed = await asyncio.gather(*(store.claim(f"w{i}", T0, LEASE_MS, limit=3) for i in range(20)))
    ids = [run.id for runs in claimed for run in runs]
    assert len(ids) == len(set(ids)) == 40


async def test_stalls_count_claims_without_progress(store: Store) -> None:
    await store.create_run(new_run("run-1"))
    for i in range(1, 4):
        (run,) = await store.claim("w1", T0 + i * LEASE_MS, LEASE_MS)
        assert (run.stalls, run.epoch) == (i, i)
    await store.append(change(run, record()))
    assert (await row(store, "run-1")).stalls == 0


async def test_renew_extends_what_is_still_held(store: Store) -> None:
    for id in ("a", "b", "c", "d"):
        await owned_run(store, id)
    await owned_run(store, "e", owner="w3")
    await store.claim("w2", T0 + LEASE_MS, LEASE_MS, run_id="b")
    await finish(store, await row(store, "c"))
    now = T0 + LEASE_MS + 1
    assert await store.renew("w1", ["a", "b", "c", "nothing", "e"], now, LEASE_MS) == {"a"}
    assert (await row(store, "a")).lease_until_ms == now + LEASE_MS
    assert (await row(store, "b")).lease_until_ms == T0 + 2 * LEASE_MS
    assert (await row(store, "d")).lease_owner is None, "its owner has dropped it"
    assert [found.id for found in await store.claim("w2", now, LEASE_MS, run_id="d")] == ["d"]
    assert (await row(store, "e")).lease_until_ms == T0 + LEASE_MS
    assert await store.renew("unknown", ["a"], now, LEASE_MS) == set()
    assert await store.renew("w1", [], now, LEASE_MS) == set()


async def test_release_frees_the_lease(store: Store) -> None:
    run = await owned_run(store)
    assert await store.release(run.id, run.epoch, run.seq, T0 + 500, "waiting")
    freed = await row(store, run.id)
    assert (freed.status, freed.lease_owner, freed.lease_until_ms) == ("waiting", None, None)
    assert (freed.next_run_at_ms, freed.epoch) == (T0 + 500, run.epoch)
    assert await store.renew("w1", [run.id], T0, LEASE_MS) == set()
    assert await store.claim("w2", T0 + 499, LEASE_MS) == []
    assert len(await store.claim("w2", T0 + 500, LEASE_MS)) == 1


async def test_who_gives_a_run_up_was_not_taken_down_by_it(store: Store) -> None:
    run = await owned_run(store)
    (again,) = await store.claim("w2", T0 + LEASE_MS + 1, LEASE_MS)
    assert again.stalls > 1
    assert await store.release(again.id, again.epoch, again.seq, T0, "running")
    assert (await row(store, run.id)).stalls == 0


async def test_without_a_due_time_only_a_fact_wakes_a_run(store: Store) -> None:
    run = await owned_run(store)
    assert await store.release(run.id, run.epoch, run.seq, None, "waiting")
    assert await store.claim("w2", T0 + 10**10, LEASE_MS) == []
    assert await store.next_due() is None
    assert await store.post_message(run.id, b"{}", T0 + 7)
    assert await store.next_due() == T0 + 7
    assert len(await store.claim("w2", T0 + 7, LEASE_MS)) == 1


async def test_release_is_refused_when_anything_moved(store: Store) -> None:
    run = await owned_run(store)
    assert not await store.release(run.id, run.epoch - 1, run.seq, None, "waiting")
    assert not await store.release(run.id, run.epoch, run.seq + 1, None, "waiting")
    assert not await store.release("no such run", 1, 1, None, "waiting")
    assert await row(store, run.id) == run

    await store.post_message(run.id, b"answer", T0 + 1)
    assert not await store.release(run.id, run.epoch, run.seq, None, "waiting")
    assert (await row(store, run.id)).lease_owner == "w1"
    (fact,) = await store.read_inbox(run.id)
    await store.append(change(run, record(), consumed_inbox=(fact.n,)))
    assert await store.release(run.id, run.epoch, run.seq + 1, None, "waiting")


async def test_a_released_run_takes_its_inbox_along(store: Store) -> None:
    """Its owner ends: the next one must not have to wait until the lease lapses."""
    run = await owned_run(store)
    await store.post_message(run.id, b"answer", T0 + 1)
    assert await store.release(run.id, run.epoch, run.seq, T0 + 2, "running")
    assert len(await store.claim("w2", T0 + 2, LEASE_MS)) == 1
    assert [row.message for row in await store.read_inbox(run.id)] == [b"answer"]


async def test_release_does_not_revive_an_ended_run(store: Store) -> None:
    run = await owned_run(store)
    await finish(store, run)
    ended = await row(store, run.id)
    assert not await store.release(run.id, ended.epoch, ended.seq, T0, "waiting")
    assert await row(store, run.id) == ended


@pytest.mark.parametrize("fact_first", [True, False])
async def test_a_fact_is_never_lost_to_a_release(store: Store, fact_first: bool) -> None:
    """Whichever comes first: either the owner keeps the run, or the run is due again."""
    for i in range(20):
        run = await owned_run(store, f"run-{i}")
        post = store.post_message(run.id, b"answer", T0 + 1)
        release = store.release(run.id, run.epoch, run.seq, None, "waiting")
        await asyncio.gather(*([post, release] if fact_first else [release, post]))
        now = await row(store, run.id)
        if now.lease_owner is None:
            assert now.next_run_at_ms == T0 + 1
            assert len(await store.claim("w2", T0 + 1, LEASE_MS, run_id=run.id)) == 1
        else:
            assert now == run
        assert [row.message for row in await store.read_inbox(run.id)] == [b"answer"]


async def test_next_due_is_the_first_time_claim_finds_something(store: Store) -> None:
    assert await store.next_due() is None
    await store.create_run(new_run("later", T0 + 1000))
    await store.create_run(new_run("now", T0))
    assert await store.next_due() == T0

    (run,) = await store.claim("w1", T0, LEASE_MS)
    assert await store.next_due() == T0 + 1000
    await finish(store, run)
    (run,) = await store.claim("w1", T0 + 1000, LEASE_MS)
    until = T0 + 1000 + LEASE_MS
    assert await store.next_due() == until
    assert await store.claim("w2", until - 1, LEASE_MS) == []
    assert len(await store.claim("w2", until, LEASE_MS)) == 1


async def test_a_clock_set_back_keeps_no_run_from_being_claimed(store: Store) -> None:
    """Written a day ahead: a lease, a fact, a new run. Only a pause that the workflow asked for keeps its time."""
    ahead = T0 + 86_400_000
    leased = await owned_run(store, "leased", now_ms=ahead, owner="w9")
    parked = await owned_run(store, "parked")
    assert await store.release(parked.id, parked.epoch, parked.seq, ahead, "waiting")
    answered = await owned_run(store, "answered")
    assert await store.release(answered.id, answered.epoch, answered.seq, None, "waiting")
    assert await store.post_message(answered.id, b"answer", ahead)
    await store.create_run(new_run("queued", ahead))
    held = await owned_run(store, "held")
    assert await store.claim("w2", T0, LEASE_MS, limit=9) == []

    assert await store.repair_clock_skew(T0, LEASE_MS) == ClockRepair(3, ahead - T0)
    assert {run.id for run in await store.claim("w2", T0, LEASE_MS, limit=9)} == {"leased", "answered", "queued"}
    assert (await row(store, "leased")).epoch == leased.epoch + 1, "who held it is fenced"
    assert (await row(store, parked.id)).next_run_at_ms == ahead
    assert await row(store, held.id) == held, "a lease of now stays"
    assert await store.repair_clock_skew(T0, LEASE_MS) == ClockRepair(0, 0)


async def test_ping(store: Store) -> None:
    await store.ping()


async def test_a_claim_says_whose_run_it_was_and_whether_that_one_had_more(store: Store) -> None:
    for id in ("a", "b"):
        await owned_run(store, id, owner="gone")
    await owned_run(store, "c", owner="gone as well")
    later = T0 + 2 * LEASE_MS
    [first] = await store.claim("w2", later, LEASE_MS, run_id="a")
    assert (first.lease_owner, first.former_owner, first.lost_together) == ("w2", "gone", True)
    rest = {run.id: run for run in await store.claim("w2", later, LEASE_MS, limit=10)}
    assert (rest["b"].former_owner, rest["b"].lost_together) == ("gone", False)  # the last of its runs
    assert (rest["c"].former_owner, rest["c"].lost_together) == ("gone as well", False)
    assert (await row(store, "a")).former_owner is None
    await store.release("a", first.epoch, first.seq, later, "running")
    [again] = await store.claim("w3", later, LEASE_MS, run_id="a")
    assert (again.former_owner, again.lost_together) == (None, False)


async def test_the_outputs_of_a_run_have_a_size(store: Store) -> None:
    run = await owned_run(store)
    assert await store.output_bytes(run.id) == await store.output_bytes("none") == 0
    big = record(data=b'{"blob":"sha","size":1000}')
    await store.append(change(run, record(output=b"x" * 7), big, record(), blobs=(("sha", b"y" * 1000),)))
    assert await store.output_bytes(run.id) == 1007


async def test_last_seqs_of_many_runs(store: Store) -> None:
    first = await owned_run(store, "run-1")
    await store.create_run(new_run("run-2"))
    await store.append(change(first, record(), record()))
    assert await store.last_seqs(["run-2", "run-1", "no-such-run"]) == {"run-1": 3, "run-2": 1}
    assert await store.last_seqs([]) == {}


async def test_a_version_is_another_one_after_each_commit(store: Store) -> None:
    """Databases that have none return None; SQLite has one."""
    versions = [await store.version()]
    for run in ("run-1", "run-2"):
        await owned_run(store, run)
        versions.append(await store.version())
        await store.list_runs()
        assert await store.version() == versions[-1], "a read changes nothing"
    assert len({*versions}) == (3 if isinstance(store, SQLiteStore) else 1)


async def test_runs_are_found_by_a_range_of_keys_the_last_ones_first(store: Store) -> None:
    for n, (workflow, key) in enumerate(
        [("w", "a:1"), ("w", "a:3"), ("w", "a:2"), ("w", "a;1"), ("w", "Z"), ("w", None), ("v", "a:2")]
    ):
        await store.create_run(new_run(f"r{n}", workflow=workflow, idempotency_key=key))
    found = await store.runs_by_key("w", "a:", "a:9", 10)
    assert [(row.id, row.idempotency_key) for row in found] == [("r1", "a:3"), ("r2", "a:2"), ("r0", "a:1")]
    assert [row.id for row in await store.runs_by_key("w", "a:", "a:9", 1)] == ["r1"]
    assert [row.id for row in await store.runs_by_key("v", "a:2", "a:2", 10)] == ["r6"]
    assert await store.runs_by_key("w", "b", "c", 10) == []
