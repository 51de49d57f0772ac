from __future__ import annotations

from msgspec.structs import replace

from executor.kernel.store.topics.people import SESSIONS_MAX, SessionRow
from executor.kernel.store.topics.store import Store
from tests.support.rows import T0


def session(hash: str, at_ms: int = T0) -> SessionRow:
    return SessionRow(hash, "mark", at_ms, at_ms)


async def put(store: Store, row: SessionRow, created_after_ms: int = 0, seen_after_ms: int = 0) -> None:
    await store.put_session(row, created_after_ms, seen_after_ms)


async def test_a_session_is_there_until_it_is_deleted(store: Store) -> None:
    assert await store.get_session("a") is None
    await put(store, session("a"))
    await put(store, session("b"))
    assert await store.get_session("a") == session("a")
    assert await store.delete_session("a")
    assert not await store.delete_session("a")
    assert await store.get_session("a") is None and await store.get_session("b") == session("b")


async def test_seeing_a_session_moves_its_time_forward_only(store: Store) -> None:
    await put(store, session("a"))
    await store.see_session("a", T0 + 5)
    await store.see_session("a", T0 + 3)
    assert await store.get_session("a") == replace(session("a"), seen_at_ms=T0 + 5)
    await store.delete_session("a")
    await store.see_session("a", T0 + 9)
    assert await store.get_session("a") is None


async def test_a_new_session_makes_those_out_of_date_go(store: Store) -> None:
    await put(store, session("old", T0))
    await store.see_session("old", T0 + 50)
    await put(store, session("idle", T0 + 10))
    await put(store, session("fine", T0 + 30))
    await put(store, session("new", T0 + 60), created_after_ms=T0, seen_after_ms=T0 + 10)
    assert [await store.get_session(name) is not None for name in ("old", "idle", "fine", "new")] == [
        False,
        False,
        True,
        True,
    ]


async def test_the_number_of_sessions_is_bounded(store: Store) -> None:
    for n in range(SESSIONS_MAX + 1):
        await put(store, session(f"s{n}", T0 + n))
    assert await store.get_session("s0") is None
    assert await store.get_session("s1") is not None
    assert await store.delete_sessions() == SESSIONS_MAX
    assert await store.get_session("s1") is None and await store.delete_sessions() == 0
