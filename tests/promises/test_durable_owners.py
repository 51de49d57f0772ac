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
from executor.blocks.connectors.stored import connectors
from executor.blocks.llm.endpoints import endpoints_of
from executor.blocks.types.functions import blocks_of
from executor.blocks.types.registry import Registry
from executor.kernel.journal.codec import data_of
from executor.kernel.store.postgres.store import PostgresStore
from executor.kernel.store.topics.store import Store
from executor.open.testing.crashes import COMMITS_MAX, killer
from executor.open.testing.engines import BEGIN_MS, LEASE_MS, ManualClock, engine
from executor.open.testing.play import CANCEL, finish
from executor.open.testing.process import DONE, Process, Result, Workflow, in_child
from tests.promises.test_durable_cancel import saga as cancelled_saga
from tests.promises.test_durable_cancel import short, truth
from tests.support.durable_functions import branches, outside, queue, saga, signup
from tests.support.postgres import database

pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]


class OnPostgres(Process):
    def _store(self) -> Store:
        return PostgresStore((self._folder / "address").read_text(), fault=self._point)


async def play(workflow: Workflow, folder: Path, commit: int = 0) -> Result | None:
    """Return the end of the run, or None if the process was killed after this commit."""
    code = await in_child(OnPostgres(workflow, folder, fault=killer(commit, "after") if commit else None).play, folder)
    assert code == DONE or commit, (folder / "error").read_text()
    return Result.read(folder) if code == DONE else None


async def new_database(workflow: Workflow, folder: Path, address: str) -> None:
    folder.mkdir()
    (folder / "address").write_text(address)
    assert await in_child(OnPostgres(workflow, folder).make, folder) == DONE


def effects(run: str) -> Counter[str]:
    return Counter(str(effect.what).replace(run, "<run>") for effect in outside.effects)


@pytest.mark.parametrize(
    ("flow", "input", "answers"),
    [
        (saga, {"order": "7", "amount": 3}, {"Did the courier take it?": "reject"}),
        (signup, {"name": "ada"}, {"confirmed": "ada@example.org"}),
        (branches, {}, {}),
        (queue, {"items": 3}, {}),
        (cancelled_saga, {"order": "7"}, {"courier": CANCEL, "Was the customer told?": "approve"}),
    ],
    ids=["saga", "signup", "branches", "queue", "cancelled"],
)
async def test_killed_after_each_commit_on_postgresql(
    flow: weft.Durable[..., Any], input: Any, answers: Mapping[str, Any], postgres_server: str, tmp_path: Path
) -> None:
    Registry.load(connectors())
    workflow = Workflow(flow, input, blocks_of([flow], None), dict(answers), {}, (), endpoints_of(None), (), outside)

    async def case(commit: int) -> tuple[dict[str, Any], Counter[str], bool, tuple[str, ...]]:
        outside.clear()
        folder = tmp_path / f"{commit}"
        with database(postgres_server, f"durable-{flow.name}-{commit}") as address:
            await new_database(workflow, folder, address)
            killed = bool(commit) and await play(workflow, folder, commit) is None
            result = await play(workflow, folder) if killed or not commit else Result.read(folder)
        assert result is not None and not result.repeated
        return result.end(), effects(result.run), killed, result.asked

    expected, did, _, _ = await case(0)
    for commit in range(1, COMMITS_MAX):
        end, found, killed, asked = await case(commit)
        assert end == expected, f"killed after commit {commit}"
        assert asked or found == did, f"killed after commit {commit}: {found} instead of {did}"
        assert found.keys() == did.keys()
        if not killed:
            break
    assert commit > 8


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
    flow: weft.Durable[..., Any], input: Any, answers: Mapping[str, Any], effect: Counter[str], postgres_server: str
) -> None:
    for commit in range(1, COMMITS_MAX):
        outside.clear()
        taken = await _taken_over(flow, input, answers, commit, postgres_server)
        assert Counter(one.what["what"] for one in outside.effects) == effect, f"taken over after commit {commit}"
        if not taken:
            break
    assert commit > 3


async def _taken_over(
    flow: weft.Durable[..., Any], input: Any, answers: Mapping[str, Any], commit: int, server: str
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
