from __future__ import annotations

import pytest
from msgspec.structs import replace

from executor.errors import Fenced
from executor.kernel.store.run_rows import Append
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.usage import DELETED, Spent, UsageRow, UsageSum
from tests.support.rows import T0, finish, new_run, owned_run, record

TABLE = "prices of 2026-11-01"


def spent(tokens: int = 10, nanos: int | None = 7) -> Spent:
    return Spent(1, int(nanos is None), tokens, 1, 2, 3, 1, nanos or 0)


def row(run: str, day: int = 5, model: str = "dev:m", tokens: int = 10, nanos: int | None = 7) -> UsageRow:
    return UsageRow(run, day, "expense", model, "" if nanos is None else TABLE, spent(tokens, nanos))


async def use(store: Store, run: str, *rows: UsageRow) -> None:
    stored = await store.get_run(run)
    assert stored is not None
    await store.append(Append(run, stored.epoch, stored.seq, (record(),), T0, usage=rows))


async def test_each_end_of_a_step_is_added(store: Store) -> None:
    await owned_run(store, "r")
    await use(store, "r", row("r"), row("r"), row("r", day=6), row("r", nanos=None), row("r", model="dev:n"))
    found = await store.usage_of("r")
    assert [(each.key, each.prices) for each in found] == [("dev:m", ""), ("dev:m", TABLE), ("dev:n", TABLE)]
    assert [each.spent for each in found] == [spent(nanos=None), Spent(3, 0, 30, 3, 6, 9, 3, 21), spent()]


async def test_usage_of_what_is_no_run_is_added(store: Store) -> None:
    await store.add_usage([row(DELETED), row(DELETED), row(DELETED, model="dev:n")])
    await store.add_usage([row(DELETED)])
    found = await store.usage_between(0, 99, "model")
    assert {each.key: each.spent.calls for each in found} == {"dev:m": 3, "dev:n": 1}
    assert await store.usage_of(DELETED) == []


async def test_a_fenced_append_adds_nothing(store: Store) -> None:
    run = await owned_run(store, "r")
    stale = Append("r", run.epoch + 1, run.seq, (record(),), T0, usage=(row("r"),))
    with pytest.raises(Fenced):
        await store.append(stale)
    assert await store.usage_of("r") == [] == await store.usage_between(0, 99, "day")


async def test_a_run_counts_with_all_below_it(store: Store) -> None:
    for id, parent in (("a", None), ("b", "a"), ("c", "b"), ("other", None)):
        if parent is None:
            await owned_run(store, id)
        else:
            await store.create_run(new_run(id, parent_run_id=parent, parent_key=f"call-{id}!1"))
            await store.claim("w1", T0, 10_000, run_id=id)
        await use(store, id, row(id))
    counted = {run: [each.spent.calls for each in await store.usage_of(run)] for run in ("a", "b", "c", "other")}
    assert counted == {"a": [3], "b": [2], "c": [1], "other": [1]}
    assert await store.usage_of("none") == []


async def test_sums_by_day_workflow_and_model(store: Store) -> None:
    await owned_run(store, "r")
    mine, other = row("r"), replace(row("r", day=6, model="dev:n", nanos=9), workflow="other")
    await use(store, "r", mine, other, row("r", day=9, nanos=0))
    by = {name: await store.usage_between(5, 6, name) for name in ("day", "workflow", "model")}
    assert [each.key for each in by["day"]] == [6, 5], "what costs most comes first"
    assert by["workflow"] == [UsageSum("other", TABLE, other.spent), UsageSum("expense", TABLE, mine.spent)]
    assert [each.key for each in by["model"]] == ["dev:n", "dev:m"]
    assert await store.usage_between(5, 9, "day", "other") == [UsageSum(6, TABLE, other.spent)]
    assert await store.usage_between(6, 5, "day") == []


async def test_what_deleted_runs_used_stays(store: Store) -> None:
    for id in ("r", "s"):
        await owned_run(store, id)
        await use(store, id, row(id), row(id, day=6))
        stored = await store.get_run(id)
        assert stored is not None
        await finish(store, stored)
    before = await store.usage_between(0, 99, "day")
    assert await store.delete_runs(["r"]) == ["r"] and await store.delete_runs(["s"]) == ["s"]
    assert await store.usage_of("r") == [] and await store.usage_between(0, 99, "day") == before
    assert [each.spent.calls for each in before] == [2, 2]
