"""The runs below one root: counted and bounded where they are made, over when the root is; cancels, which are heard."""

from __future__ import annotations

import pytest

from executor.errors import Fenced, LimitExceeded, Unheard
from executor.kernel.store.run_rows import NewRun, RunRow
from executor.kernel.store.topics.families import FamilyMax, FamilyRow
from executor.kernel.store.topics.store import Store
from tests.support.rows import LEASE_MS, T0, change, finish, new_run, owned_run, record, row


def child(parent: RunRow, id: str) -> NewRun:
    return new_run(id, parent_run_id=parent.id, parent_key=f"call-{id}!1")


async def start(store: Store, parent: RunRow, *ids: str, most: FamilyMax | None = None, bytes: int = 0) -> None:
    await store.append(
        change(
            await row(store, parent.id),
            record(),
            children=tuple(child(parent, id) for id in ids),
            root=parent.root_id or parent.id,
            family_max=most or FamilyMax(),
            output_bytes=bytes,
        )
    )


async def claimed(store: Store, id: str) -> RunRow:
    (run,) = await store.claim("w2", T0, LEASE_MS, run_id=id)
    return run


async def test_a_family_begins_with_its_first_child_and_has_all_below(store: Store) -> None:
    root = await owned_run(store)
    assert await store.get_family(root.id) is None
    await start(store, root, "a", "b", bytes=7)
    assert await store.get_family(root.id) == FamilyRow(2, 2, 7, False)
    a = await claimed(store, "a")
    assert (root.root_id, a.root_id, a.orphaned) == (None, root.id, False)
    await start(store, a, "c", bytes=5)
    assert (await row(store, "c")).root_id == root.id
    assert await store.get_family(root.id) == FamilyRow(3, 3, 12, False)
    await finish(store, await claimed(store, "c"))
    assert await store.get_family(root.id) == FamilyRow(3, 2, 12, False)
    assert await store.get_family("c") is None


async def test_an_append_says_how_the_family_stands(store: Store) -> None:
    root = await owned_run(store)
    assert (await store.append(change(root, record(), output_bytes=3))).family is None
    await start(store, root, "a")
    told = await store.append(change(await row(store, root.id), record(), root=root.id, output_bytes=4))
    assert told.family == FamilyRow(1, 1, 4, False)
    told = await store.append(change(await row(store, root.id), record(), root=root.id))
    assert told.family == FamilyRow(1, 1, 4, False)


@pytest.mark.parametrize(
    ("most", "code"), [(FamilyMax(2, 9), "limit_family_open"), (FamilyMax(9, 2), "limit_family_runs")]
)
async def test_a_child_too_many_is_not_made(store: Store, most: FamilyMax, code: str) -> None:
    root = await owned_run(store)
    await start(store, root, "a", "b", most=most)
    before = await row(store, root.id)
    with pytest.raises(LimitExceeded) as refused:
        await start(store, root, "c", most=most)
    assert (refused.value.code, bool(refused.value.hint)) == (code, True)
    assert await store.get_run("c") is None
    assert await row(store, root.id) == before
    assert await store.get_family(root.id) == FamilyRow(2, 2, 0, False)


async def test_the_bounds_hold_for_runs_further_below(store: Store) -> None:
    root = await owned_run(store)
    await start(store, root, "a")
    a = await claimed(store, "a")
    with pytest.raises(LimitExceeded):
        await start(store, a, "b", "c", most=FamilyMax(2, 9))
    await start(store, a, "b", most=FamilyMax(2, 9))


async def test_an_ended_child_makes_room_for_an_open_one_only(store: Store) -> None:
    root = await owned_run(store)
    await start(store, root, "a")
    await finish(store, await claimed(store, "a"))
    await start(store, root, "b", most=FamilyMax(1, 9))
    await finish(store, await claimed(store, "b"))
    with pytest.raises(LimitExceeded):
        await start(store, root, "c", most=FamilyMax(9, 2))


async def test_cancelling_the_root_marks_all_below(store: Store) -> None:
    root = await owned_run(store)
    await start(store, root, "a")
    a = await claimed(store, "a")
    await start(store, a, "b")
    assert await store.cancel_run(root.id, b"stop", T0)
    assert (await claimed(store, "b")).orphaned
    told = await store.append(change(await row(store, "a"), record(), root=root.id))
    assert told.family is not None and told.family.over
    await start(store, a, "late")  # what was under way; it ends when it is claimed
    assert (await claimed(store, "late")).orphaned


async def test_cancelling_a_run_orphans_what_is_below_it_and_nothing_else(store: Store) -> None:
    root = await owned_run(store)
    await start(store, root, "a", "b")
    await start(store, await claimed(store, "a"), "c")
    await start(store, await claimed(store, "c"), "d")
    assert await store.cancel_run("a", b"stop", T0)
    assert (await claimed(store, "d")).orphaned
    assert not (await claimed(store, "b")).orphaned
    family = await store.get_family(root.id)
    assert family is not None and not family.over
    assert [row.message for row in await store.read_inbox("a")] == [b"stop"]


async def test_the_end_of_the_root_marks_all_below(store: Store) -> None:
    root = await owned_run(store)
    await start(store, root, "a")
    await store.append(change(await row(store, root.id), record("run.finished", None), status="failed", root=root.id))
    assert (await claimed(store, "a")).orphaned


async def test_a_run_ends_only_when_it_has_heard_of_a_cancel(store: Store) -> None:
    run = await owned_run(store)
    assert await store.cancel_run(run.id, b"stop", T0)
    end = change(run, record("run.finished", None), status="succeeded", finished=True)
    with pytest.raises(Unheard):
        await store.append(end)
    now = await row(store, run.id)
    assert (now.status, now.seq, now.lease_owner) == ("running", 1, "w1")
    (fact,) = await store.read_inbox(run.id)
    with pytest.raises(Fenced):
        await store.append(change(run, record(), status="succeeded", finished=True, epoch=run.epoch + 1))
    await store.append(change(run, record(), status="cancelled", finished=True, consumed_inbox=(fact.n,)))
    assert (await row(store, run.id)).status == "cancelled"
    assert not await store.cancel_run(run.id, b"stop", T0)


async def test_a_cancel_that_was_consumed_before_delays_nothing(store: Store) -> None:
    run = await owned_run(store)
    await store.cancel_run(run.id, b"stop", T0)
    (fact,) = await store.read_inbox(run.id)
    await store.append(change(run, record("run.cancelling", None), consumed_inbox=(fact.n,)))
    await store.post_message(run.id, b"a signal", T0)  # ends with the run, as before
    await finish(store, run, "cancelled")


async def test_what_one_run_tells_another_to_cancel_is_heard_as_well(store: Store) -> None:
    root = await owned_run(store)
    await start(store, root, "a")
    await store.append(change(await row(store, root.id), record(), cancels=(("a", b"stop"),), root=root.id))
    a = await claimed(store, "a")
    with pytest.raises(Unheard):
        await finish(store, a)


async def test_an_append_says_what_is_in_the_inbox(store: Store) -> None:
    run = await owned_run(store)
    assert (await store.append(change(run, record()))).inbox_n == 0
    await store.post_message(run.id, b"fact", T0)
    await store.cancel_run(run.id, b"stop", T0)
    assert (await store.append(change(run, record(), expected_seq=2))).inbox_n == 2
    assert (await store.append(change(run, record(), expected_seq=3, consumed_inbox=(2,)))).inbox_n == 1
    assert (await store.append(change(run, record(), expected_seq=4, consumed_inbox=(1,)))).inbox_n == 0
    other = await owned_run(store, "run-2")
    await store.post_message(other.id, b"fact", T0)
    assert (await store.append(change(run, record(), expected_seq=5))).inbox_n == 0


async def test_a_family_goes_with_the_last_of_its_runs(store: Store) -> None:
    root = await owned_run(store)
    await start(store, root, "a")
    await finish(store, await claimed(store, "a"))
    await store.append(change(await row(store, root.id), status="succeeded", root=root.id))
    assert await store.delete_runs([root.id]) == [root.id]
    assert await store.get_family(root.id) is None
    assert await store.delete_runs(["a"]) == ["a"]
