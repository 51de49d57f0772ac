"""Lists of runs by time and text, counts by time, and the cards of the front page."""

from __future__ import annotations

import pytest

from executor.kernel.store.topics import run_lists
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.workflows import CardFacts, ShortRun
from tests.support.model_store.store import ModelStore
from tests.support.rows import T0, change, new_run, record, row

HOUR_MS = 3_600_000
DOCUMENT = b'{"blocks":{"a":{"type":"http","name":"Reserve stock"},"b":{"type":"wait"}}}'


async def run(
    store: Store, id: str, hour: int, status: str | None = None, error: bytes | None = None, key: str | None = None
) -> None:
    at = T0 + hour * HOUR_MS
    created, _ = await store.create_run(new_run(id, at, idempotency_key=key))
    if status is None:
        return
    (claimed,) = await store.claim("w1", at, 15_000, run_id=id)
    end = change(claimed, record("run.finished", None), status=status, error=error, finished=True, now_ms=at + 500)
    await store.append(end)
    assert (await row(store, created.id)).status == status


async def ids(store: Store, **where: object) -> list[str]:
    return [each.id for each in await store.list_runs(**where)]  # type: ignore[arg-type]  # by name, as in a call


async def test_runs_are_found_by_time_and_by_text(store: Store) -> None:
    await run(store, "a1", 0, "failed", b'{"message":"409 Held by other","node":"Reserve"}')
    await run(store, "a2", 1, "succeeded", key="A-20931")
    await run(store, "a3", 2, "failed", b'{"message":"100% full","node":"Charge"}')
    await run(store, "a4", 3)
    assert await ids(store, since=T0 + HOUR_MS, until=T0 + 3 * HOUR_MS) == ["a3", "a2"]
    assert await ids(store, since=T0 + HOUR_MS, status="queued") == ["a4"]
    assert await ids(store, text="HELD by") == await ids(store, text="reserve") == ["a1"]
    assert await ids(store, text="a-20931") == ["a2"]
    assert await ids(store, text="0%") == ["a3"], "no wildcard"
    assert await ids(store, text="a", status="failed", limit=1) == ["a3"]
    assert await ids(store, text="nothing") == []


async def test_runs_are_found_by_who_started_them_and_by_what_they_are_not(store: Store) -> None:
    for n, (by, status) in enumerate((("user:ada", "failed"), ("user:bo", "succeeded"), (None, None))):
        created, _ = await store.create_run(new_run(f"b{n}", T0 + n, started_by=by, idempotency_key=f"A-{n}"))
        if status is not None:
            (claimed,) = await store.claim("w1", T0 + n, 15_000, run_id=created.id)
            end = change(claimed, record("run.finished", None), status=status, finished=True, now_ms=T0 + n + 500)
            await store.append(end)
    assert await ids(store, by="user:ada") == ["b0"] == await ids(store, key="A-0") and await ids(store, by="x") == []
    starters = await store.starters(["b0", "b1", "b2", "nothing"])
    assert starters == {"b0": ("user:ada", False), "b1": ("user:bo", False), "b2": (None, False)}
    assert (
        await ids(store, without={"by": "user:ada"}) == ["b2", "b1"] == await ids(store, without={"status": "failed"})
    )
    assert await ids(store, without={"status": "queued", "text": "a-1"}) == ["b0"]
    assert await ids(store, by="user:bo", without={"text": "b1"}) == []
    assert await ids(store, without={"workflow": "expense"}) == [] != await ids(store, without={"workflow": "other"})


async def test_a_workflow_is_found_by_its_title_until_one_has_that_name(store: Store) -> None:
    await store.put_workflow("a", b"{}", "h1", T0)
    await store.put_workflow("b", b"{}", "h2", T0)
    assert await store.put_title("a", "Orders") and not await store.put_title("nothing", "Orders")
    assert not await store.put_title("b", "Orders") and not await store.put_title("b", "a"), "both are taken"
    assert [await store.named(text) for text in ("a", "Orders", "other", "")] == ["a", "a", "other", ""]
    await store.put_workflow("a", b'{"v":2}', "h3", T0 + 1)
    head = await store.get_head("a")
    assert head is not None and (head.title, head.newest) == ("Orders", 2), "a new version keeps it"
    assert await store.put_title("a", "") and await store.named("Orders") == "Orders"
    assert await store.put_title("a", "Orders")
    await store.put_workflow("Orders", b"{}", "h4", T0 + 2)
    assert await store.named("Orders") == "Orders"


async def test_only_so_many_texts_are_compared_for_a_page(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lists, "SCAN_MAX", 2)
    for n in range(5):
        await run(store, f"r{n}", n)
    assert await ids(store, text="r") == ["r4", "r3"]
    assert await ids(store, text="r", before="r3") == ["r2", "r1"]
    assert await ids(store, text="r1") == [] and await ids(store, text="r1", before="r3") == ["r1"]
    assert await ids(store, text="r0", until=T0 + 2 * HOUR_MS) == ["r0"]


async def test_runs_are_counted_by_time_and_status(store: Store) -> None:
    await run(store, "a", 0, "failed")
    await run(store, "b", 1, "succeeded")
    await run(store, "c", 1, "succeeded")
    await run(store, "d", 3)
    counted = await store.count_by_time(T0, T0 + 4 * HOUR_MS, 2 * HOUR_MS)
    assert sorted(counted) == [("failed", 0, 1), ("queued", 1, 1), ("succeeded", 0, 2)]
    assert await store.count_by_time(T0, T0 + 1, 1, "expense") == [("failed", 0, 1)]
    assert await store.count_by_time(T0, T0 + HOUR_MS, HOUR_MS, "other") == []


async def test_a_workflow_is_in_the_folder_that_it_was_moved_to(store: Store) -> None:
    await store.put_workflow("w", b"{}", "h1", T0, None, "user:ada")
    assert await store.put_in_folder("w", "Shop")
    await store.put_workflow("w", b'{"v":2}', "h2", T0 + 1, None, "user:bo")
    head = await store.get_head("w")
    assert head is not None and (head.folder, head.changed_by) == ("Shop", "user:bo"), "a new version stays there"
    await store.activate_workflow("w", 1, T0 + 2)
    head = await store.get_head("w")
    assert head is not None and (head.folder, head.changed_by) == ("Shop", None)
    assert not await store.put_in_folder("nothing", "Shop")


async def test_cards_have_the_last_runs_of_each_workflow(store: Store) -> None:
    if isinstance(store, ModelStore):
        pytest.skip("the model has no cards: they are asked for by the front page alone")
    await store.put_workflow("expense", DOCUMENT, "h1", T0)
    await store.put_workflow("100%", b'{"blocks":{"a":{"type":"set"}}}', "h2", T0 + 1)
    await store.put_in_folder("expense", "Shop")
    for n in range(4):
        await run(store, f"r{n}", n, "failed" if n == 3 else None)

    async def names(**where: object) -> list[str]:
        return [head.name for head in await store.list_cards(**where)]  # type: ignore[arg-type]  # as above

    assert await names() == ["expense", "100%"] and await names(order="name") == ["100%", "expense"]
    assert await names(order="changed") == ["100%", "expense"]
    assert await names(text="STOCK") == await names(text="wait") == await names(folder="Shop") == ["expense"]
    assert await names(text="0%") == ["100%"] and await names(text="blocks") == [] == await names(after=2)
    assert await names(limit=1, after=1) == ["100%"]
    assert await store.count_folders() == {"": 1, "Shop": 1}
    assert await store.card_facts(["expense", "nothing"], T0 + HOUR_MS) == {"expense": CardFacts(DOCUMENT, None, 3)}
    last = ShortRun("r3", "failed", T0 + 3 * HOUR_MS, 500)
    assert await store.short_runs(["expense", "100%"], 2) == {
        "expense": [ShortRun("r2", "queued", T0 + 2 * HOUR_MS, None), last]
    }
    assert await store.count_open(["expense", "100%"]) == {"expense": {"queued": 3}}
