"""The lane of a run: its pages, what has changed after an event, and who has none."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from executor.errors import NotFound
from executor.open.testing.engines import engine
from executor.open.testing.play import finish
from executor.service.views import lane as views
from tests.support.documents import chain


@weft.step(effect="none")
async def one(n: int) -> int:
    return n


@weft.durable
async def counts(to: int) -> None:
    for n in range(to):
        await one(n)
    await weft.signal("go")
    await one(to)


async def test_it_has_the_calls_in_order_and_says_what_changed_after_an_event() -> None:
    async with engine(workflows=[counts]) as opened:
        run = (await opened.submit(counts, to=2)).run
        await opened.wait_finished(run, 10)
        before = await opened.runs.lane(run)
        assert before.function.endswith(".counts") and before.left_off == 0
        assert [(item.n, item.kind, item.status) for item in before.items] == [
            (1, "step", "succeeded"),
            (2, "step", "succeeded"),
            (3, "wait", "waiting"),
        ]
        wait = before.items[2].wait
        assert wait is not None and wait.kind == "signal" and wait.id is not None
        await finish(opened, run, {"go": 1})
        changed = await opened.runs.lane(run, before.seq)
        assert [(item.n, item.status) for item in changed.items] == [(3, "succeeded"), (4, "succeeded")]
        assert changed.items[0].wait is not None and changed.items[0].wait.id is None


async def test_pages_have_the_newest_first_and_each_call_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "ITEMS_MAX", 4)
    async with engine(workflows=[counts]) as opened:
        run = (await opened.submit(counts, to=9)).run
        await opened.wait_finished(run, 10)
        seen: list[int] = []
        before: int | None = None
        while True:
            page = await opened.runs.lane(run, before=before)
            seen = [item.n for item in page.items] + seen
            if not page.left_off:
                break
            assert len(page.items) == 4
            before = min(item.started_seq for item in page.items)
        assert seen == list(range(1, 11))


async def test_what_was_open_when_the_run_ended_has_changed_with_it() -> None:
    async with engine(workflows=[counts]) as opened:
        run = (await opened.submit(counts, to=1)).run
        await opened.wait_finished(run, 10)
        seq = (await opened.runs.lane(run)).seq
        await opened.cancel(run)
        await opened.wait_finished(run, 10)
        [item] = (await opened.runs.lane(run, seq)).items
        assert (item.n, item.status) == (2, "cancelled")


async def test_other_runs_have_none() -> None:
    document: dict[str, Any] = chain("a", a={"type": "set", "params": {"value": 1}})
    async with engine() as opened:
        run = (await opened.run(document)).id
        with pytest.raises(NotFound, match="not that of a durable function"):
            await opened.runs.lane(run)
