"""Claims runs, drives them, renews their leases, lets go of them. One per process.

A run is owned by exactly one worker while its lease lasts (15 s, renewed every third of it, in one statement for all
runs). A worker that stalls past its lease loses the run at its next write (`Fenced`): it drops the run and does nothing
else about it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial

from msgspec.structs import replace

from compiler.plan import Plan
from executor.errors import CorruptJournal, Fenced, ReadOnly, StoreError
from executor.kernel.core import facts as f
from executor.kernel.core.events import ErrorInfo
from executor.kernel.journal.reader import load_plan
from executor.kernel.process.observe import Doing
from executor.kernel.process.observe import begin as begin_doing
from executor.kernel.process.repeated import OUTAGE, Repeated
from executor.kernel.process.task import BackgroundTask
from executor.kernel.read.peers import DUE
from executor.kernel.run.adoption import Adoption, Continuation, NotAdopted
from executor.kernel.run.attempts import Attempts
from executor.kernel.run.awaited import AwaitedRun
from executor.kernel.run.children import cancel_of_orphan
from executor.kernel.run.loop import Ended, RunLoop
from executor.kernel.run.owned import Parked
from executor.kernel.run.parts import Parts
from executor.kernel.run.recover import begin, recover
from executor.kernel.store.run_rows import DEFAULT_POOL, NewRun, Placement, RunRow
from executor.kernel.store.topics.waits import Answered, WaitRow
from executor.kernel.worker.admission import Admission
from executor.kernel.worker.clock_repair import ClockRepair
from executor.kernel.worker.missing import MissingBlocks
from executor.kernel.worker.other_code import OtherCodeWaits
from executor.kernel.worker.pace import Load, Pace

log = logging.getLogger("weft.worker")

LEASE_MS = 15_000
RENEWALS_PER_LEASE = 3  # one may be missed
# An idle worker looks at the database at least this often: a row may have been written by another process.
IDLE_MAX_S = 5.0
# Runs in memory at one time; more wait in the database, oldest first.
RUNS_MAX = 1_000
CLAIM_BATCH = 64
# Claims without a single append in between: the run takes its worker down each time.
STALLS_MAX = 20
OWNERS_KEPT = 100


class Worker:
    def __init__(
        self,
        parts: Parts,
        *,
        name: str | None = None,
        lease_ms: int = LEASE_MS,
        runs_max: int = RUNS_MAX,
        pools: Sequence[str] = (DEFAULT_POOL,),
    ) -> None:
        self.name = name or f"w-{secrets.token_hex(6)}"
        self._parts = parts
        self.lease_ms = lease_ms
        self._runs_max = runs_max
        self.is_started = False
        self._pools = dict.fromkeys(pools, "")  # with the key whose turn was last
        self._loops = parts.owned.loops
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._wake = parts.owned.due
        self._leases = asyncio.Lock()  # who renews must know what was claimed
        self._renewed_at_ms = 0
        self._clock_repair = ClockRepair(parts)
        self.claims = 0  # runs that it took into memory, new ones included
        self._stopping = False
        self._admission = Admission(parts.services.limits.memory_bytes, self._held_bytes)
        self._pace = Pace(parts.peers, self._load)
        self._missing = MissingBlocks(parts)
        self._adopting: dict[str, Adoption | Continuation] = {}  # runs that their first append takes
        self._dropped = False  # a run that is still owned, and that the next renewal frees
        self._others_wait = True  # there may be runs to claim that were there before
        self._has_claimed = asyncio.Event()
        self._claimed_from: dict[str, int] = {}  # owner that is gone -> how many of its runs were claimed here
        self._claiming = BackgroundTask(
            f"{self.name}:claim", self._claim_once, failed="claiming failed", log=log, wake=self._wake
        )
        self._entering = BackgroundTask(
            f"{self.name}:code",
            OtherCodeWaits(parts).look,
            failed="looking for runs that wait for code failed",
            log=log,
        )
        self._renewing = BackgroundTask(f"{self.name}:renew", self._renew_all, failed="renewing leases failed", log=log)

    def active(self) -> tuple[int, int]:
        return len(self._tasks), sum(len(loop.attempts) for loop in self._loops.values())

    @property
    def is_claiming(self) -> bool:
        """Returns True while it looks for runs to claim."""
        return self.is_started and not self._claiming.is_idle

    def _load(self) -> Load:
        attempts = [len(loop.attempts) for loop in self._loops.values()]
        return Load(len(self._tasks), len(self._tasks) - len(attempts) + attempts.count(0), sum(attempts))

    @property
    def pools(self) -> tuple[str, ...]:
        return tuple(self._pools)

    def start(self) -> None:
        self.is_started = True
        parts = self._parts
        parts.clock.on_jump(self._wake.set)
        self._renewed_at_ms = parts.clock.now_ms()
        self._claiming.start()
        self._entering.start()
        self._renewing.start(after_s=self._renew_every_s)
        self._losses = Repeated()
        self._context = copy_context()  # of what runs, not of who asks for it
        parts.owned.adopt, parts.owned.answer = self._adopt, self._answer

    async def first_claim(self, within_s: float) -> None:
        """Wait until the worker has tried to claim runs, or failed to, or this time is over. Runs that are
        submitted before are not adopted, because others may wait."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._has_claimed.wait()

    async def stop(self, grace_s: float = 8.0) -> None:
        """Launch nothing more, let running handlers end for `grace_s`, then cancel them; free every lease."""
        self._stopping = True
        self._admission.close()
        self._parts.places.close()
        for loop in self._loops.values():
            loop.stop()
        await self._claiming.end(within_s=grace_s)  # the runs of a claim under way are freed as well
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=grace_s)
        tasks = [task for task in self._tasks.values() if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(
            *tasks, self._claiming.stop(), self._entering.stop(), self._renewing.stop(), return_exceptions=True
        )
        self._parts.owned.lanes.close()
        # All that this worker owns, after all that it has written: also what a claim or a new run that was cut off has
        # committed, and what was still being recovered.
        try:
            await self._parts.store.renew(self.name, [], self._parts.clock.now_ms(), self.lease_ms)
        except ReadOnly:
            pass  # it has never owned a run
        except StoreError:
            log.warning("the leases could not be released; they will expire")
        else:
            self._parts.peers.notify(DUE, "")

    # --- claiming ---

    async def _claim_once(self) -> float:
        try:
            return await self._claim()
        finally:
            self._has_claimed.set()

    async def _claim(self) -> float:
        store, clock = self._parts.store, self._parts.clock
        if self._clock_repair.is_due():
            await self._renew()
            await self._clock_repair.repair(self.lease_ms)
        self._clock_repair.seen_ms = clock.now_ms()
        if clock.now_ms() - self._renewed_at_ms >= self.lease_ms:
            # This process slept. It keeps the runs that no other has claimed, instead of claiming them from itself.
            await self._renew()
        self._admission.admit()
        free = min(self._runs_max - len(self._tasks), CLAIM_BATCH)
        if self._admission.waiting > self._runs_max // 2:  # another process may have room
            free = 0
        room = await self._pace.room(free)
        rows: list[RunRow] = []
        if room > 0:
            async with self._leases:
                rows = await store.claim(self.name, clock.now_ms(), self.lease_ms, room, pools=self._pools)
                for row in rows:
                    self._pools[row.pool] = row.fair
                    self._begin(row)
        self._others_wait = bool(rows) or room <= 0
        if rows:
            return 0
        if room <= 0 < free:
            return self._pace.pause_s
        due_ms = await store.next_due(self._pools) if room > 0 else None
        if due_ms is None:
            return IDLE_MAX_S
        return min(IDLE_MAX_S, max(0.0, (due_ms - clock.now_ms()) / 1000) + 0.001)

    def _begin(self, row: RunRow) -> None:
        stale = self._tasks.get(row.id)  # this process slept through its own lease and has now claimed the run again
        answered = self._adopting.get(row.id)  # or the run is being answered, and will be found to be claimed
        if stale is not None and (answered is None or answered.is_over):
            stale.cancel()
        self.claims += 1
        if row.seq <= 1 and row.stalls <= 1:
            self._parts.meters.run_started(row.workflow, self._parts.clock.now_ms() - row.created_at_ms)
        enter = partial(self._enter, row, stale)
        self._tasks[row.id] = asyncio.create_task(self._drive(row, enter), name=f"run:{row.id}")

    def _has_room(self) -> bool:
        """Returns True if there is room for one more run, besides those that wait to be claimed."""
        awake = self._clock_repair.seen_ms <= self._parts.clock.now_ms() < self._renewed_at_ms + self.lease_ms
        free = not (self._stopping or self._others_wait or self._admission.waiting)
        return awake and free and len(self._tasks) < self._runs_max

    def _may_claim(self, placement: Placement) -> bool:
        """At once, without a look at limits."""
        return placement.pool in self._pools and not placement.is_limited

    # --- new runs ---

    async def _adopt(self, new: NewRun, plan: Plan, watched: AwaitedRun | None = None) -> tuple[RunRow, bool] | None:
        """Only when no other run waits to be claimed: the order in which runs are begun is that of their due times."""
        if not (self._has_room() and Adoption.suits(new) and self._may_claim(new.placement)):
            return None
        if self._missing.of(plan) is not None:
            return None
        adoption = self._adopting[new.id] = Adoption(self._parts.store, new, self.name, self.lease_ms, watched)
        work, name = self._drive_adopted(adoption, plan), f"run:{new.id}"
        task = asyncio.create_task(work, name=name, context=self._context.copy())
        self._tasks[new.id] = task
        self.claims += 1
        made = await adoption.made()
        if made[1]:
            self._parts.meters.run_started(new.workflow, 0)
        return made

    async def _drive_adopted(self, adoption: Adoption, plan: Plan) -> None:
        try:
            await self._drive(adoption.row, partial(self._enter_adopted, adoption, plan))
            if await adoption.end():
                self._wake.set()
        finally:
            adoption.refuse()
            self._adopting.pop(adoption.row.id, None)

    async def _enter_adopted(self, adoption: Adoption, plan: Plan) -> tuple[RunLoop, list[f.Fact]]:
        return begin(self._parts, adoption, plan)

    # --- runs that are answered ---

    async def _answer(
        self, wait: WaitRow, response: bytes, by: str | None, message: bytes, now_ms: int
    ) -> tuple[Answered | None, RunRow | None] | None:
        """A run that waits for people is not in memory: it is answered, claimed and continued in one commit."""
        run_id = wait.run_id
        if run_id in self._tasks or not self._has_room():
            return None
        answer = wait.token_hash, response, by, message, now_ms
        continued = Continuation(self._parts.store, answer, self.name, self.lease_ms, self._pools)
        self._adopting[run_id] = continued
        work, name = self._drive_answered(continued, run_id), f"run:{run_id}"
        self._tasks[run_id] = asyncio.create_task(work, name=name, context=self._context.copy())
        self.claims += 1
        return await continued.made()

    async def _drive_answered(self, continued: Continuation, run_id: str) -> None:
        parked = self._parts.owned.parked.pop(run_id)
        try:
            row = await self._row_to_continue(continued, run_id, parked)
            if row is not None:
                await self._drive(row, partial(self._enter_answered, continued, row, parked))
            await continued.end()
        finally:
            continued.refuse()
            self._adopting.pop(run_id, None)
            if self._tasks.get(run_id) is asyncio.current_task():
                del self._tasks[run_id]
            if continued.is_left:
                self._parts.wake(run_id)

    async def _row_to_continue(self, continued: Continuation, run_id: str, parked: Parked | None) -> RunRow | None:
        """Return the row that the run will have, or None if it is another's, or a claim has more to look at."""
        if parked is not None:
            return None if parked.run.row.limited else continued.row_of(parked.run.row, parked.run.state.seq)
        found = None
        with suppress(StoreError):
            found = await self._parts.store.get_run(run_id)
        if found is None or found.lease_owner is not None or found.status != "waiting":
            return None
        return continued.row_of(found, found.seq)

    async def _enter_answered(
        self, continued: Continuation, row: RunRow, parked: Parked | None
    ) -> tuple[RunLoop, list[f.Fact]] | None:
        """Load a run that an answer continues. Returns None if the run is left to a claim, which looks why."""
        parts = self._parts
        try:
            plan = parked.run.plan if parked is not None else await load_plan(parts.store, row.plan_hash)
            await parts.connectors.refresh_for(plan)
            size = 0 if parked is not None else await parts.store.output_bytes(row.id)
            if self._missing.of(plan) is not None or not await self._admission.enter(row.id, size):
                return None
            loop, first = await recover(parts, row, parked=parked, adoption=continued)
        except (CorruptJournal, Fenced, StoreError):
            return None
        if not loop.may_continue:
            return None
        loop.put_in_hand(continued.message)
        return loop, first

    # --- a run in memory ---

    async def _enter(self, row: RunRow, stale: asyncio.Task[None] | None) -> tuple[RunLoop, list[f.Fact]] | None:
        """Load a claimed run. Returns None if it stays out because the process ends, or because it lacks a block."""
        if stale is not None:
            await asyncio.wait([stale])
        parts = self._parts
        plan = await load_plan(parts.store, row.plan_hash)
        await parts.connectors.refresh_for(plan)
        lacks = await self._missing.held_up_by(row, plan)
        if lacks is not None:
            await self._missing.give_back(row, plan, lacks)
            return None
        parked = parts.owned.parked.pop(row.id)
        has_none = row.seq <= 1 or parked is not None  # a run that begins has put out nothing, a parked one is small
        size = 0 if has_none else await parts.store.output_bytes(row.id)
        if not await self._admission.enter(row.id, size):
            await parts.store.release(row.id, row.epoch, row.seq, parts.clock.now_ms(), "running")
            return None
        loop, first = await recover(parts, self._lost_together(row), parked=parked)
        if row.stalls > STALLS_MAX:
            message = f"{row.stalls} workers claimed this run and none made progress"
            # The attempts of the last worker are lost. The run cannot end before that is recorded.
            lost = [fact for fact in first if isinstance(fact, f.AttemptLost)]
            first = [f.RunAborted(parts.clock.now_ms(), ErrorInfo("no_progress", message), now=True), *lost]
        if row.orphaned:
            first.insert(0, cancel_of_orphan(parts.clock.now_ms()))
        return loop, first

    async def _drive(self, row: RunRow, enter: Callable[[], Awaitable[tuple[RunLoop, list[f.Fact]] | None]]) -> None:
        """Drive one run for one lease. Every error is contained here: the run is dropped and recovers from its
        journal."""
        ended: Ended | None = None
        begin_doing(Doing(row.id, row.workflow))
        try:
            entered = await enter()
            if entered is None:
                return
            loop, first = entered
            del enter, entered
            while ended in (None, "moved", "refused"):
                if ended is not None:
                    attempts = loop.attempts
                    self._admission.leaves_to_be_read(row.id, loop.held_bytes)
                    self._loops.pop(row.id, None)
                    del loop  # all outputs of the run: they are not held twice
                    loop, first = await self._continue(attempts, row)
                self._loops[row.id] = loop
                self._admission.entered(row.id)
                if self._stopping:
                    loop.stop()
                ended = await loop.drive(first)
        except NotAdopted:
            pass
        except Fenced:
            self._parts.meters.leases_lost += 1
            self._log_lost(row.id)
        except StoreError as error:
            self._dropped = True
            OUTAGE.log(log, error, "runs were dropped until the next renewal")
        except asyncio.CancelledError:
            raise
        except Exception:
            self._dropped = True
            log.exception(
                "run %s: dropped from memory; it recovers from its journal at the next claim after a renewal", row.id
            )
        finally:
            if self._tasks.get(row.id) is asyncio.current_task():
                del self._tasks[row.id]
                self._loops.pop(row.id, None)
            self._parts.hub.signal(row.id)  # who follows it waits for another process's commits from now on
            self._parts.hub.texts.forget(row.id)
            self._parts.owned.left(row.id, ended == "finished")
            self._admission.entered(row.id)
            # Its due time, or room for another one, or its place of a limit.
            if ended != "finished" or self._others_wait or row.limited:
                self._wake.set()

    def _held_bytes(self) -> int:
        return sum(loop.held_bytes for loop in self._loops.values())

    def _lost_together(self, row: RunRow) -> RunRow:
        owner = row.former_owner
        if owner is None:
            return row
        before = self._claimed_from.pop(owner, 0)
        self._claimed_from[owner] = before + 1
        if len(self._claimed_from) > OWNERS_KEPT:
            del self._claimed_from[next(iter(self._claimed_from))]
        return replace(row, lost_together=row.lost_together or before > 0)

    async def _continue(self, attempts: Attempts, row: RunRow) -> tuple[RunLoop, list[f.Fact]]:
        """The same lease of a run that follows another plan now, or whose append was refused: recovered from what is
        on disk, with the attempts under way."""
        try:
            now = await self._parts.store.get_run(row.id)
            if now is None or now.epoch != row.epoch:
                raise Fenced
            return await recover(self._parts, now, attempts)
        except BaseException:
            attempts.cancel_all()
            raise

    # --- leases ---

    async def _renew_all(self) -> float:
        await self._renew()
        return self._renew_every_s

    @property
    def _renew_every_s(self) -> float:
        return self.lease_ms / 1000 / RENEWALS_PER_LEASE

    async def _renew(self) -> None:
        """The lease of this process on all its runs, those that are still being recovered too. What it has dropped, or
        does not know that it claimed, is free for the next claim. Raises StoreError."""
        async with self._leases:
            await self._renew_held()

    async def _renew_held(self) -> None:
        now_ms = self._parts.clock.now_ms()
        held = dict(self._tasks)
        not_taken = {run_id for run_id, adoption in self._adopting.items() if not adoption.is_over}
        dropped, self._dropped = self._dropped, False
        if held or dropped:
            try:
                # The tasks as they are at the commit: a run that a client waits for may be begun before it.
                kept = await self._parts.store.renew(self.name, self._tasks.keys(), now_ms, self.lease_ms)
            except BaseException:
                self._dropped = self._dropped or dropped
                raise
            for run_id, task in held.items():
                if run_id in kept:
                    if run_id in self._loops:
                        self._loops[run_id].inbox_changed()  # an answer may have been written by another process
                elif run_id not in not_taken:
                    await self._check_lost(run_id, task)
        self._renewed_at_ms = now_ms

    async def _check_lost(self, run_id: str, task: asyncio.Task[None]) -> None:
        """End the task if another worker has the run. A run that has ended, or was given up, is not lost: its last
        append may be on disk, which the task learns after this. Raises StoreError."""
        row = None if task.done() else await self._parts.store.get_run(run_id)
        if row is not None and row.lease_owner not in (None, self.name) and not task.done():
            self._parts.meters.leases_lost += 1
            self._log_lost(run_id)
            task.cancel()

    def _log_lost(self, run_id: str) -> None:
        self._losses.log(log, logging.WARNING, "lost", "run %s: lost the lease to another worker", run_id)
