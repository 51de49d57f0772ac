from __future__ import annotations

from msgspec.structs import replace

from executor.kernel.store.topics.secrets import Resealed, SecretRow
from executor.kernel.store.topics.store import Store
from tests.support.rows import T0


def secret(name: str = "API_KEY", version: int = 1) -> SecretRow:
    return SecretRow(
        name, version, b"\x00sealed \xff%d" % version, "k1", ("api.example.com", "*.example.org"), "ada", T0
    )


async def test_a_new_value_takes_the_place_of_the_version_before_it(store: Store) -> None:
    assert not await store.put_secret(secret(version=2))
    assert await store.put_secret(secret())
    assert not await store.put_secret(secret())
    await store.use_secrets(["API_KEY"], T0 + 1)
    second = replace(secret(version=2), hosts=(), created_at_ms=T0 + 5)
    assert await store.put_secret(second)
    assert not await store.put_secret(replace(second, sealed=b"of another process")), "the first one wins"
    assert not await store.put_secret(secret(version=4))
    assert await store.get_secrets(["API_KEY"]) == [replace(second, last_used_at_ms=T0 + 1)]


async def test_places_are_those_of_the_newest_value(store: Store) -> None:
    first = replace(secret(), places=("header:Authorization", "query:kéy"))
    assert await store.put_secret(first) and await store.list_secrets() == [first]
    change = Resealed("API_KEY", 1, "k1", b"again", "k2")
    assert await store.reseal_secrets([change]) == 1
    assert await store.get_secrets(["API_KEY"]) == [replace(first, sealed=b"again", key_id="k2")]
    assert await store.put_secret(secret(version=2)) and await store.list_secrets() == [secret(version=2)]


async def test_secrets_are_listed_by_name_and_found_by_names(store: Store) -> None:
    for name in ("b", "B", "a_1"):
        assert await store.put_secret(secret(name))
    assert [row.name for row in await store.list_secrets()] == ["B", "a_1", "b"]
    assert await store.get_secrets(["b", "none", "B"]) == [secret("B"), secret("b")]
    assert await store.get_secrets([]) == []


async def test_a_deleted_secret_is_gone_and_may_begin_again(store: Store) -> None:
    await store.put_secret(secret())
    assert await store.delete_secret("API_KEY") and not await store.delete_secret("API_KEY")
    assert await store.list_secrets() == []
    assert await store.put_secret(secret())


async def test_the_time_of_use_only_grows(store: Store) -> None:
    await store.put_secret(secret())
    await store.use_secrets(["API_KEY", "none"], T0 + 9)
    await store.use_secrets(["API_KEY"], T0 + 3)
    (row,) = await store.list_secrets()
    assert row.last_used_at_ms == T0 + 9


async def test_only_what_was_sealed_with_the_other_key_is_sealed_again(store: Store) -> None:
    for name in ("A", "B", "C"):
        await store.put_secret(secret(name))
    await store.put_secret(secret("B", 2))
    changes = [Resealed(name, 1, "k1", b"again " + name.encode(), "k2") for name in ("A", "B", "C", "none")]
    assert await store.reseal_secrets([changes[0]]) == 1
    assert await store.reseal_secrets(changes) == 1
    a, b, c = await store.list_secrets()
    assert (a.sealed, a.key_id, a.version) == (b"again A", "k2", 1)
    assert b == secret("B", 2)
    assert (c.sealed, c.key_id) == (b"again C", "k2")
