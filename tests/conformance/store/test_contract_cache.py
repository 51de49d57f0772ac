"""Cached results: written with the success they came from, found until they expire."""

from __future__ import annotations

from typing import Any

import pytest

from executor.errors import Fenced
from executor.kernel.store.topics.cache import CacheRow
from executor.kernel.store.topics.store import Store
from tests.support.rows import T0, change, owned_run, record, row


def cached(key: str = "k", **fields: Any) -> CacheRow:
    given: dict[str, Any] = {
        "key": key,
        "scope": "workflow",
        "workflow": "expense",
        "run_id": "run-1",
        "block": "rate",
        "type": "http",
        "schema_sig": "",
        "route": "out",
        "created_at_ms": T0,
        "expires_at_ms": T0 + 1000,
        "output": b'{"rate":2}',
    }
    return CacheRow(**given | fields)


async def put(store: Store, *rows: CacheRow) -> None:
    if await store.get_run("run-1") is None:
        await owned_run(store)
    await store.append(change(await row(store, "run-1"), record(), cached=rows))


async def test_what_an_append_wrote_is_found_until_it_expires(store: Store) -> None:
    made = cached(route=None)
    await put(store, made)
    assert await store.find_cached("k", T0) == made
    assert await store.find_cached("k", T0 + 999) == made
    assert await store.find_cached("k", T0 + 1000) is None
    assert await store.find_cached("other", T0) is None


async def test_a_fenced_append_caches_nothing(store: Store) -> None:
    run = await owned_run(store)
    with pytest.raises(Fenced):
        await store.append(change(run, record(), epoch=9, cached=(cached(),)))
    assert await store.find_cached("k", T0) is None


async def test_the_newest_row_of_a_key_counts(store: Store) -> None:
    await put(store, cached())
    newer = cached(output=b'{"rate":3}', expires_at_ms=T0 + 5000, created_at_ms=T0 + 7)
    await put(store, newer)
    assert await store.find_cached("k", T0 + 2000) == newer


async def test_clearing_all_or_those_of_a_workflow(store: Store) -> None:
    await put(store, cached("a"), cached("b"), cached("c", workflow="other"))
    assert await store.clear_cache("none") == 0
    assert await store.clear_cache("expense") == 2
    assert await store.find_cached("a", T0) is None
    assert await store.find_cached("c", T0) is not None
    assert await store.clear_cache() == 1
    assert await store.clear_cache() == 0


async def test_a_deleted_workflow_leaves_no_results(store: Store) -> None:
    await store.put_workflow("old", b"{}", "h", T0)
    await put(store, cached("a", workflow="old"), cached("b", workflow="old", scope="global"), cached("c"))
    await store.delete_workflow("old")
    assert [await store.find_cached(key, T0) is not None for key in "abc"] == [False, False, True]


async def test_what_has_expired_goes_oldest_first(store: Store) -> None:
    await put(store, *(cached(f"k{n}", expires_at_ms=T0 + 5 - n) for n in range(5)))
    assert await store.delete_expired_cache(T0, 10) == 0
    assert await store.delete_expired_cache(T0 + 4, 2) == 2
    assert await store.find_cached("k4", T0) is None and await store.find_cached("k3", T0) is None
    assert await store.delete_expired_cache(T0 + 4, 10) == 2
    assert await store.find_cached("k0", T0) == cached("k0", expires_at_ms=T0 + 5)
