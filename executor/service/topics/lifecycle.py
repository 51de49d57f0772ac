"""New runs that take over results of a run, and moving an open run to another version; `engine.lifecycle`.

A run that has ended does not change: running it again from a block, forking it and retrying a node make a new run. A
run from a block begins with the outputs and routes of the reused blocks, and their changes of the variables."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Mapping
from typing import Any, Literal

import orjson
from msgspec import Struct

from compiler.keys import NodeKey, format_key, join_key, parse_key, parse_path, split_key
from compiler.plan import Plan
from executor.errors import BadRequest, Conflict, NotFound
from executor.kernel.core import facts as f
from executor.kernel.core.fork import followers, follows, root_of
from executor.kernel.core.messages import Migrate, Retry, encode
from executor.kernel.core.state import State, Status
from executor.kernel.journal.codec import Codec, data_of
from executor.kernel.journal.given import Continued, is_same, kept
from executor.kernel.journal.projection import decision
from executor.kernel.journal.reader import Records, load_plan
from executor.kernel.process.acting import present_actor
from executor.kernel.read.find import check_ended, existing_run, find_version
from executor.kernel.run.move import Misfit, fit
from executor.kernel.run.new_run import Origin, check_input, new_run, new_run_id, origin_as, request_hash
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.store import Store
from executor.service.parts import Parts, Topic
from executor.service.topics import reruns, rewinds
from executor.service.topics.forks import beginning, fork
from executor.service.topics.history import state_of
from executor.service.topics.reruns import Continuation, Target
from executor.service.topics.rewinds import NO_REWIND, ForkPreview, Params, Rewind, Steps, with_params
from executor.service.topics.runs import Runs
from executor.service.views import RerunPreview, Submitted, view_of

# The interval between checks if a run has moved; its owner may be another process.
LOOK_S = 0.25
MOVE_WAIT_S = 5.0

How = Literal["now", "from_node", "from_block", "whole_container"]


class Forked(Submitted, frozen=True, kw_only=True):
    """`seq`: the number of events taken over; more than requested if those belong together, fewer if the run had begun
    to end."""

    seq: int


class Retried(Submitted, frozen=True, kw_only=True):
    """`how` is now (the open run itself: its next attempt need not wait), or a new run: from_block (a block at the root
    and all after it run again), from_node (inside a container: the nodes after this one run again), whole_container
    (`block` runs again as a whole, because other nodes had advanced)."""

    how: How
    block: str


class MigrateAnswer(Struct, frozen=True):
    """`moved` is false if the worker of the run has not responded yet; GET /api/runs/{id} has the current version."""

    run: str
    version: int
    plan_hash: str
    moved: bool


class Lifecycle(Topic):
    def __init__(self, parts: Parts, runs: Runs) -> None:
        super().__init__(parts)
        self._runs = runs

    async def run_from(
        self, run: str, block: str | None = None, *, input: Any = None, idempotency_key: str | None = None
    ) -> Submitted:
        """Start a run that takes over the outputs of `run` before `block` and runs `block` and all that follows from it
        again; without a block it takes over nothing. Raises NotFound, InputInvalid, Conflict (the block lies inside a
        container, the run is open, answers are not valid for the new run, or the key was used before)."""
        row, plan = await self._ended(run)
        return await self._again(row, plan, origin_as(row), block, input, idempotency_key)

    async def go_on(
        self,
        run: str,
        target: Target,
        block: str | None = None,
        *,
        again: Collection[str] = (),
        input: Any = None,
        idempotency_key: str | None = None,
    ) -> Submitted:
        """Continue a run that has ended with another version, a draft or a document, as a new run: what is unchanged is
        taken over, and the rest runs. The blocks `again` run in any case, as do `block` and all that follows from it.
        Raises NotFound, BadRequest, CompileError, InputInvalid, Conflict."""
        row, plan, origin, chosen = await self._target(run, target, block, again)
        return await self._again(row, plan, origin, None, input, idempotency_key, chosen)

    async def _again(
        self,
        row: RunRow,
        plan: Plan,
        origin: Origin,
        block: str | None,
        input: Any,
        idempotency_key: str | None,
        again: tuple[str, ...] | None = None,
    ) -> Submitted:
        """`again` is None for a run of the same document from `block`."""
        before = orjson.loads(row.input)
        admitted = await self._parts.files.admit(before if input is None else input, "/input")
        checked, reuse, taken_over = before, dict[int, str | None](), list[Record]()
        if input is not None or again is not None:
            checked = await check_input(plan, admitted.value, self._parts.services.sandbox.matches)
        if again is None:
            is_new = not is_same(before, checked)
            first = block or plan.trigger
            reuse, taken_over = await reusable(self._store, plan, row.id, first, has_new_input=is_new)
        now_ms, keeps = self._clock.now_ms(), again is not None
        start = f.StartRequested(now_ms, new_run_id(now_ms), reuse, None, row.id, present_actor(), keeps, again or ())
        asked = ("rerun", row.id, block, checked) if again is None else ("go on", row.id, plan.hash, again, checked)
        new = new_run(
            plan,
            start,
            origin,
            checked,
            idempotency_key=idempotency_key,
            request_hash=request_hash(*asked),
            taken_over=taken_over,
            files=admitted.files,
        )
        stored, created = await self._runs.create(new, plan)
        return Submitted(stored.id, stored.workflow, stored.version, stored.status, created)

    async def preview_go_on(
        self, run: str, target: Target | None, block: str | None = None, *, again: Collection[str] = ()
    ) -> Continuation:
        """Return what `go_on` would run. Without a target it is the run itself, again: from `block`, or all of it."""
        row, plan, origin, chosen = await self._target(run, target, block, again)
        async with existing_run(self._store, run):
            return await reruns.preview(self._parts, row, plan, origin, chosen)

    async def _target(
        self, run: str, target: Target | None, block: str | None, again: Collection[str]
    ) -> tuple[RunRow, Plan, Origin, tuple[str, ...]]:
        row, old = await self._ended(run)
        plan, origin = old, origin_as(row)
        if target is not None:
            plan, origin = await reruns.resolve(self._parts, row, old, target)
        elif block is None:
            again = {node.block for node in old.nodes}
        reruns.check_blocks(plan, again)
        after = set() if block is None else reruns.blocks_from(plan, _root_node(plan, block))
        return row, plan, origin, tuple(sorted({*again, *after}))

    async def preview_run_from(self, run: str, block: str | None = None) -> RerunPreview:
        async with existing_run(self._store, run):
            _, plan = await self._ended(run)
            return await preview(self._store, plan, run, block or plan.trigger)

    async def _ended(self, run: str) -> tuple[RunRow, Plan]:
        row, plan = await self._run(run)
        check_ended(row)
        return row, plan

    async def fork(
        self,
        run: str,
        seq: int | None = None,
        outputs: Mapping[str, Any] | None = None,
        *,
        steps: Steps | None = None,
        params: Params | None = None,
        idempotency_key: str | None = None,
    ) -> Forked:
        """Make a run that continues from event `seq` of `run`, with these outputs in place of recorded ones, other
        results of steps (by node key and number), and other params of blocks from there on. Without `seq` it is the
        last event at which the steps can have other results. Raises NotFound, BadRequest, CompileError, Conflict."""
        row, plan = await self._run(run)
        async with existing_run(self._store, run):
            at = await self._fork_at(row, seq, steps)
            copied = await beginning(self._store, plan, row, at)
        asked: dict[str, Any] = {"outputs": dict(outputs or {}), "steps": dict(steps or {})}
        admitted = await self._parts.files.admit(asked, "")
        origin: Origin | None = None
        if params:
            document = (await self._runs.document(run)).document
            plan, origin = await with_params(self._parts, row, plan, document, params)
        new, taken_over = await fork(
            self._parts,
            plan,
            row,
            copied,
            admitted.value["outputs"],
            idempotency_key=idempotency_key,
            request_hash=request_hash("fork", run, seq, admitted.value, params),
            files=admitted.files,
            rewind=Rewind(admitted.value["steps"], origin, frozenset(params or ())) if steps or params else NO_REWIND,
        )
        stored, created = await self._runs.create(new, plan)
        return Forked(stored.id, stored.workflow, stored.version, stored.status, created, seq=taken_over)

    async def preview_fork(self, run: str, seq: int | None = None, steps: Steps | None = None) -> ForkPreview:
        row, plan = await self._run(run)
        async with existing_run(self._store, run):
            at = await self._fork_at(row, seq, steps)
            copied = await beginning(self._store, plan, row, at)
            return await rewinds.preview(self._store, plan, row, len(copied.events))

    async def _fork_at(self, row: RunRow, seq: int | None, steps: Steps | None) -> int:
        if seq is None:
            if not steps:
                raise BadRequest("name an event, or a step", code="seq_missing", pointer="/seq")
            return await rewinds.point_of(self._store, row, steps)
        if seq > row.seq:
            message = f"run {row.id} has no event {seq}; its last event is {row.seq}"
            raise Conflict(message, code="seq_not_found", seq=row.seq)
        return seq

    async def retry(self, run: str, key: str, *, idempotency_key: str | None = None) -> Retried:
        """Run one node again; see Retried. Raises NotFound; Conflict: it does not wait for its next attempt, or it
        never started."""
        row, plan = await self._run(run)
        if row.status not in TERMINAL:
            return await self._retry_now(row, plan, key)
        first = _first_node(plan, key)
        if not first[0]:
            block = plan.nodes[first[1]].block
            new = await self.run_from(run, block, idempotency_key=idempotency_key)
            return _retried(new, "from_block", block)
        async with existing_run(self._store, run):
            started = await alone_again(self._store, plan, run, first)
        if started is None:
            raise Conflict(
                f"{key} did not start in run {run}, so there is nothing to run again",
                code="node_not_started",
                hint=f"run from '{outermost_block(plan, first)}' instead",
            )
        seq, alone = started
        if alone:
            forked = await self.fork(run, seq - 1, idempotency_key=idempotency_key)
            return _retried(forked, "from_node", plan.nodes[first[1]].block)
        block = outermost_block(plan, first)
        return _retried(await self.run_from(run, block, idempotency_key=idempotency_key), "whole_container", block)

    async def _retry_now(self, row: RunRow, plan: Plan, text: str) -> Retried:
        state = await state_of(self._store, plan, row)
        key = _first_node(plan, text)
        if key not in state.retries:
            raise Conflict(
                f"run {row.id} is {row.status}, and {text} is not waiting for its next attempt",
                code="node_not_retrying",
                hint=_instead(plan, state, key),
            )
        message = encode(Retry(format_key(plan, key)))
        if not await self._store.post_message(row.id, message, self._clock.now_ms()):
            raise Conflict(f"run {row.id} has ended", code="run_ended", hint="retry again: this starts a new run")
        self._parts.wake(row.id)
        block = plan.nodes[key[1]].block
        return view_of(Retried, row, run=row.id, created=False, how="now", block=block)

    async def migrate(self, run: str, version: int, wait_s: float = MOVE_WAIT_S) -> MigrateAnswer:
        """Move an open run to another version of its workflow. Its owner does it, and this waits for it. Raises
        NotFound, CompileError; Conflict: there is nothing to move, or it does not fit (`conflicts`)."""
        row, old = await self._run(run)
        if row.version is None:
            raise Conflict(
                f"run {run} is not a run of a stored workflow, so there is no other version", code="run_has_no_version"
            )
        target = await find_version(self._store, row.workflow, version)
        new = await self._parts.compiler.plan(target.document, old.trigger)
        if row.status in TERMINAL:
            raise _ended(row)
        if (row.plan_hash, row.version) == (new.hash, version):
            raise Conflict(
                f"run {run} already uses version {version}",
                code="migration_same_version",
                hint="choose another version; `weft workflows NAME` lists them",
            )
        await self._check(row, old, new, version)
        now_ms = self._clock.now_ms()
        await self._store.put_plan(new.hash, new.encoded, now_ms)
        message = encode(Migrate(version, new.hash, request=secrets.token_hex(8)))
        if not await self._store.post_message(run, message, now_ms, new.hash):
            raise _ended(row)
        self._parts.wake(run)
        return MigrateAnswer(run, version, new.hash, await self._moved(run, new, version, message, wait_s))

    async def _moved(self, run: str, new: Plan, version: int, message: bytes, wait_s: float) -> bool:
        """Raises Conflict when the owner has refused: the run continued meanwhile."""
        clock = asyncio.get_running_loop().time
        until = clock() + wait_s
        while True:
            signal = self._parts.hub.watch(run)
            try:
                waiting = any(row.message == message for row in await self._store.read_inbox(run))
                row, plan = await self._run(run)
                if (row.plan_hash, row.version) == (new.hash, version):
                    return True
                if not waiting:
                    await self._check(row, plan, new, version)
                    raise Conflict(f"run {run} did not move in time: try again", code="migration_refused")
                if clock() >= until:
                    return False
                await asyncio.wait([signal], timeout=LOOK_S)
            finally:
                signal.cancel()

    async def _check(self, row: RunRow, old: Plan, new: Plan, version: int) -> None:
        if row.status in TERMINAL:
            raise _ended(row)
        misfits = (await fit(self._store, row, old, new)).misfits
        if misfits:
            raise _conflict(row, version, misfits)

    async def _run(self, run: str) -> tuple[RunRow, Plan]:
        async with existing_run(self._store, run) as row:
            return row, await load_plan(self._store, row.plan_hash)


def _first_node(plan: Plan, text: str) -> NodeKey:
    node, path = split_key(text)
    why = f"the plan has no node '{text}'"
    for name in (f"{node.removesuffix(':end')}:start", node):
        try:
            return parse_key(plan, join_key(name, path))
        except ValueError as error:
            if plan.node_index(name) is not None:
                why = str(error)
    raise NotFound(why, code="node_not_found", hint="a key looks like send@review#5/fan[2]")


def _instead(plan: Plan, state: State, key: NodeKey) -> str:
    if any(wait.kind == "attention" for wait in state.waits.get(key, {}).values()):
        return "one of its attempts was lost: answer its wait with retry, done or fail"
    status = state.status_of(plan, key)
    if status is None or status is Status.PENDING:
        return "it has not started"
    return f"it is {status.name.lower()}; once the run has ended, a retry is a new run"


def _retried(new: Submitted, how: How, block: str) -> Retried:
    return view_of(Retried, new, how=how, block=block)


def _ended(row: RunRow) -> Conflict:
    return Conflict(f"run {row.id} has ended ({row.status}): its version cannot change", code="run_ended")


def _conflict(row: RunRow, version: int, misfits: tuple[Misfit, ...]) -> Conflict:
    first = misfits[0]
    more = f" (and {len(misfits) - 1} more)" if len(misfits) > 1 else ""
    about = f"'{first.node}': " if first.node else ""
    return Conflict(
        f"run {row.id} does not fit version {version}: {about}{first.why}{more}",
        code="migration_conflict",
        hint="wait until it ends, or fork it at an earlier event",
        conflicts=[{"node": misfit.node, "why": misfit.why} for misfit in misfits],
    )


# --- what a new run takes over ---


class _Outcomes(Struct):
    """The root nodes of a run, by plan-wide number: the routes of finished ones, and those that were pruned; and all
    changes of variables, in order."""

    routes: dict[int, str | None]
    pruned: set[int]
    patches: list[tuple[int, Record]]


async def reusable(
    store: Store, plan: Plan, run: str, block: str, *, has_new_input: bool = False
) -> tuple[dict[int, str | None], list[Record]]:
    """Return the root nodes of `run` that a run from `block` takes over, with the route each took: the finished ones
    that do not follow from the block, except questions whose answer is not valid there. And the changes of variables by
    these nodes, those inside containers included. Raises NotFound, Conflict (inside_container, answer_not_carried)."""
    again = followers(plan, _root_node(plan, block))
    outcomes = await _outcomes(store, plan, run)
    reuse = await _taken_over(store, plan, run, outcomes, again, has_new_input)
    return reuse, [record for root, record in outcomes.patches if root in reuse]


async def _taken_over(
    store: Store, plan: Plan, run: str, outcomes: _Outcomes, again: set[int], has_new_input: bool = False
) -> dict[int, str | None]:
    usable = _usable_routes(plan, outcomes.routes, again)
    writes_again = any(root in again for root, _ in outcomes.patches)
    return await kept(store, plan, run, usable, Continued(again, has_new_input, writes_again))


async def preview(store: Store, plan: Plan, run: str, block: str) -> RerunPreview:
    again = followers(plan, _root_node(plan, block))
    outcomes = await _outcomes(store, plan, run)
    reused = await _taken_over(store, plan, run, outcomes, again)
    fate: dict[str, str] = {}
    for number, node in enumerate(plan.nodes):
        outer = root_of(plan, number)
        if outer in reused:
            what = "reused"
        elif outer in outcomes.pruned and outer not in again:
            what = "skipped"
        else:
            what = "again"
        # A container has two nodes; either of them that runs again is the container running again.
        if fate.get(node.block) != "again":
            fate[node.block] = what
    kinds = ("reused", "again", "skipped")
    return RerunPreview(run, block, *(tuple(one for one in fate if fate[one] == kind) for kind in kinds))


async def alone_again(store: Store, plan: Plan, run: str, key: NodeKey) -> tuple[int, bool] | None:
    """Return the event by which node `key` first started, and True if all later work follows from the node: then
    continuing from just before it loses nothing else. Returns None if it never started."""
    codec = Codec(plan)
    node, path = plan.nodes[key[1]].id, codec.path_text(key[0])
    started: int | None = None
    async for record in Records(store, run):
        if started is None:
            if record.type == "node.started" and (record.node, record.path) == (node, path):
                started = record.seq
        elif record.node is not None and _is_work(record):
            number = plan.node_index(record.node)
            assert number is not None, "the journal fits its plan"
            if not follows(plan, key, (parse_path(plan, record.path), number)):
                return started, False
    return None if started is None else (started, True)


def outermost_block(plan: Plan, key: NodeKey) -> str:
    return plan.nodes[root_of(plan, key[1])].block


def _is_work(record: Record) -> bool:
    """Return True if continuing from before this record would repeat work, or leave it out."""
    if record.type in ("scope.opened", "variables.patched"):
        return True
    data = data_of(record)
    decided = decision(record.type, data)
    return decided.leads_on if decided is not None else record.type == "wait.closed" and data["outcome"] != "cancelled"


def _root_node(plan: Plan, block: str) -> int:
    number = plan.node_index(block)
    if number is None:
        number = plan.node_index(f"{block}:start")
    if number is None:
        raise NotFound(f"the workflow has no block '{block}'", code="node_not_found")
    region = plan.regions[plan.region_of[number]]
    if region.kind != "root":
        outermost = plan.nodes[root_of(plan, number)].block
        raise Conflict(
            f"block '{block}' is inside {region.kind} '{region.id}': a container runs as a whole",
            code="inside_container",
            hint=f"run from '{outermost}' instead",
            container=outermost,
        )
    return number


def _usable_routes(plan: Plan, routes: dict[int, str | None], again: set[int]) -> dict[int, str | None]:
    """Drop containers without an end: taking over the start alone would lose the work of their middle."""
    usable = {number: route for number, route in routes.items() if number not in again}
    for region in plan.regions[1:]:
        if region.parent == 0 and usable.get(region.start) != "error" and region.end not in usable:
            usable.pop(region.start, None)
    return usable


async def _outcomes(store: Store, plan: Plan, run: str) -> _Outcomes:
    outcomes = _Outcomes({}, set(), [])
    async for record in Records(store, run):
        number = plan.node_index(record.node) if record.node else None
        if number is None:
            continue
        if record.type == "variables.patched":
            outcomes.patches.append((root_of(plan, number), record))
        decided = None if record.path else decision(record.type, data_of(record))
        if decided is None:
            continue
        if decided.leads_on:
            outcomes.routes[number] = decided.route
        elif decided.status == "skipped":
            outcomes.pruned.add(number)
    return outcomes
