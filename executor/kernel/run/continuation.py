"""Runs that continue as new: the run that a `continue_as_new` block ends, and the one that continues it.

The next run is made when the block runs, so that an error in its input is an error of the block. It is stored in the
append that ends the run, after the cleanups. A process that folds a run between the two makes it again from the block's
output.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson
from msgspec.structs import replace

from compiler.compile import Compiled
from compiler.plan import Plan
from executor.errors import BadRequest, BlockError
from executor.kernel.core import facts as f
from executor.kernel.journal.codec import data_of
from executor.kernel.process.clock import Clock
from executor.kernel.process.tracing import with_parent
from executor.kernel.run.answers import check_input
from executor.kernel.run.loaded import LoadedRun
from executor.kernel.run.new_run import RANDOM_DIGITS, Origin, new_run
from executor.kernel.store.run_rows import NewRun, RunRow
from executor.kernel.store.topics.contents import files_in
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.workflows import WorkflowRow
from executor.kernel.values.schema import Matches

# The runs of a chain start this far apart at least: one that does nothing must not fill the database.
EVERY_MS: Final = 1_000


class Continuations:
    """Makes the runs that continue others; of one process. `compile` is the engine's, with its cache."""

    def __init__(
        self, store: Store, clock: Clock, matches: Matches, compile: Callable[[Any, str | None], Awaitable[Compiled]]
    ) -> None:
        self._store = store
        self._clock = clock
        self._matches = matches
        self._compile = compile

    async def prepare(self, row: RunRow, plan: Plan, input: Any) -> NewRun:
        """Return the run that continues run `row`, which has this plan: of the active version of its workflow, from the
        same trigger. Raises BlockError: continue_as_new_child, workflow_invalid, input_invalid."""
        if row.parent_run_id is not None:
            raise BlockError(
                f"run {row.parent_run_id} waits for the output of this run, so it cannot continue as new",
                code="continue_as_new_child",
                retryable=False,
                hint="repeat the blocks in a loop, or start the workflow by itself",
            )
        active = None if row.version is None else await self._store.get_workflow(row.workflow)
        if active is not None:
            plan = await self._plan(active, plan.trigger)
        try:
            checked = await check_input(plan, input, self._matches)
        except BadRequest as error:
            version = "" if active is None else f" of version {active.version}"
            raise BlockError(
                f"the input of the next run{version}: {error.message}",
                code="input_invalid",
                retryable=False,
                hint=error.hint,
            ) from error
        return await self._made(row, plan, None if active is None else active.version, checked)

    async def again(self, run: LoadedRun) -> NewRun:
        """Make the next run again, for a run whose journal shows that its block has made it. If this process cannot
        compile the version for it, the next run has the plan of this one."""
        assert run.notes.response is not None, "what the block put out comes with the event"
        made = orjson.loads(run.notes.response)
        plan, version = run.plan, made["version"]
        if version not in (None, run.row.version):
            row = await self._store.get_workflow(run.row.workflow, version)
            try:
                plan = plan if row is None else await self._plan(row, plan.trigger)
            except BlockError:
                version = run.row.version
        return await self._made(run.row, plan, version, made["input"])

    async def _plan(self, row: WorkflowRow, trigger: str) -> Plan:
        compiled = await self._compile(row.document, trigger)
        if compiled.plan is not None:
            return compiled.plan
        error = next(found for found in compiled.diagnostics if found.severity == "error")
        raise BlockError(
            f"version {row.version} of workflow {row.name!r} has errors: {error.pointer or '/'}: {error.message}",
            code="workflow_invalid",
            retryable=False,
            hint=error.hint,
        )

    async def _made(self, row: RunRow, plan: Plan, version: int | None, checked: Any) -> NewRun:
        """Started by who started the run before."""
        records = await self._store.read_events(row.id, limit=1)
        by = data_of(records[0]).get("by") if records else None
        now_ms = self._clock.now_ms()
        start = f.StartRequested(now_ms, next_run_id(row.id, now_ms), by=by)
        draft = row.draft_id, row.draft_rev
        origin = Origin(row.workflow, version, None if version is not None else row.document_hash, None, *draft)
        with with_parent(None):  # a trace for each run: one of a whole chain would never end
            new = new_run(plan, start, origin, checked, continues=row.id)
        named = files_in(new.input)  # those that this run has
        return replace(new, files=tuple(await self._store.files_of_run(row.id, named))) if named else new


def next_run_id(run: str, now_ms: int) -> str:
    """Return an id like those of other new runs, but a run has only one next."""
    return f"{now_ms:012x}{hashlib.sha256(f'weft next {run}'.encode()).hexdigest()[:RANDOM_DIGITS]}"


def begun_at(new: NewRun, before: RunRow, at_ms: int) -> NewRun:
    """Return the run as it is created at `at_ms`, when the one before ends."""
    started_ms = before.created_at_ms if before.started_at_ms is None else before.started_at_ms
    records = tuple(replace(record, at_ms=at_ms) for record in new.records)
    return replace(new, records=records, now_ms=at_ms, due_ms=max(at_ms, started_ms + EVERY_MS))
