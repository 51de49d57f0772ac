"""Durable functions on PostgreSQL: killed at commits, and taken over by a second engine that has their runs as well."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import weft
from executor.kernel.journal.codec import data_of
from executor.kernel.store.postgres.store import PostgresStore
from executor.open.testing.crashes import COMMITS_MAX
from executor.open.testing.engines import BEGIN_MS, LEASE_MS, ManualClock, engine
from executor.open.testing.play import CANCEL, finish
from tests.promises.test_durable_cancel import saga as cancelled_saga
from tests.promises.test_durable_cancel import short, truth
from tests.support.durable_functions import branches, outside, queue
from tests.support.postgres import database
from tests.support.postgres_crashes import crash_after_each_commit
from tests.support.size import size

pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("flow", "input", "answers"),
    [
        (branches, {}, {}),
        (queue, {"items": 3}, {}),
        (cancelled_saga, {"order": "7"}, {"courier": CANCEL, "Was the customer told?": "approve"}),
    ],
    ids=["branches", "queue", "cancelled"],
)
async def test_killed_after_each_commit_on_postgresql(
    flow: weft.DurableFunction[..., Any], input: Any, answers: Mapping[str, Any], postgres_server: str, tmp_path: Path
) -> None:
    """Each in `make soak`, else each second one."""
    commits, _ = await crash_after_each_commit(
        flow, input, answers, outside, postgres_server, tmp_path, every=size(2, 1)
    )
    assert commits > 7


LOST = {f"Step {n} of {block} was lost": truth for n in range(1, 9) for block in ("body", "undo")}


@pytest.mark.parametrize(
    ("flow", "input", "answers", "effect"),
    [
        (short, {}, {"go": 1}, Counter(["a", "b"])),
        (short, {}, {"go": CANCEL}, Counter(["a", "b", "undo b", "undo a"])),
    ],
    ids=["ends", "cancelled"],
)
async def test_a_second_owner_takes_the_run_over_after_each_commit_of_the_first(
    flow: weft.DurableFunction[..., Any],
    input: Any,
    answers: Mapping[str, Any],
    effect: Counter[str],
    postgres_server: str,
) -> None:
    for commit in range(1, COMMITS_MAX):
        outside.clear()
        taken = await _taken_over(flow, input, answers, commit, postgres_server)
        assert Counter(one.what["what"] for one in outside.effects) == effect, f"taken over after commit {commit}"
        if not taken:
            break
    assert commit > 3


async def _taken_over(
    flow: weft.DurableFunction[..., Any], input: Any, answers: Mapping[str, Any], commit: int, server: str
) -> bool:
    """Play a run that a second engine takes over after this commit of the first. Returns False if it did not."""
    loop, passed, count = asyncio.get_running_loop(), asyncio.Event(), 0

    def point(name: str) -> None:
        nonlocal count
        if name.endswith(".after_commit"):
            count += 1
            if count == commit:
                loop.call_soon_threadsafe(passed.set)

    truthful = {**LOST, **answers}
    behind, ahead = ManualClock(BEGIN_MS), ManualClock(BEGIN_MS + LEASE_MS + 1)
    async with AsyncExitStack() as stack:
        address = stack.enter_context(database(server, f"owners-{flow.name}-{commit}"))
        first = await stack.enter_async_context(
            engine(workflows=[flow], database=PostgresStore(address, fault=point), clock=behind)
        )
        count = 0
        run = (await first.submit(flow, input=input)).run
        playing = asyncio.create_task(finish(first, run, truthful))
        done, _ = await asyncio.wait([asyncio.create_task(passed.wait()), playing], return_when=asyncio.FIRST_COMPLETED)
        if playing in done:
            return False
        playing.cancel()
        second = await stack.enter_async_context(engine(workflows=[flow], database=PostgresStore(address), clock=ahead))
        view = await finish(second, run, truthful)
        assert view.status == ("cancelled" if answers["go"] is CANCEL else "succeeded"), view.error
        events = await second.store.read_events(run)
        assert [one.seq for one in events] == list(range(1, len(events) + 1))
        ends = [data_of(one)["n"] for one in events if one.type == "step.finished"]
        assert len(ends) == len(set(ends)), "a step ended twice"
    return True
