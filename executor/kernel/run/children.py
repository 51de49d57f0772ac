"""Child runs: starts the run of a `run_workflow` block and turns its end into the block's outcome.

A child is made in the append that opens its parent's wait, so there is one for each wait whatever crashes in between;
its own last append puts a message into the parent's inbox, so its end cannot be lost while the parent sleeps. Whatever
else closes the wait (the parent is cancelled, fails, answers early) cancels the child, in the same append.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, Generic, TypeVar

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
from executor.kernel.process.clock import Clock
from executor.kernel.run.answers import check_input
from executor.kernel.run.new_run import Origin, new_run, new_run_id, origin_of
from executor.kernel.store.run_rows import NewRun
from executor.kernel.store.topics.contents import files_in
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.workflows import WorkflowRow
from executor.kernel.values.schema import Matches

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

# A workflow that calls itself stops here. Runs that people meant to nest go three or four deep.
DEPTH_MAX: Final = 25
# A failure climbs through up to 25 messages; the first and the last matter most.
MESSAGE_MAX: Final = 1_000
FINDINGS_SHOWN: Final = 3
NO_OUTPUT: Final = Raw(b"null")


class ChildRuns:
    """Makes children; of one process. `compile` is the engine's, with its cache."""

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

    async def prepare(self, parent: str, request: ChildRequest) -> NewRun:
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
            plan = await self._plan(row.document, request.trigger)
            origin = Origin(row.name, row.version)
        else:
            document = orjson.dumps(request.definition)
            plan = await self._plan(document, request.trigger)
            origin = origin_of(document, plan)
        try:
            checked = await check_input(plan, request.input, self._matches)
        except BadRequest as error:
            raise BlockError(
                f"workflow {origin.workflow!r}: {error.message}",
                code="input_invalid",
                retryable=False,
                hint=error.hint,
            ) from error
        now_ms = self._clock.now_ms()
        start = f.StartRequested(now_ms, new_run_id(now_ms))
        new = new_run(plan, start, origin, checked)
        named = files_in(new.input)  # those that the parent has
        return replace(new, files=tuple(await self._store.files_of_run(parent, named))) if named else new

    async def _plan(self, document: bytes, trigger: str | None) -> Plan:
        compiled = await self._compile(document, trigger)
        if compiled.plan is not None:
            return compiled.plan
        errors = [found for found in compiled.diagnostics if found.severity == "error"]
        shown = "; ".join(f"{error.pointer or '/'}: {error.message}" for error in errors[:FINDINGS_SHOWN])
        more = f" (and {len(errors) - FINDINGS_SHOWN} more)" if len(errors) > FINDINGS_SHOWN else ""
        raise BlockError(
            f"the workflow has errors: {shown}{more}", code="child_invalid", retryable=False, hint=errors[0].hint
        )


def end_message(wait: str, run: str, status: RunEnd, output: bytes | None, error: ErrorInfo | None) -> bytes:
    """Return the message for the owner of the parent. `wait` is the parent's wait."""
    return encode(ChildEnded(wait, run, status, Raw(output or b"null") if status == "succeeded" else NO_OUTPUT, error))


def cancel_message(parent: str) -> bytes:
    """Return the message for the owner of a child that its parent no longer needs."""
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


class SharedReads(Generic[Key, Value]):
    """Reads of one thing by many at the same time cost one read. For one event loop. Callers share the value and must
    not change it.

    A caller joins a read that has not begun yet, never one that is under way, so it sees all that was committed before
    it asked.
    """

    def __init__(self, read: Callable[[Key], Awaitable[Value]]) -> None:
        self._read = read
        self._next: dict[Key, asyncio.Task[Value]] = {}
        self._under_way: dict[Key, asyncio.Task[Value]] = {}

    async def read(self, key: Key) -> Value:
        """Return the shared value. An error of the read is raised to all who share it."""
        task = self._next.get(key)
        if task is None:
            task = self._next[key] = asyncio.create_task(self._after(key, self._under_way.get(key)))
            task.add_done_callback(_retrieve)
        return await asyncio.shield(task)

    async def _after(self, key: Key, before: asyncio.Task[Value] | None) -> Value:
        if before is not None:
            await asyncio.wait([before])
        task = self._under_way[key] = self._next.pop(key)
        try:
            return await self._read(key)
        finally:
            if self._under_way[key] is task:
                del self._under_way[key]


def _retrieve(task: asyncio.Task[Value]) -> None:
    """Retrieve the error: all callers may have been cancelled meanwhile, and asyncio must not report it as lost."""
    if not task.cancelled():
        task.exception()
