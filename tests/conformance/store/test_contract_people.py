from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from executor.errors import Conflict
from executor.kernel.process.acting import ROLES, Act, acting, includes
from executor.kernel.store.topics.audit import FIRST_HASH, AuditFilter, AuditHead, hash_of
from executor.kernel.store.topics.people import CODES_MAX, SessionRow, TokenRow, UserRow
from executor.kernel.store.topics.store import Store
from tests.support.rows import T0, new_run

ADA = UserRow("ada", "Ada", "admin", T0)
TOKEN = TokenRow("t1", "hash", "ci", "ada", "editor", None, T0, T0 + 1000)


def act(object: str = "o", actor: str = "user:ada") -> Act:
    return Act(actor, "session", "did", object, T0, "more")


def test_each_role_includes_those_before_it() -> None:
    assert [[includes(role, needed) for needed in ROLES] for role in ROLES] == [
        [True, False, False, False, False],
        [True, True, False, False, False],
        [True, True, True, False, False],
        [True, True, True, True, False],
        [True, True, True, True, True],
    ]


async def test_users_are_added_once_and_change_their_role(store: Store) -> None:
    assert await store.get_user("ada") is None and await store.list_users() == []
    assert await store.put_user(ADA)
    assert not await store.put_user(replace(ADA, role="viewer"))
    assert await store.put_user(UserRow("Bob", "Bob", "viewer", T0))
    assert [row.id for row in await store.list_users()] == ["Bob", "ada"], "by code point"
    assert await store.set_role("ada", "editor") and not await store.set_role("eve", "admin")
    assert await store.get_user("ada") == replace(ADA, role="editor")


async def test_a_user_is_deleted_with_what_signs_in(store: Store) -> None:
    for user in ("ada", "bob"):
        await store.put_user(replace(ADA, id=user))
        await store.put_session(SessionRow(f"s-{user}", "mark", T0, T0, user), 0, 0)
        await store.put_token(replace(TOKEN, id=f"t-{user}", user_id=user))
        await store.put_code(f"c-{user}", user, T0 + 10, T0)
    assert await store.delete_user("ada") and not await store.delete_user("ada")
    assert [row.user_id for row in await store.list_sessions()] == ["bob"]
    assert [row.id for row in await store.list_tokens()] == ["t-bob"]
    assert await store.redeem_code("c-ada", T0) is None and await store.redeem_code("c-bob", T0) == "bob"
    assert await store.delete_sessions("ada") == 0 and await store.delete_sessions("bob") == 1


async def test_an_identity_is_of_one_user(store: Store) -> None:
    at_provider = replace(ADA, id="ada@x", identity="https://i ada")
    assert await store.put_user(ADA) and await store.put_user(at_provider)
    assert not await store.put_user(replace(at_provider, id="again")), "another id"
    assert not await store.put_user(replace(at_provider, identity="https://i eve")), "another identity"
    assert await store.get_user_of("https://i ada") == at_provider and await store.get_user_of("https://i eve") is None
    assert not await store.identify("ada", "https://i ada") and not await store.identify("none", "https://i eve")
    assert await store.identify("ada", "https://i eve") and not await store.identify("ada", "https://i bob")
    assert await store.get_user_of("https://i eve") == replace(ADA, identity="https://i eve")
    await store.delete_user("ada")
    assert await store.get_user_of("https://i eve") is None and await store.put_user(
        replace(ADA, id="u", identity=None)
    )


async def test_a_code_counts_once_and_until_its_time(store: Store) -> None:
    await store.put_code("a", "ada", T0 + 10, T0)
    await store.put_code("b", "ada", T0 + 10, T0)
    both = await asyncio.gather(store.redeem_code("a", T0 + 9), store.redeem_code("a", T0 + 9))
    assert sorted(both, key=str) == [None, "ada"]
    assert await store.redeem_code("b", T0 + 10) is None
    assert await store.redeem_code("b", T0) is None, "a look at one that is too old uses it up"


async def test_the_number_of_codes_is_bounded(store: Store) -> None:
    for n in range(CODES_MAX + 1):
        await store.put_code(f"c{n}", "ada", T0 + 10 + n, T0)
    assert await store.redeem_code("c0", T0) is None and await store.redeem_code("c1", T0) == "ada"


async def test_tokens_are_used_and_revoked(store: Store) -> None:
    later = replace(TOKEN, id="t0", created_at_ms=T0 + 1, user_id=None, workflows='["w"]')
    assert await store.put_token(TOKEN) and await store.put_token(later) and not await store.put_token(TOKEN)
    assert await store.list_tokens() == [TOKEN, later]
    for at_ms in (T0 + 5, T0 + 3):
        await store.use_token("t1", at_ms)
    assert await store.get_token("t1") == replace(TOKEN, used_at_ms=T0 + 5)
    assert await store.delete_token("t1") and not await store.delete_token("t1")
    assert await store.get_token("t1") is None


async def test_the_first_change_of_an_act_has_a_row(store: Store) -> None:
    assert await store.audit_head() is None
    await store.put_user(ADA)
    assert await store.read_audit() == [], "the server itself"
    with acting(act("ada")):
        await store.put_user(ADA)
        await store.set_role("eve", "admin")
        await store.redeem_code("none", T0)
        assert await store.read_audit() == [], "none of these changed anything that is audited"
        await store.set_role("ada", "editor")
        await store.put_code("code", "ada", T0 + 1, T0)
    with acting(act("run", "token:t1")):
        await store.create_run(new_run("r"))
    with acting(act("run", "token:t1")):
        with pytest.raises(Conflict):
            await store.create_run(new_run("r"))
        await store.record_act()
    await store.set_role("ada", "viewer")
    rows = await store.read_audit()
    assert [(row.n, row.actor, row.via, row.action, row.object, row.detail) for row in rows] == [
        (1, "user:ada", "session", "did", "ada", "more"),
        (2, "token:t1", "session", "did", "run", "more"),
        (3, "token:t1", "session", "did", "run", "more"),
    ]
    hashes = [FIRST_HASH, *(row.hash for row in rows)]
    assert hashes[1:] == [hash_of(before, row) for before, row in zip(hashes, rows, strict=False)]
    assert await store.audit_head() == AuditHead(3, hashes[-1])
    assert [row.n for row in await store.read_audit(1, 1)] == [2]
    assert [row.n for row in await store.list_audit(limit=2)] == [3, 2]
    assert [row.n for row in await store.list_audit(before=3, wanted=AuditFilter(actor="user:ada"))] == [1]


async def test_the_audit_is_filtered(store: Store) -> None:
    for n, name in enumerate(("One", "t_wo", "50%", "back\\slash")):
        with acting(Act("user:ada" if n % 2 else "user:bob", "session", f"PUT /{name}", "o", T0 + n, "d")):
            await store.put_user(replace(ADA, id=f"u{n}"))

    async def found(**wanted: Any) -> list[int]:
        return [row.n for row in await store.list_audit(wanted=AuditFilter(**wanted))]

    assert await found() == [4, 3, 2, 1]
    assert await found(actor="user:ada") == [4, 2] and await found(actor="user:") == []
    assert await found(text="put /ONE") == [1] and await found(text="one o d") == [1]
    assert await found(text="_") == [2] and await found(text="%") == [3] and await found(text="\\") == [4]
    assert await found(since_ms=T0 + 1, until_ms=T0 + 3) == [3, 2]
    assert await found(actor="user:ada", text="t_", since_ms=T0, until_ms=T0 + 2) == [2]


async def test_rows_of_many_changes_at_once_are_one_chain(store: Store) -> None:
    async def add(n: int) -> None:
        with acting(act(f"u{n}")):
            assert await store.put_user(replace(ADA, id=f"u{n}"))

    await asyncio.gather(*(add(n) for n in range(50)))
    rows = await store.read_audit()
    assert sorted(row.object for row in rows) == sorted(f"u{n}" for n in range(50))
    before = FIRST_HASH
    for row in rows:
        assert row.hash == hash_of(before, row)
        before = row.hash


async def test_a_task_that_outlives_an_act_is_not_part_of_it(store: Store) -> None:
    ended = asyncio.Event()

    async def later() -> None:
        await ended.wait()
        await store.put_user(ADA)

    with acting(act()):
        task = asyncio.create_task(later())
        await asyncio.sleep(0)
    ended.set()
    await task
    assert await store.read_audit() == [] and await store.get_user("ada") == ADA
