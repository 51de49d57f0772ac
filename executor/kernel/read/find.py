"""Rows by the names that callers use. What is not there is NotFound."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from executor.errors import Conflict, NotFound
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.workflows import WorkflowRow


async def find_run(store: Store, run: str) -> RunRow:
    row = await store.get_run(run)
    if row is None:
        hint = "`weft runs` or engine.runs.list() has the runs there are; ended ones may have been deleted by age"
        raise NotFound(f"there is no run '{run}'", code="run_not_found", hint=hint)
    return row


def check_ended(row: RunRow) -> None:
    """Raises Conflict if the run is open."""
    if row.status not in TERMINAL:
        message, hint = f"run {row.id} has not ended yet (it is {row.status})", "cancel it, or wait until it ends"
        raise Conflict(message, code="run_not_ended", hint=hint)


@asynccontextmanager
async def existing_run(store: Store, run: str, row: RunRow | None = None) -> AsyncIterator[RunRow]:
    """The row of a run, for a caller that reads more of it: NotFound if upkeep deletes the run meanwhile. `row`: if it
    was read just now."""
    row = row or await find_run(store, run)
    try:
        yield row
    except Exception:
        await find_run(store, run)
        raise
    await find_run(store, run)


async def find_version(store: Store, workflow: str, version: int | None = None) -> WorkflowRow:
    """Return a version of a workflow by its name, else by its title; without a number the active one."""
    row = await store.get_workflow(workflow)
    if row is None and (name := await store.named(workflow)) != workflow:
        row = await store.get_workflow(name)
    if row is not None and version not in (None, row.version):
        row = await store.get_workflow(row.name, version)
    if row is None:
        which = f"workflow '{workflow}'" if version is None else f"version {version} of workflow '{workflow}'"
        hint = "deploy it first: `weft workflows` lists those that are stored"
        raise NotFound(f"there is no {which}", code="workflow_not_found", hint=hint)
    return row
