"""Runs whose journals newer code has written: they wait for a process that can fold them."""

from __future__ import annotations

from types import MappingProxyType

import msgspec
import orjson
import pytest

from executor.kernel.store import formats
from executor.kernel.store.formats import FORMAT, needed
from executor.kernel.store.topics.store import Store
from tests.support.rows import T0, change, new_run, owned_run, record

LATER = T0 + 60_000


@pytest.fixture(autouse=True)
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is an event that this code does not know."""
    monkeypatch.setattr(formats, "SINCE", MappingProxyType({"node.new": FORMAT + 1}))


def test_a_journal_needs_the_highest_format_of_its_events() -> None:
    assert needed([]) == needed([record()]) == 0
    assert needed([record(), record("node.new"), record()]) == FORMAT + 1


def test_a_wait_beside_another_needs_what_came_with_it() -> None:
    """A title that says so does not."""
    asked = [b'{"kind":"child"}', orjson.dumps({"title": '"beside":true'}), b'{"kind":"child","beside":true}']
    assert [needed([msgspec.structs.replace(record("wait.opened"), data=data)]) for data in asked] == [0, 0, 4]


def test_a_cleanup_of_what_is_given_up_needs_what_came_with_it() -> None:
    opened = [b'{"due_ms":1}', b'{"due_ms":1,"given_up":true}']
    made = [[msgspec.structs.replace(record("cleanup.opened"), data=data)] for data in opened]
    assert [needed(records) for records in made] == [0, 5]


async def test_a_run_that_was_created_with_one_is_not_claimed(store: Store) -> None:
    await store.create_run(new_run("new", records=(record("run.started", None), record("node.new"))))
    await store.create_run(new_run("old", T0 + 1))
    assert [row.id for row in await store.claim("w1", LATER, 1_000, limit=10)] == ["old"]
    assert await store.claim("w1", LATER, 1_000, run_id="new") == []


async def test_a_run_that_has_come_to_one_stays_with_its_owner_and_is_taken_by_no_other(store: Store) -> None:
    run = await owned_run(store)
    await store.append(change(run, record(), record("node.new")))
    assert run.id in await store.renew("w1", [run.id], LATER, 1_000), "its owner can fold it"
    assert await store.claim("w2", LATER + 5_000, 1_000, limit=10) == [], "its lease has lapsed"
    assert await store.claim("w2", LATER + 5_000, 1_000, run_id=run.id) == []


async def test_what_a_run_is_known_to_need_is_needed_after_further_appends(store: Store) -> None:
    run = await owned_run(store)
    first = change(run, record(), record("node.new"))
    seq = (await store.append(first)).seq
    more = msgspec.structs.replace(first, expected_seq=seq, records=(record("node.new"),), needed=FORMAT + 1)
    assert (await store.append(more)).seq == seq + 1
    await store.renew("w1", [], LATER, 1_000)
    assert await store.claim("w2", LATER, 1_000, run_id=run.id) == []


async def test_it_is_not_looked_for_again_and_again(store: Store) -> None:
    run = await owned_run(store)
    await store.append(change(run, record("node.new")))
    await store.create_run(new_run("new", records=(record("run.started", None), record("node.new"))))
    await store.claim("w2", LATER, 1_000, limit=10)
    assert await store.next_due() is None
