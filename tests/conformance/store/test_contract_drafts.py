"""Drafts, the documents of runs, and what is asked about many runs at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.drafts import DraftHead, DraftRow
from executor.kernel.store.topics.store import Store
from tests.support.rows import T0, finish, new_run, owned_run, row


async def test_a_new_draft_has_revision_one(store: Store) -> None:
    draft, written = await store.put_draft("d1", 0, "refund", b'{"blocks":{}}', T0, base_version=3)
    assert written
    assert draft == DraftRow("d1", "refund", 1, "refund", 3, 1, T0, T0, "", b'{"blocks":{}}')
    assert await store.get_draft("d1") == draft
    plain, _ = await store.put_draft("d2", 0, "", b"{}", T0)
    assert plain is not None and (plain.base_name, plain.base_version, plain.base_rev) == (None, None, None)


async def test_a_draft_is_replaced_by_who_knows_its_revision(store: Store) -> None:
    first, _ = await store.put_draft("d", 0, "a", b'"one"', T0)
    second, written = await store.put_draft("d", 1, "b", b'"two"', T0 + 5)
    assert written
    assert second == DraftRow("d", "b", 2, None, None, None, T0, T0 + 5, "", b'"two"')
    for stale in (0, 1, 3):
        assert await store.put_draft("d", stale, "c", b'"lost?"', T0 + 9) == (second, False)
    assert await store.get_draft("d") == second
    assert first is not None and first.document == b'"one"'


async def test_a_draft_that_is_not_there(store: Store) -> None:
    assert await store.put_draft("none", 1, "", b"{}", T0) == (None, False)
    assert await store.get_draft("none") is None
    assert await store.rebase_draft("none", 1, "w", 1) is None
    assert await store.delete_draft("none") is False
    assert await store.list_drafts() == []
    assert await store.list_drafts(before="none") == []


async def test_of_many_writers_of_one_revision_one_wins(store: Store) -> None:
    await store.put_draft("d", 0, "", b"0", T0)
    replies = await asyncio.gather(*(store.put_draft("d", 1, "", b"%d" % i, T0) for i in range(20)))
    winners = [draft for draft, written in replies if written]
    assert len(winners) == 1
    assert await store.get_draft("d") == winners[0]
    assert all(draft == winners[0] for draft, _ in replies)


async def test_rebasing_leaves_document_and_revision(store: Store) -> None:
    await store.put_draft("d", 0, "", b"1", T0)
    await store.put_draft("d", 1, "", b"2", T0 + 1)
    rebased = await store.rebase_draft("d", 1, "w", 7)
    assert rebased == DraftRow("d", "", 2, "w", 7, 1, T0, T0 + 1, "", b"2") == await store.get_draft("d")
    third, written = await store.put_draft("d", 2, "", b"3", T0 + 2, base_version=99)
    assert written and third is not None and (third.base_name, third.base_version, third.base_rev) == ("w", 7, 1)


async def test_a_workflow_is_in_the_folder_of_its_draft_if_it_is_in_none(store: Store) -> None:
    await store.put_draft("d", 0, "w", b"1", T0)
    assert await store.put_draft_in_folder("d", "Shop") and not await store.put_draft_in_folder("none", "Shop")
    revised, _ = await store.put_draft("d", 1, "w", b"2", T0 + 1)
    assert revised is not None and (revised.folder, revised.rev) == ("Shop", 2), "a new revision stays there"
    await store.put_workflow("w", b"2", "h", T0 + 2)
    await store.rebase_draft("d", 2, "w", 1)
    head = await store.get_head("w")
    assert head is not None and head.folder == "Shop"
    await store.put_draft_in_folder("d", "Old")
    await store.rebase_draft("d", 2, "w", 1)
    head = await store.get_head("w")
    assert head is not None and head.folder == "Shop", "it stays where it is"


async def test_drafts_are_deleted_at_a_revision_or_at_any(store: Store) -> None:
    await store.put_draft("d", 0, "", b"1", T0)
    await store.put_draft("d", 1, "", b"2", T0)
    assert await store.delete_draft("d", 1) is False
    assert await store.delete_draft("d", 2) is True
    assert await store.get_draft("d") is None
    again, written = await store.put_draft("d", 0, "", b"3", T0)
    assert written and again is not None and again.rev == 1
    assert await store.delete_draft("d") is True


async def test_drafts_are_listed_by_their_last_change_in_pages(store: Store) -> None:
    for i in range(5):
        await store.put_draft(f"d{i}", 0, f"n{i}", b"{}", T0 + i // 2)
    await store.put_draft("d0", 1, "n0", b"{}", T0 + 9)
    listed = await store.list_drafts()
    assert [draft.id for draft in listed] == ["d0", "d4", "d3", "d2", "d1"]
    assert listed[0] == DraftHead("d0", "n0", 2, None, None, None, T0, T0 + 9, "")
    first = await store.list_drafts(limit=2)
    assert [draft.id for draft in first] == ["d0", "d4"]
    assert [draft.id for draft in await store.list_drafts("d4", 2)] == ["d3", "d2"]
    assert [draft.id for draft in await store.list_drafts("d2", 2)] == ["d1"]


async def test_a_run_stores_the_document_it_was_started_with(store: Store) -> None:
    first = new_run("a", document_hash="h1", document=b'{"x":1}', draft_id="d", draft_rev=4)
    run, _ = await store.create_run(first)
    assert (run.document_hash, run.draft_id, run.draft_rev) == ("h1", "d", 4)
    assert await row(store, "a") == run
    await store.create_run(new_run("b", document_hash="h1", document=b'{"x":1}'))
    again, _ = await store.create_run(new_run("c", document_hash="h1"))
    assert again.document_hash == "h1"
    assert await store.get_document("h1") == b'{"x":1}'
    plain, _ = await store.create_run(new_run("d"))
    assert (plain.document_hash, plain.draft_id, plain.draft_rev) == (None, None, None)
    assert await store.get_document("h2") is None
    (claimed,) = await store.claim("w", T0, 1000, run_id="a")
    assert (claimed.document_hash, claimed.draft_id, claimed.draft_rev) == ("h1", "d", 4)


async def test_runs_of_a_draft(store: Store) -> None:
    for i, draft in enumerate(["d", None, "d", "e"]):
        await store.create_run(new_run(f"r{i}", T0 + i, draft_id=draft, draft_rev=draft and 1, workflow=f"w{i % 2}"))
    assert [run.id for run in await store.list_runs(draft="d")] == ["r2", "r0"]
    assert [run.id for run in await store.list_runs(draft="d", before="r2")] == ["r0"]
    assert [run.id for run in await store.list_runs("w1", draft="e")] == ["r3"]
    assert await store.list_runs(draft="none") == []
    await store.put_draft("d", 0, "", b"{}", T0)
    await store.delete_draft("d")
    assert len(await store.list_runs(draft="d")) == 2


async def test_counts_by_status(store: Store) -> None:
    assert await store.count_runs() == {}
    for i, status in enumerate(["succeeded", "succeeded", "failed", "cancelled"]):
        await finish(store, await owned_run(store, f"r{i}"), status)
    await owned_run(store, "r4")
    for i in range(3):
        await store.create_run(new_run(f"q{i}", T0, workflow="other", draft_id="d" if i else None, draft_rev=1))
    waiting = await owned_run(store, "w1")
    await store.release("w1", waiting.epoch, waiting.seq, None, "waiting")
    own = {"succeeded": 2, "failed": 1, "cancelled": 1, "running": 1, "waiting": 1}
    assert await store.count_runs() == own | {"queued": 3}
    assert await store.count_runs("expense") == own
    assert await store.count_runs("other") == {"queued": 3}
    assert await store.count_runs(draft="d") == {"queued": 2}
    assert await store.count_runs("expense", "d") == {}
    assert await store.count_runs("none") == {}


async def test_inputs_newest_first_without_the_large_ones(store: Store) -> None:
    inputs = [b"1", b"[" + b"0," * 99 + b"0]", b"2", b"1"]
    for i, input in enumerate(inputs):
        await store.create_run(new_run(f"r{i}", T0 + i, input=input, draft_id="d" if i > 1 else None))
    assert await store.list_inputs() == list(reversed(inputs))
    assert await store.list_inputs("expense", bytes_max=10) == [b"1", b"2", b"1"]
    assert await store.list_inputs(draft="d", limit=1) == [b"1"]
    assert await store.list_inputs("none") == []


async def test_drafts_and_documents_are_there_after_a_restart(tmp_path: Path) -> None:
    first = SQLiteStore(tmp_path / "weft.db")
    await first.open()
    draft, _ = await first.put_draft("d", 0, "n", b'{"half": "written?"}', T0)
    await first.create_run(new_run("a", document_hash="h", document=b"{}"))
    await first.close()
    again = SQLiteStore(tmp_path / "weft.db")
    await again.open()
    assert await again.get_draft("d") == draft
    assert await again.get_document("h") == b"{}"
    await again.close()


async def test_a_commit_that_fails_leaves_the_old_revision_whole(tmp_path: Path) -> None:
    armed = False

    def fault(name: str) -> None:
        if armed and name == "tx.group.before_commit":
            raise RuntimeError("the power fails")

    store = SQLiteStore(tmp_path / "weft.db", fault=fault)
    await store.open()
    draft, _ = await store.put_draft("d", 0, "old", b'"old"', T0)
    armed = True
    with pytest.raises(RuntimeError):
        await store.put_draft("d", 1, "new", b'"new"', T0 + 1)
    armed = False
    assert await store.get_draft("d") == draft
    _, written = await store.put_draft("d", 1, "new", b'"new"', T0 + 2)
    assert written
    await store.close()
