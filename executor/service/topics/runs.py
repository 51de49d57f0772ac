"""Runs: started, shown, listed, waited for, cancelled; `engine.runs`. New runs from old ones: `lifecycle.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

import orjson
from msgspec.structs import replace

from compiler.diagnostics import Diagnostic
from compiler.document import PRIORITY_MAX, PRIORITY_MIN, Described
from compiler.keys import parse_wait
from compiler.plan import Plan
from compiler.tracing.workflow import input_of, is_composed
from executor.errors import BadRequest, Conflict, NotFound
from executor.kernel.core import facts as f
from executor.kernel.core.messages import Cancel, encode
from executor.kernel.journal.codec import keep_plan
from executor.kernel.journal.reader import load_plan
from executor.kernel.process.acting import present_actor
from executor.kernel.process.shared_reads import SharedReads
from executor.kernel.read.cursor import Ends
from executor.kernel.read.find import existing_run, find_run, find_version
from executor.kernel.run.awaited import AwaitedRun
from executor.kernel.run.compiler import plan_of
from executor.kernel.run.new_run import Origin, check_input, new_run, new_run_id, origin_of, request_hash
from executor.kernel.store.run_rows import NewRun, RunRow
from executor.kernel.store.statements import TERMINAL, RunStatus
from executor.kernel.store.topics.drafts import DraftHead
from executor.kernel.store.topics.run_lists import NOTHING, Without
from executor.kernel.store.topics.workflows import WorkflowRow
from executor.kernel.worker.pressure import Pressure
from executor.service.parts import Parts, Topic
from executor.service.topics.usage import usage_view
from executor.service.topics.waits import Waits
from executor.service.topics.workflows import Workflows
from executor.service.views import ChildView, NodeDetail, ParentView, RunDocument, RunGraph, RunView, Submitted, view_of
from executor.service.views import lane as lane_view
from executor.service.views import node as node_view
from executor.service.views import run as run_view
from executor.service.views.lane import Lane

# The interval at which a waiter checks if another process has ended the run that it executes.
WAIT_POLL_S = 1.0
# The first intervals, where there is a bus: the process that executes the run has yet to be notified of the waiter.
FIRST_POLL_S = 0.05
OWNED_POLL_S = 5.0  # one in memory here notifies the waiter; one that no process has is looked for by `Ends`
FOR_EVER_S = 1e9  # thirty years
# The times that a view of a waiting run is built again because the run has changed meanwhile.
SAME_MOMENT_TRIES = 5
# A view of a run shows the newest children; `engine.runs.list(parent=...)` has pages.
CHILDREN_SHOWN_MAX = 200


class Runs(Topic):
    def __init__(self, parts: Parts, waits: Waits, workflows: Workflows) -> None:
        super().__init__(parts)
        self._workflows = workflows
        self._rows: SharedReads[str, RunRow] = SharedReads(lambda run: find_run(parts.store, run))
        self._waits = waits
        self._ends = Ends(parts.store, parts.owned)
        self._pressure = Pressure(parts.store, parts.clock, parts.services.limits.queued)

    async def stop(self) -> None:
        await self._ends.stop()

    # --- new runs ---

    async def submit(
        self,
        workflow: str | Mapping[str, Any] | Described,
        *,
        input: Any = None,
        trigger: str | None = None,
        version: int | None = None,
        idempotency_key: str | None = None,
        stop_after: str | None = None,
        draft: DraftHead | None = None,
        priority: int | None = None,
        **arguments: Any,
    ) -> Submitted:
        """Start a run of a stored workflow (by name), of a workflow in Python, or of a document, which may be that of a
        `draft`. `arguments` of a workflow function are in place of its input: `submit(order, order="7")`. `priority`:
        in place of that of the workflow. Raises CompileError, NotFound, InputInvalid, BadRequest,
        QueueFull, and Conflict when `idempotency_key` was used for a different request."""
        input = input_of(workflow, input, arguments) if arguments else input
        new, plan, found = await self._asked(
            workflow, input, trigger, version, idempotency_key, priority, stop_after, draft
        )
        stored, created = await self.create(new, plan)
        return Submitted(stored.id, stored.workflow, stored.version, stored.status, created, tuple(found))

    async def _asked(
        self,
        workflow: str | Mapping[str, Any] | Described,
        input: Any,
        trigger: str | None,
        version: int | None,
        idempotency_key: str | None,
        priority: int | None,
        stop_after: str | None = None,
        draft: DraftHead | None = None,
    ) -> tuple[NewRun, Plan, Sequence[Diagnostic]]:
        if priority is not None and not PRIORITY_MIN <= priority <= PRIORITY_MAX:
            message = f"the priority is {priority}, and must be from {PRIORITY_MIN} to {PRIORITY_MAX}"
            raise BadRequest(message, code="priority_invalid")
        row: WorkflowRow | None = None
        if isinstance(workflow, str):
            row = await find_version(self._store, workflow, version)
            document = row.document
        else:
            if is_composed(workflow):
                await self._workflows.save_called(workflow)
            document = orjson.dumps(workflow if isinstance(workflow, Mapping) else workflow.document())
        compiled = await self._parts.compiler.compile(document, trigger)
        plan = plan_of(compiled)
        admitted = await self._parts.files.admit(input, "/input")
        checked = await check_input(plan, admitted.value, self._parts.services.sandbox.matches)
        stop = _node_number(plan, stop_after) if stop_after is not None else None
        now_ms = self._clock.now_ms()
        start = f.StartRequested(now_ms, new_run_id(now_ms), stop_after=stop, by=present_actor())
        origin = Origin(row.name, row.version) if row is not None else origin_of(document, plan, draft)
        new = new_run(
            plan,
            start,
            origin,
            checked,
            idempotency_key=idempotency_key,
            request_hash=request_hash(row.hash if row else plan.hash, checked, trigger, stop_after),
            priority=priority,
            files=admitted.files,
        )
        return new, plan, compiled.diagnostics

    async def run(
        self,
        workflow: str | Mapping[str, Any] | Described,
        input: Any = None,
        *,
        trigger: str | None = None,
        version: int | None = None,
        idempotency_key: str | None = None,
        timeout_s: float | None = None,
        priority: int | None = None,
        **arguments: Any,
    ) -> RunView:
        """Start a run and wait until it has ended: `run(document, {"order": "7"})`, `run(order, order="7")`. After
        `timeout_s` (None for no limit) the view shows it as it is then, and it continues. Raises like `submit`."""
        input = input_of(workflow, input, arguments) if arguments else input
        asked, plan, _ = await self._asked(workflow, input, trigger, version, idempotency_key, priority)
        left = self._parts.owned.watch_left(asked.id)  # before it is there: it may end at once
        watched = AwaitedRun()
        row: RunRow | None = None
        try:
            stored, created = await self.create(asked, plan, watched)
            del asked, plan  # they may be large, and the run may take long
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    row = await self._over(stored.id, stored if created else None, left, watched)
        finally:
            left.cancel()
        if watched.ended is not None:  # here, and nothing of it has to be read
            plan = await load_plan(self._store, watched.ended.plan_hash)
            view = run_view.of_ended(plan, watched.ended, watched.records)
            return await self._with_usage(view) if watched.has_usage else view
        return await self.view(stored.id, row)

    async def _over(
        self, run: str, stored: RunRow | None, left: asyncio.Future[None], watched: AwaitedRun
    ) -> RunRow | None:
        """Wait for its end. Returns None if `watched` has all of it. `stored`: its row, if it was created now."""
        if stored is not None and watched.is_here:
            await left
        elif stored is not None:
            await self._may_have_changed(stored, left, FIRST_POLL_S)
        return await self._ended(run) if watched.ended is None else None

    async def _ended(self, run: str, asleep: Callable[[RunRow], Awaitable[bool]] | None = None) -> RunRow:
        """Wait for its end, or until it waits and is `asleep`."""
        poll_s = FIRST_POLL_S
        while True:
            left = self._parts.owned.watch_left(run)
            try:
                row = await find_run(self._store, run)
                if row.status in TERMINAL or (asleep is not None and row.status == "waiting" and await asleep(row)):
                    return row
                poll_s = await self._may_have_changed(row, left, poll_s, only_end=asleep is None)
            finally:
                left.cancel()

    async def _may_have_changed(
        self, row: RunRow, left: asyncio.Future[None], poll_s: float, *, only_end: bool = True
    ) -> float:
        """Wait until its row is worth another look. Its journal is not followed: reading that once for each commit cost
        a run a third of its time. Returns `poll_s` for the next time. Not `only_end`: the caller also waits for what a
        waiting run shows without an event."""
        peers = self._parts.peers
        if row.id in self._parts.owned.loops:
            timeout_s = OWNED_POLL_S
        else:
            is_idle = row.lease_owner is None and (only_end or row.status == "queued")
            timeout_s = OWNED_POLL_S if is_idle else WAIT_POLL_S
            if peers.is_connected:
                timeout_s = min(timeout_s, poll_s)
            self._ends.expect(row.id, row.seq)
            peers.follow(row.id)
        await asyncio.wait([left], timeout=timeout_s)
        return 2 * poll_s

    async def create(self, new: NewRun, plan: Plan, watched: AwaitedRun | None = None) -> tuple[RunRow, bool]:
        """Return the stored run, and True if it is new. Raises QueueFull, and Conflict if its idempotency key was used
        for another request. `watched`: of a caller who waits for its end."""
        await self._pressure.admit(new.placement.pool)
        owned = self._parts.owned
        adopted = await owned.adopt(new, plan, watched) if owned.adopt is not None else None
        stored, created = adopted or await self._store.create_run(new)
        if not created and stored.request_hash != new.request_hash:
            raise Conflict(
                f"idempotency key {new.idempotency_key!r} was used for another request (run {stored.id})",
                code="idempotency_key_reused",
                hint="use a new key for each request",
                run=stored.id,
            )
        if created:
            keep_plan(plan)
            if adopted is None:
                owned.wake()
        return stored, created

    # --- one run ---

    async def view(self, run: str, row: RunRow | None = None) -> RunView:
        """Return the run as it is now (or at `row`, if that is known). All data of a waiting run is of one time, so it
        shows if the run continues without a person or a signal. Raises NotFound."""
        async with existing_run(self._store, run, row) as row:
            for _ in range(SAME_MOMENT_TRIES):
                view = await self._view(row)
                now = await find_run(self._store, run) if row.status == "waiting" else row
                if (now.seq, now.status) == (row.seq, row.status):
                    break
                row = now
            return view

    async def _view(self, row: RunRow) -> RunView:
        plan = await load_plan(self._store, row.plan_hash)
        waits = () if row.status in TERMINAL else tuple(await self._waits.list("pending", row.id))
        view = await _with_family(self._parts, self._waits, await run_view.build(self._store, plan, row, waits), row)
        if any(node.steps or node.child for node in view.nodes):  # most have none, and nothing is read for them
            view = await self._with_usage(view)
        # Read after its children: a child that ends writes to its parent's inbox in the same transaction.
        unread = len(await self._store.read_inbox(row.id)) if row.status == "waiting" else 0
        since_ms = row.stale_since_ms(self._clock.now_ms())
        lacks = self._parts.owned.lacks(row)
        return replace(view, unread=unread, stale=since_ms is not None, stale_since_ms=since_ms, lacks=lacks)

    async def _with_usage(self, view: RunView) -> RunView:
        used = await self._store.usage_of(view.id)
        return replace(view, usage=usage_view(used)) if used else view

    async def row(self, run: str) -> RunRow:
        """Return the run's own row, without its nodes: cheap."""
        return await self._rows.read(run)

    async def graph(self, run: str) -> RunGraph:
        async with existing_run(self._store, run) as row:
            return await run_view.graph(self._store, await load_plan(self._store, row.plan_hash), row)

    async def plan(self, run: str) -> Plan:
        async with existing_run(self._store, run) as row:
            return await load_plan(self._store, row.plan_hash)

    async def document(self, run: str) -> RunDocument:
        async with existing_run(self._store, run) as row:
            return await run_view.document(self._store, row, self._parts.services.names, self._parts.registry)

    async def lane(self, run: str, after: int = 0, before: int | None = None) -> Lane:
        """Return the newest calls of a durable function: those that events after `after` are about, and that began
        before event `before`. Raises NotFound: no_lane."""
        async with existing_run(self._store, run) as row:
            return await lane_view.build(self._store, await load_plan(self._store, row.plan_hash), row, after, before)

    async def node(self, run: str, key: str, attempt: int | None = None, seq: int | None = None) -> NodeDetail:
        """Return one node key at an attempt (by default the last), after event `seq` (by default now). Raises
        NotFound."""
        async with existing_run(self._store, run) as row:
            plan = await load_plan(self._store, row.plan_hash)
            services, redactor = self._parts.services, self._parts.redactor
            return await node_view.build(self._store, plan, row, services, redactor, key, attempt, seq)

    async def wait_finished(self, run: str, timeout_s: float) -> RunView:
        """Returns when the run has ended, or waits for a person or a signal, or for anything else that does not come by
        itself in this time, or after `timeout_s`, whichever is first."""
        clock = asyncio.get_running_loop().time
        until = clock() + min(timeout_s, FOR_EVER_S)

        async def asleep(row: RunRow) -> bool:
            # Computed again each time: the clock may have been set.
            return await self._asleep(row, self._clock.now_ms() + round((until - clock()) * 1000))

        row: RunRow | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                row = await self._ended(run, asleep)
        return await self.view(run, row if row is not None and row.status in TERMINAL else None)

    async def _asleep(self, row: RunRow, until_ms: int) -> bool:
        """Return True if the run does nothing until then: it has no timer or retry due by then, no answer in the inbox,
        and its children do not work. A child ends and writes to its parent's inbox in one transaction, so in this order
        its message is in the inbox or in the journal."""
        soon = row.next_run_at_ms is not None and row.next_run_at_ms <= until_ms
        if soon and not await self._asks(row.id):
            return False
        if await self._store.count_active_below(row.id, until_ms) or await self._store.read_inbox(row.id):
            return False
        return (await find_run(self._store, row.id)).seq == row.seq

    async def _asks(self, run: str) -> bool:
        """Return True if it waits for an answer or a signal: the caller who waits for the run may be the one who sends
        it."""
        waits = await self._store.list_waits("pending", run, limit=1_000)
        return any(wait.kind not in ("timer", "child") for wait in waits)

    async def cancel(self, run: str, reason: str = "", now: bool = False) -> bool:
        """Request the end of the run. Its cleanups run first, unless this is the second request, or with `now`. Returns
        False if it has ended."""
        await find_run(self._store, run)
        message = encode(Cancel(reason, now, asked=True))
        posted = await self._store.cancel_run(run, message, self._clock.now_ms())
        if posted:
            self._parts.owned.wake(run)
            self._parts.owned.wake_family(run)
        return posted

    # --- many runs ---

    async def count(self, workflow: str | None = None, draft: str | None = None) -> dict[RunStatus, int]:
        """Count runs by status, for all statuses. COUNT_MAX means so many or more."""
        counts = await self._store.count_runs(workflow, draft)
        return {status: counts.get(status, 0) for status in get_args(RunStatus)}

    async def last_inputs(self, workflow: str | None = None, draft: str | None = None, limit: int = 10) -> list[Any]:
        """Return different inputs of the last runs, newest first; inputs over 64 KiB are left out."""
        found: dict[bytes, Any] = {}
        for data in await self._store.list_inputs(workflow, draft):
            value = orjson.loads(data)
            found.setdefault(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), value)
            if len(found) == limit:
                break
        return list(found.values())

    async def list(
        self,
        workflow: str | None = None,
        status: str | None = None,
        before: str | None = None,
        limit: int = 50,
        draft: str | None = None,
        *,
        parent: str | None = None,
        since: int | None = None,
        until: int | None = None,
        text: str | None = None,
        by: str | None = None,
        key: str | None = None,
        without: Mapping[Without, str] = NOTHING,
    ) -> list[RunRow]:
        """List runs, newest first; `before` is the last id of the previous page, `parent` the run that started them,
        `by` the person or token. `key` (idempotency), `text` and `without` are looked for in 10,000 runs."""
        more: dict[str, Any] = {"since": since, "until": until, "text": text, "by": by, "key": key, "without": without}
        return await self._store.list_runs(workflow, status, before, limit, draft, parent=parent, **more)


async def _with_family(parts: Parts, waits: Waits, view: RunView, row: RunRow) -> RunView:
    if row.parent_run_id is not None and row.parent_key is not None:
        view = replace(view, parent=ParentView(row.parent_run_id, parse_wait(row.parent_key)[0]))
    rows = await parts.store.list_children(row.id, CHILDREN_SHOWN_MAX)
    if not rows:
        return view
    children = []
    for child in rows:
        key, attempt = parse_wait(child.parent_key)
        children.append(view_of(ChildView, child, run=child.id, key=key, attempt=attempt))
    view = replace(view, children=tuple(children))
    if row.status in TERMINAL:
        return view
    asked = await waits.views(await parts.store.list_waits_below(row.id, CHILDREN_SHOWN_MAX))
    active = await parts.store.count_active_below(row.id, parts.clock.now_ms())
    return replace(view, child_waits=tuple(asked), children_active=active)


def _node_number(plan: Plan, block: str) -> int:
    number = plan.node_index(block)
    if number is None:
        number = plan.node_index(f"{block}:end")
    if number is None:
        raise NotFound(f"the workflow has no block '{block}'", code="node_not_found")
    return number
