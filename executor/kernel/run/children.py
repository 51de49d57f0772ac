"""Runs that a run makes: the child of a `run_workflow` block, and the run that continues after `continue_as_new`.

A child is made in the append that opens its parent's wait, so there is one for each wait whatever crashes in between;
its own last append puts a message into the parent's inbox, so its end cannot be lost while the parent sleeps.
Whatever else closes the wait (the parent is cancelled, fails, answers early) cancels the child, in the same append.

The next run is made when its block runs, so that an error in its input is an error of the block. It is stored in the
append that ends the run, after the cleanups. A process that folds a run between the two makes it again from the
block's output.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson
from msgspec import Raw
from msgspec.structs import replace

from compiler.compile import Compiled
from compiler.plan import Plan
from executor.errors import BadRequest, BlockError
from executor.kernel.core import facts as f
from executor.kernel.core.events import ErrorInfo, RunEnd
from executor.kernel.core.messages import Cancel, ChildEnded, encode
from executor.kernel.handler.base import ChildRequest
from executor.kernel.journal.codec import data_of
from executor.kernel.process.clock import Clock
from executor.kernel.process.observe import with_parent
from executor.kernel.process.shared_reads import SharedReads
from executor.kernel.run.loaded import LoadedRun
from executor.kernel.run.new_run import RANDOM_DIGITS, Origin, check_input, new_run, new_run_id, origin_of
from executor.kernel.store.run_rows import NewRun, RunRow
from executor.kernel.store.topics.contents import files_in
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.workflows import WorkflowRow
from executor.kernel.values.schema import Matches

# A workflow that calls itself stops here. Runs that people meant to nest go three or four deep.
DEPTH_MAX: Final = 25
# A failure climbs through up to 25 messages; the first and the last matter most.
MESSAGE_MAX: Final = 1_000
FINDINGS_SHOWN: Final = 3
NO_OUTPUT: Final = Raw(b"null")


# The runs of a chain start this far apart at least: one that does nothing must not fill the database.
EVERY_MS: Final = 1_000


class FurtherRuns:
    """Makes the runs that runs of this process need. `compile` is the engine's, with its cache."""

    def __init__(
        self, store: Store, clock: Clock, matches: Matches, compile: Callable[[Any, str | None], Awaitable[Compiled]]
    ) -> None:
        self._store = store
        self._ancestors: SharedReads[str, list[str]] = SharedReads(lambda run: store.list_ancestors(run, DEPTH_MAX))
        self._workflows: SharedReads[tuple[str, int | None], WorkflowRow | None] = SharedReads(
            lambda which: store.get_workflow(*which)
        )
        self._clock = clock
        self._matches = matches
        self._compile = compile

    async def prepare_child(self, parent: str, request: ChildRequest) -> NewRun:
        """Return the child to create for run `parent`; the append that opens the wait sets for which one. Raises
        BlockError: limit_depth, workflow_not_found, child_invalid, input_invalid."""
        if len(await self._ancestors.read(parent)) >= DEPTH_MAX:
            raise BlockError(
                f"runs are nested more than {DEPTH_MAX} levels deep",
                code="limit_depth",
                retryable=False,
                hint="does the workflow run itself without end? use a loop to repeat blocks without new runs",
            )
        if request.workflow is not None:
            row = await self._workflows.read((request.workflow, request.version))
            if row is None:
                which = f"version {request.version} of workflow" if request.version is not None else "workflow"
                raise BlockError(
                    f"there is no {which} {request.workflow[:200]!r}",
                    code="workflow_not_found",
                    retryable=False,
                    hint="Store it under this name first: `weft deploy FILE`, or engine.workflows.save.",
                )
            plan = await self._plan(row.document, request.trigger, "the workflow", "child_invalid")
            origin = Origin(row.name, row.version)
        else:
            document = orjson.dumps(request.definition)
            plan = await self._plan(document, request.trigger, "the workflow", "child_invalid")
            origin = origin_of(document, plan)
        checked = await self._checked(plan, request.input, f"workflow {origin.workflow!r}")
        now_ms = self._clock.now_ms()
        start = f.StartRequested(now_ms, new_run_id(now_ms))
        return await self._with_files(new_run(plan, start, origin, checked), parent)

    async def prepare_next(self, row: RunRow, plan: Plan, input: Any) -> NewRun:
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
            plan = await self._next_plan(active, plan.trigger)
        version = "" if active is None else f" of version {active.version}"
        checked = await self._checked(plan, input, f"the input of the next run{version}")
        return await self._made(row, plan, None if active is None else active.version, checked)

    async def make_next_again(self, run: LoadedRun) -> NewRun:
        """Make the next run again, for a run whose journal shows that its block has made it. If this process cannot
        compile the version for it, the next run has the plan of this one."""
        assert run.notes.response is not None, "what the block put out comes with the event"
        made = orjson.loads(run.notes.response)
        plan, version = run.plan, made["version"]
        if version not in (None, run.row.version):
            row = await self._store.get_workflow(run.row.workflow, version)
            try:
                plan = plan if row is None else await self._next_plan(row, plan.trigger)
            except BlockError:
                version = run.row.version
        return await self._made(run.row, plan, version, made["input"])

    async def _next_plan(self, row: WorkflowRow, trigger: str) -> Plan:
        return await self._plan(
            row.document, trigger, f"version {row.version} of workflow {row.name!r}", "workflow_invalid"
        )

    async def _plan(self, document: bytes, trigger: str | None, what: str, code: str) -> Plan:
        """Return the plan of a document. Raises BlockError with the first of its errors."""
        compiled = await self._compile(document, trigger)
        if compiled.plan is not None:
            return compiled.plan
        errors = [found for found in compiled.diagnostics if found.severity == "error"]
        shown = "; ".join(f"{error.pointer or '/'}: {error.message}" for error in errors[:FINDINGS_SHOWN])
        more = f" (and {len(errors) - FINDINGS_SHOWN} more)" if len(errors) > FINDINGS_SHOWN else ""
        raise BlockError(f"{what} has errors: {shown}{more}", code=code, retryable=False, hint=errors[0].hint)

    async def _checked(self, plan: Plan, input: Any, what: str) -> Any:
        try:
            return await check_input(plan, input, self._matches)
        except BadRequest as error:
            message = f"{what}: {error.message}"
            raise BlockError(message, code="input_invalid", retryable=False, hint=error.hint) from error

    async def _made(self, row: RunRow, plan: Plan, version: int | None, checked: Any) -> NewRun:
        records = await self._store.read_events(row.id, limit=1)
        by = data_of(records[0]).get("by") if records else None
        now_ms = self._clock.now_ms()
        start = f.StartRequested(now_ms, next_run_id(row.id, now_ms), by=by)
        draft = row.draft_id, row.draft_rev
        origin = Origin(row.workflow, version, None if version is not None else row.document_hash, None, *draft)
        with with_parent(None):  # a trace for each run: one of a whole chain would never end
            new = new_run(plan, start, origin, checked, continues=row.id)
        return await self._with_files(new, row.id)

    async def _with_files(self, new: NewRun, giver: str) -> NewRun:
        """Return the run with the files in its input that run `giver` has."""
        named = files_in(new.input)
        return replace(new, files=tuple(await self._store.files_of_run(giver, named))) if named else new


def end_message(wait: str, run: str, status: RunEnd, output: bytes | None, error: ErrorInfo | None) -> bytes:
    return encode(ChildEnded(wait, run, status, Raw(output or b"null") if status == "succeeded" else NO_OUTPUT, error))


def cancel_message(parent: str) -> bytes:
    return encode(Cancel(f"run {parent}, which started this one, no longer needs it"))


def cancel_of_orphan(now_ms: int) -> f.CancelRequested:
    """Return the cancel for a run of which a run above was cancelled, or has ended, and the runs between have not
    passed it on yet."""
    return f.CancelRequested(now_ms, "a run above this one no longer needs it")


def error_of_end(ended: ChildEnded) -> ErrorInfo:
    """Return the error of a block whose child did not succeed. Another attempt is another child: the block's retry
    policy decides whether there is one, unless the child was cancelled directly."""
    run = ended.run
    if ended.status == "cancelled":
        return ErrorInfo("child_cancelled", f"child run {run} was cancelled", hint=f"see run {run}")
    error = ended.error or ErrorInfo("failed", "no reason was recorded")
    reason = error.message if error.code == "child_failed" else f"{error.code}: {error.message}"
    where = f" at block {error.block!r}" if error.block else ""
    text = f"child run {run} failed{where}: {reason}"
    if len(text) > MESSAGE_MAX:
        text = f"{text[: MESSAGE_MAX // 2]} ... {text[-MESSAGE_MAX // 2 :]}"
    return ErrorInfo("child_failed", text, retryable=True, hint=f"see run {run}")


def next_run_id(run: str, now_ms: int) -> str:
    """Return an id like those of other new runs, but a run has only one next."""
    return f"{now_ms:012x}{hashlib.sha256(f'weft next {run}'.encode()).hexdigest()[:RANDOM_DIGITS]}"


def begun_at(new: NewRun, before: RunRow, at_ms: int) -> NewRun:
    """Return the run as it is created at `at_ms`, when the one before ends."""
    started_ms = before.created_at_ms if before.started_at_ms is None else before.started_at_ms
    records = tuple(replace(record, at_ms=at_ms) for record in new.records)
    return replace(new, records=records, now_ms=at_ms, due_ms=max(at_ms, started_ms + EVERY_MS))
