"""Workflows and their versions: promises 28 and 29."""

from __future__ import annotations

import asyncio

import pytest

from executor.errors import Conflict
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.drafts import LAST_RUNS_OF_DRAFTS, LastRun
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.workflows import (
    ALL_HEADS,
    DeletedWorkflow,
    Stored,
    VersionRow,
    WorkflowHead,
    WorkflowRow,
)
from tests.conformance.store.test_contract_triggers import schedule, webhook
from tests.support.rows import LONG_AFTER, T0, finish, new_run, owned_run, row


async def put(store: Store, name: str, n: int, now_ms: int = T0) -> Stored:
    return await store.put_workflow(name, b'{"v":%d}' % n, f"hash-{n}", now_ms)


async def test_put_workflow_makes_a_version_for_each_new_hash(store: Store) -> None:
    first = WorkflowRow("expense", 1, "hash-1", b'{"v":1}', T0)
    assert await put(store, "expense", 1) == Stored(first, created=True, activated=True)
    assert await put(store, "expense", 1, T0 + 1) == Stored(first, created=False, activated=False)
    second = await put(store, "expense", 2, T0 + 2)
    assert (second.row.version, second.created, second.activated, second.replaced) == (2, True, True, 1)
    other = await put(store, "audit", 1, T0 + 4)
    assert other.row.version == 1

    assert await store.get_workflow("expense") == second.row
    assert await store.get_workflow("expense", 1) == first
    assert await store.get_workflow("expense", 3) is None
    assert await store.get_workflow("nothing") is None
    assert await store.list_workflows() == [other.row, second.row]


async def test_only_the_version_that_is_named_is_replaced(store: Store) -> None:
    async def replacing(n: int, replaces: int) -> int:
        return (await store.put_workflow("w", b'{"v":%d}' % n, f"hash-{n}", T0, None, None, replaces)).row.version

    assert await replacing(1, 0) == 1, "the name was free"
    for replaces in (0, 2):
        with pytest.raises(Conflict) as refused:
            await replacing(2, replaces)
        assert (refused.value.code, refused.value.extra) == ("would_replace", {"active": 1})
    assert await replacing(1, 0) == 1, "it is the active document already"
    assert [each.version for each in await store.list_versions("w")] == [1]
    assert await replacing(2, 1) == 2
    with pytest.raises(Conflict):
        await replacing(1, 1)  # an older document replaces as well
    assert (await store.get_workflow("w")) == (await store.get_workflow("w", 2))


async def test_of_many_that_want_a_free_name_one_gets_it(store: Store) -> None:
    wanted = (store.put_workflow("w", b"%d" % n, f"h{n}", T0, None, None, 0) for n in range(20))
    found = await asyncio.gather(*wanted, return_exceptions=True)
    assert len([each for each in found if isinstance(each, Stored)]) == 1
    assert {each.code for each in found if isinstance(each, Conflict)} == {"would_replace"}
    assert [each.version for each in await store.list_versions("w")] == [1]


async def test_an_older_document_is_active_again(store: Store) -> None:
    for n in (1, 2, 3):
        await put(store, "w", n)
    again = await put(store, "w", 1, T0 + 9)
    assert (again.row.version, again.created, again.activated, again.replaced) == (1, False, True, 3)
    assert await store.get_workflow("w") == again.row == (await store.list_workflows())[0]
    assert (await put(store, "w", 4)).row.version == 4, "numbers count on from the newest"


async def test_any_version_can_be_activated(store: Store) -> None:
    for n in (1, 2):
        await put(store, "w", n, T0 + n)
    back = await store.activate_workflow("w", 1, T0 + 5)
    assert back is not None and (back.row.version, back.created, back.activated, back.replaced) == (1, False, True, 2)
    again = await store.activate_workflow("w", 1, T0 + 6)
    assert again is not None and (again.activated, again.replaced) == (False, None)
    head = await store.get_head("w")
    assert head == WorkflowHead("w", 1, "hash-1", T0 + 1, T0 + 5, newest=2, versions=2)
    assert await store.activate_workflow("w", 3, T0) is None
    assert await store.activate_workflow("nothing", 1, T0) is None


async def test_versions_come_in_pages_newest_first(store: Store) -> None:
    for n in range(1, 6):
        await put(store, "w", n, T0 + n)
    await put(store, "x", 1)
    assert await store.list_versions("w", limit=2) == [
        VersionRow(5, "hash-5", T0 + 5),
        VersionRow(4, "hash-4", T0 + 4),
    ]
    assert [each.version for each in await store.list_versions("w", before=4)] == [3, 2, 1]
    assert await store.list_versions("nothing") == []


async def test_concurrent_puts_number_without_gaps(store: Store) -> None:
    results = await asyncio.gather(*(put(store, "w", i % 7) for i in range(30)))
    assert sorted({each.row.version for each in results}) == [1, 2, 3, 4, 5, 6, 7]
    assert sum(each.created for each in results) == 7


async def test_each_head_has_the_run_that_was_created_last(store: Store) -> None:
    for name in ("a", "b", "never"):
        await put(store, name, 1)
    for n in range(3):
        await store.create_run(new_run(f"a-{n}", T0 + n, "a"))
    await store.create_run(new_run("b-0", T0 - 5, "b"))
    await store.create_run(new_run("z", T0 + 99, "no workflow"))
    heads = await store.list_heads()
    assert [(head.name, head.last_run) for head in heads] == [
        ("a", LastRun("a-2", 1, "queued", T0 + 2, None)),
        ("b", LastRun("b-0", 1, "queued", T0 - 5, None)),
        ("never", None),
    ]
    assert await store.get_head("a") == heads[0]
    assert await store.get_head("no workflow") is None


@pytest.mark.parametrize(
    ("query", "values", "index"),
    [
        (ALL_HEADS, {}, "runs_by_workflow (workflow=?)"),
        (LAST_RUNS_OF_DRAFTS, {"drafts": '["d"]'}, "runs_by_draft (draft_id=?)"),
    ],
)
async def test_last_runs_are_looked_up_in_an_index(
    sqlite: SQLiteStore, query: str, values: dict[str, str], index: str
) -> None:
    """One step into an index for each workflow or draft, whatever number of runs it has."""
    plan = [str(line[3]) for line in await sqlite._readers.all(f"EXPLAIN QUERY PLAN {query}", values)]
    runs = [line for line in plan if "runs" in line or " r " in line]
    assert runs and not any(line.startswith("SCAN") for line in runs), plan
    assert any(index in line for line in runs), plan
    assert not any("TEMP B-TREE" in line for line in plan), plan


async def test_delete_workflow_takes_its_triggers_and_leaves_its_runs(store: Store) -> None:
    await put(store, "expense", 1)
    await put(store, "expense", 2)
    await put(store, "other", 1)
    await store.put_schedule(schedule("s", workflow="expense"))
    await store.put_schedule(schedule("t", workflow="other"))
    await store.put_webhook(webhook("h", workflow="expense"))
    draft, _ = await store.put_draft("d", 0, "expense", b"{}", T0, 1)
    assert draft is not None
    run = await owned_run(store)
    assert await store.delete_workflow("expense") == DeletedWorkflow(open_runs=1)
    assert await store.get_workflow("expense") is not None, "a run is open: nothing went"
    assert await store.get_schedule("s") is not None

    await finish(store, run)
    assert await store.delete_workflow("expense") == DeletedWorkflow(0, schedules=1, webhooks=1)
    assert await store.delete_workflow("expense") is None
    assert await store.get_workflow("expense") is None
    assert await store.get_head("expense") is None
    assert await store.list_versions("expense") == []
    assert await store.activate_workflow("expense", 1, T0) is None
    assert [each.name for each in await store.list_workflows()] == ["other"]
    assert [each.name for each in await store.list_heads()] == ["other"]
    assert [each.id for each in await store.list_schedules()] == ["t"]
    assert await store.list_webhooks() == []
    kept = await store.get_draft("d")
    assert kept is not None and (kept.base_name, kept.base_version, kept.base_rev, kept.rev) == (None, None, None, 1)
    assert await row(store, run.id)
    assert await store.get_workflow("expense", 1) is not None, "the run has its document"
    assert (await store.count_orphans(LONG_AFTER)).versions == 0
    assert (await store.delete_orphans(LONG_AFTER)).versions == 0


async def test_a_name_counts_on_while_runs_of_it_are_there(store: Store) -> None:
    await put(store, "expense", 1)
    await finish(store, await owned_run(store))
    await store.delete_workflow("expense")
    new = await put(store, "expense", 2)
    assert (new.row.version, new.created, new.activated, new.replaced) == (2, True, True, None)
    back = await put(store, "expense", 1)
    assert (back.row.version, back.created, back.activated, back.replaced) == (1, False, True, 2)


async def test_versions_of_a_deleted_workflow_go_with_its_last_run(store: Store) -> None:
    for n in (1, 2):
        await put(store, "expense", n)
        await put(store, "other", n)
    run = await owned_run(store)
    await finish(store, run)
    await store.delete_workflow("expense")
    assert await store.delete_runs([run.id]) == [run.id]
    assert (await store.count_orphans(LONG_AFTER)).versions == 2
    assert (await store.delete_orphans(LONG_AFTER)).versions == 2
    assert await store.get_workflow("expense", 1) is None
    assert (await store.delete_orphans(LONG_AFTER)).versions == 0
    assert await store.get_workflow("other", 1) is not None
    assert (await put(store, "expense", 1)).row.version == 1


async def test_the_last_run_of_drafts(store: Store) -> None:
    for n in range(3):
        await store.create_run(new_run(f"a-{n}", T0 + n, draft_id="a", draft_rev=n))
    await store.create_run(new_run("b-0", T0, draft_id="b", draft_rev=1))
    await store.create_run(new_run("none", T0 + 9))
    assert await store.last_runs(["a", "never"]) == {"a": LastRun("a-2", 1, "queued", T0 + 2, None)}
    assert set(await store.last_runs(["b", "a"])) == {"a", "b"}
    assert await store.last_runs([]) == {}
