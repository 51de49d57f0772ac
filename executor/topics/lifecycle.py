"""What becomes of a run besides going on: forks of it, running one node of it again, moving it to another version.

A run that has ended stays as it ended. Whoever wants more of it gets a new run that takes over what was done.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import orjson
from msgspec import Struct

from compiler.diagnostics import CompileError
from compiler.keys import NodeKey, format_key, join_key, parse_key, split_key
from compiler.plan import Plan
from executor.core.messages import Migrate, Retry, encode
from executor.core.state import State, Status
from executor.errors import Conflict, NotFound
from executor.journal.reader import load_plan
from executor.runtime.hub import Hub
from executor.runtime.move import Misfit, fit
from executor.store.rows import TERMINAL, RunRow
from executor.topics.forks import beginning, fork
from executor.views import Submitted
from executor.views.rerun import alone_again, outermost_block
from executor.views.why import state_of

if TYPE_CHECKING:
    from executor.engine import Engine

# Between two looks whether a run has moved; its owner may be another process.
LOOK_S = 0.25
MOVE_WAIT_S = 5.0

How = Literal["now", "from_node", "from_block", "whole_container"]


class Forked(Submitted, frozen=True, kw_only=True):
    """`seq`: how many events were taken over; more than asked for when those belong together, fewer when the run had
    begun to end."""

    seq: int


class Retried(Submitted, frozen=True, kw_only=True):
    """`how`: now (the open run itself: its next attempt need not wait), or a new run: from_block (a block at the root
    and all behind it run again), from_node (inside a container: what follows this node runs again), whole_container
    (`block` runs again as a whole, since more than this node had gone on)."""

    how: How
    block: str


class Migrated(Struct, frozen=True):
    """`moved` False: the run's owner has not answered yet."""

    run: str
    version: int
    plan_hash: str
    moved: bool


class Lifecycle:
    """`engine.lifecycle`."""

    def __init__(self, engine: Engine, hub: Hub) -> None:
        self._engine = engine
        self._store = engine.store
        self._hub = hub

    async def fork(
        self, run: str, seq: int, outputs: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None
    ) -> Forked:
        """A new run that goes on from event `seq` of `run`, with these outputs in place of recorded ones. Raises
        NotFound, BadRequest, Conflict (`seq` is past the end, the run was failing there, a key used before)."""
        row, plan = await self._run(run)
        if seq > row.seq:
            raise Conflict(
                f"run {run} has no event {seq}; its last event is {row.seq}", code="seq_not_found", seq=row.seq
            )
        async with self._engine.whole(run):
            copied = await beginning(self._store, plan, row, seq)
        asked = ["fork", run, seq, outputs or {}]
        new = await fork(
            self._store,
            plan,
            row,
            copied,
            outputs or {},
            id=secrets.token_hex(16),
            now_ms=self._engine.now_ms(),
            links=self._engine.links,
            matches=self._engine.services.sandbox.matches,
            idempotency_key=idempotency_key,
            request_hash=hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).hexdigest(),
        )
        stored, created = await self._engine.create(new, plan)
        return Forked(stored.id, stored.workflow, stored.version, stored.status, created, seq=len(copied.events))

    async def retry(self, run: str, key: str, *, idempotency_key: str | None = None) -> Retried:
        """Run one node again; see Retried. Raises NotFound; Conflict: the run is open and the node does not wait for
        its next attempt, or the run has ended and the node never started."""
        row, plan = await self._run(run)
        if row.status not in TERMINAL:
            return await self._retry_now(row, plan, key)
        first = _first_node(plan, key)
        if not first[0]:
            block = plan.nodes[first[1]].block
            new = await self._engine.run_from(run, block, idempotency_key=idempotency_key)
            return _retried(new, "from_block", block)
        async with self._engine.whole(run):
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
        return _retried(
            await self._engine.run_from(run, block, idempotency_key=idempotency_key), "whole_container", block
        )

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
        if not await self._store.post_fact(row.id, message, self._engine.now_ms()):
            raise Conflict(f"run {row.id} has ended", code="run_ended", hint="retry again: this starts a new run")
        self._engine.wake(row.id)
        block = plan.nodes[key[1]].block
        return Retried(row.id, row.workflow, row.version, row.status, False, how="now", block=block)

    async def migrate(self, run: str, version: int, wait_s: float = MOVE_WAIT_S) -> Migrated:
        """Move an open run to another version of its workflow. Its owner does it, and this waits for it. Raises
        NotFound, CompileError; Conflict: the run has ended, is of no stored workflow, follows this version already, or
        does not fit (`conflicts`)."""
        row, old = await self._run(run)
        if row.version is None:
            raise Conflict(
                f"run {run} is not a run of a stored workflow, so there is no other version", code="run_has_no_version"
            )
        target = await self._engine.get_workflow(row.workflow, version)
        compiled = await self._engine.compile(target.document, old.trigger)
        if compiled.plan is None:
            raise CompileError(list(compiled.diagnostics))
        new = compiled.plan
        if row.status in TERMINAL:
            raise _ended(row)
        if (row.plan_hash, row.version) == (new.hash, version):
            raise Conflict(
                f"run {run} already uses version {version}",
                code="migration_same_version",
                hint="choose another version; `weft workflows NAME` lists them",
            )
        await self._check(row, old, new, version)
        await self._store.put_plan(new.hash, new.encoded)
        message = encode(Migrate(version, new.hash, request=secrets.token_hex(8)))
        if not await self._store.post_fact(run, message, self._engine.now_ms()):
            raise _ended(row)
        self._engine.wake(run)
        return Migrated(run, version, new.hash, await self._moved(run, new, version, message, wait_s))

    async def _moved(self, run: str, new: Plan, version: int, message: bytes, wait_s: float) -> bool:
        """Raises Conflict when the owner has refused: the run went on meanwhile."""
        clock = asyncio.get_running_loop().time
        until = clock() + wait_s
        while True:
            signal = self._hub.watch(run)
            try:
                waiting = any(row.fact == message for row in await self._store.read_inbox(run))
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
        async with self._engine.whole(run) as row:
            return row, await load_plan(self._store, row.plan_hash)


def _first_node(plan: Plan, text: str) -> NodeKey:
    """The node, or a container's start. Raises NotFound."""
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
    wait = state.waits.get(key)
    if wait is not None and wait.kind == "attention":
        return "one of its attempts was lost: answer its wait with retry, done or fail"
    status = state.status_of(plan, key)
    if status is None or status is Status.PENDING:
        return "it has not started"
    return f"it is {status.name.lower()}; once the run has ended, a retry is a new run"


def _retried(new: Submitted, how: How, block: str) -> Retried:
    return Retried(new.run, new.workflow, new.version, new.status, new.created, how=how, block=block)


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
