from __future__ import annotations

from executor.kernel.store.topics.memory import TURNS_MAX, Conversation, MemoryHead, MemoryTurn
from executor.kernel.store.topics.store import Store
from tests.support.rows import T0

CHAT = Conversation("chat", "", "ada")


def turn(n: int, messages: bytes = b"[]") -> MemoryTurn:
    return MemoryTurn(f"run{n}:agent", f"run{n}", T0 + n, messages)


async def test_turns_come_back_in_the_order_in_which_they_were_written(store: Store) -> None:
    for n in (3, 1, 2):
        assert await store.remember(CHAT, turn(n, b'["\xc3\xa9"]'))
    assert await store.recall(CHAT, 10) == [turn(n, b'["\xc3\xa9"]') for n in (3, 1, 2)]
    assert await store.recall(CHAT, 2) == [turn(n, b'["\xc3\xa9"]') for n in (1, 2)]


async def test_a_turn_is_written_once_and_stays_as_it_was(store: Store) -> None:
    assert await store.remember(CHAT, turn(1, b'["first"]'))
    assert not await store.remember(CHAT, turn(1, b'["second"]'))
    assert await store.recall(CHAT, 10) == [turn(1, b'["first"]')]


async def test_the_oldest_turns_go(store: Store) -> None:
    for n in range(TURNS_MAX + 3):
        await store.remember(CHAT, turn(n))
    turns = await store.recall(CHAT, TURNS_MAX + 10)
    assert [one.run_id for one in turns] == [f"run{n}" for n in range(3, TURNS_MAX + 3)]


async def test_keys_workflows_and_scopes_are_apart(store: Store) -> None:
    places = [CHAT, Conversation("chat", "", "bob"), Conversation("other", "", "ada"), Conversation("", "chat", "ada")]
    for n, place in enumerate(places):
        await store.remember(place, turn(n, b"[1]"))
    for n, place in enumerate(places):
        assert await store.recall(place, 10) == [turn(n, b"[1]")]
    assert await store.list_memories() == [
        MemoryHead(place.workflow, place.scope, place.key, 1, 3, T0 + n)
        for n, place in reversed(list(enumerate(places)))
    ]
    assert [head.key for head in await store.list_memories("chat")] == ["bob", "ada"]
    assert len(await store.list_memories(limit=1)) == 1
    assert (await store.forget(CHAT), await store.forget(CHAT)) == (1, 0)
    assert await store.recall(CHAT, 10) == []
    assert len(await store.list_memories()) == 3


async def test_a_deleted_workflow_leaves_no_memory_but_that_of_scopes(store: Store) -> None:
    await store.put_workflow("chat", b"{}", "h", T0)
    shared = Conversation("", "support", "ada")
    await store.remember(CHAT, turn(1))
    await store.remember(shared, turn(1))
    await store.delete_workflow("chat")
    assert await store.recall(CHAT, 10) == []
    assert await store.recall(shared, 10) == [turn(1)]


async def test_old_turns_are_deleted_a_number_at_a_time(store: Store) -> None:
    for n in range(5):
        await store.remember(CHAT, turn(n))
    assert await store.delete_old_memory(T0 + 3, 2) == 2
    assert await store.delete_old_memory(T0 + 3, 2) == 1
    assert await store.delete_old_memory(T0 + 3, 2) == 0
    assert await store.recall(CHAT, 10) == [turn(3), turn(4)]
    assert await store.remember(CHAT, turn(9)) and await store.recall(CHAT, 1) == [turn(9)]
