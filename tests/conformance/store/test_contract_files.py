"""Files: what a run holds is there as long as the run is, and what no run holds goes after a while."""

from __future__ import annotations

import msgspec
import pytest

from executor.kernel.store.run_rows import Append
from executor.kernel.store.topics.contents import FileHead, key_of
from executor.kernel.store.topics.store import Store
from tests.support.rows import LEASE_MS, LONG_AFTER, T0, finish, new_run, owned_run, record


def _file(*parts: bytes) -> tuple[str, list[tuple[str, bytes]]]:
    keys = [(key_of("part", part), part) for part in parts]
    head = msgspec.json.encode(FileHead("a.txt", "text/plain", 1, "", tuple(key for key, _ in keys)))
    return key_of("file", head), [*keys, (key_of("file", head), head)]


async def _there(store: Store, rows: list[tuple[str, bytes]]) -> list[bool]:
    return [await store.get_blob(key) == content for key, content in rows]


async def test_a_file_that_no_run_holds_goes_with_its_parts(store: Store) -> None:
    id, rows = _file(b"one", b"two")
    assert await store.put_parts(rows, None, T0)
    assert await store.hold_files([id, "file_" + "0" * 64], None, T0) == [id]
    assert (await store.delete_orphans(T0)).blobs == 0
    assert (await store.delete_orphans(LONG_AFTER)).blobs == 3
    assert await store.hold_files([id], None, LONG_AFTER) == []


async def test_which_workflows_have_a_file_in_a_run(store: Store) -> None:
    id, rows = _file(b"one")
    await store.put_parts(rows, None, T0)
    assert not await store.holds_file(id, ["w"])
    row, _ = await store.create_run(new_run("r", T0, files=(id,)))
    assert await store.holds_file(id, ["none", row.workflow])
    for other in (["none"], []):
        assert not await store.holds_file(id, other)
    assert not await store.holds_file("file_" + "0" * 64, [row.workflow])


async def test_which_files_a_run_has(store: Store) -> None:
    (one, rows), (two, others) = _file(b"one"), _file(b"two")
    await store.put_parts([*rows, *others], None, T0)
    await store.create_run(new_run("r", T0, files=(one,)))
    text = b'{"file":"%s"}' % two.encode()
    await store.create_run(new_run("other", T0, input=text))
    assert await store.files_of_run("r", [two, one]) == [one]
    assert await store.files_of_run("other", [one, two]) == [], "an id in its input is a text"
    assert await store.files_of_run("none", [one]) == []
    assert await store.hold_files([two], "r", T0) == [two]
    assert await store.files_of_run("r", [two, one]) == [two, one]


async def test_a_run_holds_the_files_that_it_begins_with(store: Store) -> None:
    id, rows = _file(b"one", b"two")
    await store.put_parts(rows, None, T0)
    row, _ = await store.create_run(new_run("r", T0, files=(id,)))
    assert (await store.delete_orphans(LONG_AFTER)).blobs == 0
    assert await _there(store, rows) == [True] * 3
    assert await store.output_bytes(row.id) == 0, "files are no outputs"


async def test_a_run_that_is_begun_at_once_holds_them_too(store: Store) -> None:
    id, rows = _file(b"one")
    await store.put_parts(rows, None, T0)
    new = new_run("r", T0, files=(id,))
    first = Append("r", 1, len(new.records), (record("node.started"),), T0)
    await store.begin_run(new, "w1", LEASE_MS, first)
    assert (await store.delete_orphans(LONG_AFTER)).blobs == 0
    assert await _there(store, rows) == [True] * 2


@pytest.mark.parametrize("how", ["stored for it", "held later"])
async def test_a_run_that_holds_a_file_keeps_it_until_it_is_deleted(store: Store, how: str) -> None:
    id, rows = _file(b"one", b"two")
    run = await owned_run(store, "r")
    if how == "stored for it":
        assert await store.put_parts(rows[:2], run.id, T0) and await store.put_parts(rows[2:], run.id, T0)
    else:
        await store.put_parts(rows, None, T0)
        assert await store.hold_files([id], run.id, T0) == [id]
    await store.delete_orphans(LONG_AFTER)
    assert await _there(store, rows) == [True] * 3
    await finish(store, run)
    assert await store.delete_runs([run.id]) == [run.id]
    await store.delete_orphans(LONG_AFTER)
    assert await _there(store, rows) == [False] * 3


async def test_nothing_is_stored_or_held_for_a_run_that_is_gone(store: Store) -> None:
    id, rows = _file(b"one")
    assert not await store.put_parts(rows, "none", T0)
    assert await store.get_blob(id) is None
    await store.put_parts(rows, None, T0)
    assert await store.hold_files([id], "none", T0) == []


async def test_a_fork_holds_the_files_of_its_source(store: Store) -> None:
    _, rows = _file(b"one")
    run = await owned_run(store, "r")
    await store.put_parts(rows, run.id, T0)
    await finish(store, run)
    await store.create_run(new_run("fork", T0, sources=(run.id,)))
    assert await store.delete_runs([run.id]) == [run.id]
    await store.delete_orphans(LONG_AFTER)
    assert await _there(store, rows) == [True] * 2


async def test_two_files_share_equal_parts(store: Store) -> None:
    (one, rows), (two, others) = _file(b"same", b"x"), _file(b"same")
    await store.put_parts([*rows, *others], None, T0)
    run = await owned_run(store, "r")
    assert await store.hold_files([two], run.id, T0) == [two]
    await store.delete_orphans(LONG_AFTER)
    assert await store.get_blob(one) is None
    assert await _there(store, others) == [True] * 2


async def test_parts_are_deleted_a_few_megabytes_at_once(store: Store) -> None:
    parts = [n.to_bytes(2) * 524_288 for n in range(36)]
    rows = [(key_of("part", part), part) for part in parts]
    for at in range(0, len(rows), 9):
        assert await store.put_parts(rows[at : at + 9], None, T0)
    deleted = [(await store.delete_orphans(LONG_AFTER)).blobs for _ in range(3)]
    assert deleted == [32, 4, 0]
