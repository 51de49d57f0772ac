from __future__ import annotations

from executor.kernel.store.topics.secrets import KeyRow, Relinked
from executor.kernel.store.topics.store import Store
from tests.support.rows import T0, change, owned_run, wait

OLD, NEW = "k1", "k2"


async def test_the_first_key_is_taken_and_stays(store: Store) -> None:
    assert await store.claim_key(OLD, T0) == OLD
    assert await store.claim_key(NEW, T0 + 1) == OLD
    assert await store.claim_key(OLD, T0 + 2) == OLD
    assert await store.list_keys() == [KeyRow(OLD, T0, None)]


async def test_a_key_before_counts_for_a_time_which_may_be_changed(store: Store) -> None:
    await store.claim_key(OLD, T0)
    assert not await store.change_key(OLD, T0, T0 + 9)
    assert await store.change_key(NEW, T0 + 1, T0 + 100)
    assert await store.list_keys() == [KeyRow(OLD, T0, T0 + 100), KeyRow(NEW, T0 + 1, None)]
    assert await store.change_key(NEW, T0 + 2, T0 + 2)
    assert await store.list_keys() == [KeyRow(OLD, T0, T0 + 2), KeyRow(NEW, T0 + 1, None)]
    assert not await store.change_key(NEW, T0 + 3, T0 + 100), "what is over stays over"
    assert await store.claim_key(OLD, T0 + 4) == NEW
    assert await store.change_key(OLD, T0 + 5, T0 + 50), "back again"
    assert await store.list_keys() == [KeyRow(OLD, T0, None), KeyRow(NEW, T0 + 1, T0 + 50)]


async def test_open_waits_have_new_links_and_the_old_ones_count_for_a_time(store: Store) -> None:
    await store.claim_key(OLD, T0)
    run = await owned_run(store, "r")
    await store.append(change(run, waits=(wait("r", "a!1", token_hash="h1"), wait("r", "b!1", token_hash="h2"))))
    await store.change_key(NEW, T0 + 1, T0 + 10)
    changes = [Relinked("r", "a!1", "h1", "n1", OLD), Relinked("r", "b!1", "h2", "n2", None)]
    assert await store.relink([*changes, Relinked("r", "c!1", "h3", "n3", OLD)]) == 2
    assert await store.relink(changes) == 0
    assert await store.find_wait("h1") is None
    found = await store.find_wait("n1")
    assert found is not None and found.id == "a!1"
    assert await store.find_old_wait("h1", T0 + 9) == found
    assert await store.find_old_wait("h1", T0 + 10) is None
    assert await store.find_old_wait("h2", T0 + 2) is None, "which key made it is not known"
    assert await store.find_old_wait("n1", T0 + 2) is None
    assert await store.answer_wait("n1", b"{}", "ada", b"m", T0 + 3) is not None
    assert await store.relink([Relinked("r", "a!1", "n1", "n4", NEW)]) == 0, "it is closed"
