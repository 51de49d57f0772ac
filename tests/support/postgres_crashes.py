"""A durable function on PostgreSQL, in processes that are killed after each commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from executor.blocks.llm.base import Model
from executor.blocks.llm.endpoints import endpoints_of
from executor.blocks.types.functions import blocks_of
from executor.kernel.store.postgres.store import PostgresStore
from executor.kernel.store.topics.store import Store
from executor.open.testing.crashes import COMMITS_MAX, killer
from executor.open.testing.outside import Outside
from executor.open.testing.process import DONE, Process, Result, Workflow, in_child
from tests.support.postgres import database


class OnPostgres(Process):
    def _store(self) -> Store:
        return PostgresStore((self._folder / "address").read_text(), fault=self._point)


class Played(Struct, frozen=True):
    result: Result
    effects: Counter[str]
    killed: bool


async def crash_after_each_commit(
    flow: Any,
    input: Any,
    answers: Mapping[str, Any],
    outside: Outside,
    server: str,
    folder: Path,
    models: Mapping[str, str | Model] | None = None,
    every: int = 1,
) -> tuple[int, Result]:
    """Kill at each `every`th commit. Return the number of commits, and the end of the run without a crash. Raises
    AssertionError: it ends in another way after a crash, or an effect happened again without a question to a person."""
    workflow = Workflow(flow, input, blocks_of([flow], None), dict(answers), {}, (), endpoints_of(models), (), outside)

    async def case(commit: int) -> Played:
        outside.clear()
        own = folder / f"{commit}"
        with database(server, f"durable-{flow.name}-{commit}") as address:
            await new_database(workflow, own, address)
            killed = bool(commit) and await play(workflow, own, commit) is None
            result = await play(workflow, own) if killed or not commit else Result.read(own)
        assert result is not None and not result.repeated
        did = Counter(str(effect.what).replace(result.run, "<run>") for effect in outside.effects)
        return Played(result, did, killed)

    first = await case(0)
    for commit in range(1, COMMITS_MAX, every):
        found = await case(commit)
        if not found.killed:
            break
        assert found.result.end() == first.result.end(), f"killed after commit {commit}"
        same = found.effects == first.effects
        assert found.result.asked or same, f"killed after commit {commit}: {found.effects} instead of {first.effects}"
        assert found.effects.keys() == first.effects.keys()
    return commit - 1, first.result


async def play(workflow: Workflow, folder: Path, commit: int = 0) -> Result | None:
    """Return the end of the run, or None if the process was killed after this commit."""
    code = await in_child(OnPostgres(workflow, folder, fault=killer(commit, "after") if commit else None).play, folder)
    assert code == DONE or commit, (folder / "error").read_text()
    return Result.read(folder) if code == DONE else None


async def new_database(workflow: Workflow, folder: Path, address: str) -> None:
    folder.mkdir()
    (folder / "address").write_text(address)
    assert await in_child(OnPostgres(workflow, folder).make, folder) == DONE
