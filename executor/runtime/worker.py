"""Claims runs, drives them, renews their leases, lets go of them. One per process.

A run is owned by exactly one worker while its lease lasts (15 s, renewed every third of it in one statement for all
runs). A worker
that stalls past its lease loses the run at its next write (`Fenced`): it drops the run and does nothing else about it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial

from msgspec.structs import replace

from compiler.plan import Plan
from executor.core import facts as f
from executor.core.events import ErrorInfo
from executor.errors import Fenced, StoreError
from executor.runtime.admission import Admission
from executor.runtime.adoption import Adoption, NotAdopted
from executor.runtime.attempts import Attempts
from executor.runtime.children import cancel_of_orphan
from executor.runtime.loop import Ended, RunLoop
from executor.runtime.parts import Parts
from executor.runtime.recover import begin, recover
from executor.runtime.task import BackgroundTask
from executor.store.rows import Answered, NewRun, RunRow, WaitRow

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
# The wall clock went back by more than this: it was set, not slewed.
CLOCK_STEP_MS = 1_000
# It may also go forward and back between two looks, or while another process writes: then only what is written tells.
REPAIR_EVERY_S = 60.0
LEASE_MAX_MS = 3_600_000  # no lease is longer, so one that ends later was written by another time
# Of a worker that starts: often after one that was killed, and maybe on a machine that has lost its time meanwhile. Its
# own lease is a better measure then. At least this long, so that who lives and has other settings keeps its runs.
LEASE_MAX_AT_START_MS = 60_000


class Worker:
    def __init__(
        self, parts: Parts, *, name: str | None = None, lease_ms: int = LEASE_MS, runs_max: int = RUNS_MAX
    ) -> None:
        self.name = name or f"w-{secrets.token_hex(6)}"
        self._parts = parts
        self._lease_ms = lease_ms
        self._runs_max = runs_max
        self._loops = parts.owned.loops
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._wake = parts.owned.due
        self._leases = asyncio.Lock()  # who renews must know what was claimed
        self._renewed_at_ms = 0
        self._last_ms = 0  # the clock when it was last looked at
        self._repair_at_s = 0.0  # of the event loop's clock, which cannot be set
        self._stopping = False
        self._admission = Admission(parts.services.limits.memory_bytes, self._held_bytes)
        self._adopting: dict[str, Adoption] = {}
        self._answering: set[str] = set()  # runs that are being answered and claimed
        self._others_wait = True  # there may be runs to claim that were there before
        self._claimed_from: dict[str, int] = {}  # owner that is gone -> how many of its runs were claimed here
        self._claiming = BackgroundTask(
            f"{self.name}:claim", self._claim, failed="claiming failed", log=log, wake=self._wake
        )
        self._renewing = BackgroundTask(f"{self.name}:renew", self._renew_all, failed="renewing leases failed", log=log)

    def start(self) -> None:
        parts = self._parts
        parts.clock.on_jump(self._wake.set)
        self._renewed_at_ms = parts.clock.now_ms()
        self._claiming.start()
        self._renewing.start(after_s=self._renew_every_s)
        self._context = copy_context()  # of what runs, not of who asks for it
        parts.owned.adopt, parts.owned.answer = self._adopt, self._answer

    async def stop(self, grace_s: float = 8.0) -> None:
        """Launch nothing more, let running handlers end for `grace_s`, then cancel them; free every lease."""
        self._stopping = True
        self._admission.close()
        for loop in self._loops.values():
            loop.stop()
        await self._claiming.end(within_s=grace_s)  # the runs of a claim under way are freed as well
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=grace_s)
        left = dict(self._loops)
        tasks = [task for task in self._tasks.values() if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._claiming.stop(), self._renewing.stop(), return_exceptions=True)
        freed = await asyncio.gather(*(loop.abandon() for loop in left.values()), return_exceptions=True)
        for run_id, failure in zip(left, freed, strict=True):
            if isinstance(failure, StoreError):
                log.warning("run %s: its lease could not be released; it will expire", run_id)
            elif failure is not None:
                raise failure

    # --- claiming ---

    async def _claim(self) -> float:
        """What can be claimed. Returns the seconds until there may be more."""
        store, clock = self._parts.store, self._parts.clock
        loop_time = asyncio.get_running_loop().time
        if clock.now_ms() < self._last_ms - CLOCK_STEP_MS or loop_time() >= self._repair_at_s:
            await self._repair_clock_skew()
            self._repair_at_s = loop_time() + REPAIR_EVERY_S
        self._last_ms = clock.now_ms()
        if clock.now_ms() - self._renewed_at_ms >= self._lease_ms:
            # This process slept. It keeps the runs that no other has claimed, instead of claiming them from itself.
            await self._renew()
        self._admission.look()
        room = min(self._runs_max - len(self._tasks), CLAIM_BATCH)
        if self._admission.waiting > self._runs_max // 2:  # another process may have room
            room = 0
        rows: list[RunRow] = []
        if room > 0:
            async with self._leases:
                rows = await store.claim(self.name, clock.now_ms(), self._lease_ms, limit=room)
                for row in rows:
                    self._begin(row)
        self._others_wait = bool(rows) or room <= 0
        if rows:
            return 0
        due_ms = await store.next_due() if room > 0 else None
        if due_ms is None:
            return IDLE_MAX_S
        return min(IDLE_MAX_S, max(0.0, (due_ms - clock.now_ms()) / 1000) + 0.001)

    async def _repair_clock_skew(self) -> None:
        """At the start, when the clock was set back, and now and then: nothing may wait for a time that was only
        thought to come."""
        await self._renew()  # own leases are of the new time then
        starts = not self._repair_at_s
        longest_ms = max(2 * self._lease_ms, LEASE_MAX_AT_START_MS) if starts else LEASE_MAX_MS
        clock = self._parts.clock
        asked_ms = clock.now_ms()
        repair = await self._parts.store.repair_clock_skew(asked_ms, longest_ms)
        if asked_ms + repair.ahead_ms > clock.now_ms():  # else others wrote what is of a later time while this waited
            log.warning("the clock was set back: %d runs had leases or due times in the future", repair.runs)

    def _begin(self, row: RunRow) -> None:
        stale = self._tasks.get(row.id)  # this process slept through its own lease and has now claimed the run again
        if stale is not None:
            stale.cancel()
        enter = partial(self._enter, row, stale)
        self._tasks[row.id] = asyncio.create_task(self._drive(row, enter), name=f"run:{row.id}")

    def _has_room(self) -> bool:
        """For one more run, besides those that wait to be claimed."""
        awake = self._last_ms <= self._parts.clock.now_ms() < self._renewed_at_ms + self._lease_ms
        free = not (self._stopping or self._others_wait or self._admission.waiting)
        return awake and free and len(self._tasks) + len(self._answering) < self._runs_max

    # --- new runs ---

    async def _adopt(self, new: NewRun, plan: Plan) -> tuple[RunRow, bool] | None:
        """Only when no other run waits to be claimed: the order in which runs are begun is that of their due times."""
        if not (self._has_room() and Adoption.suits(new)):
            return None
        adoption = self._adopting[new.id] = Adoption(self._parts.store, new, self.name, self._lease_ms)
        task = self._context.copy().run(asyncio.create_task, self._drive_adopted(adoption, plan), name=f"run:{new.id}")
        self._tasks[new.id] = task
        return await adoption.made()

    async def _drive_adopted(self, adoption: Adoption, plan: Plan) -> None:
        async def enter() -> tuple[RunLoop, list[f.Fact]]:
            return begin(self._parts, adoption, plan)

        try:
            await self._drive(adoption.row, enter)
            if await adoption.end():
                self._wake.set()
        finally:
            adoption.refuse()
            self._adopting.pop(adoption.row.id, None)

    # --- runs that are answered ---

    async def _answer(
        self, wait: WaitRow, response: bytes, by: str | None, message: bytes, now_ms: int
    ) -> tuple[Answered | None] | None:
        """A run that waits for people is not in memory: it is answered and claimed in one commit."""
        if wait.run_id in self._tasks or wait.run_id in self._answering or not self._has_room():
            return None
        self._answering.add(wait.run_id)
        task = asyncio.create_task(self._answer_and_claim(wait, response, by, message, now_ms))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # who answers may have left
        return (await asyncio.shield(task),)  # the claim is heard of all the same

    async def _answer_and_claim(
        self, wait: WaitRow, response: bytes, by: str | None, message: bytes, now_ms: int
    ) -> Answered | None:
        parts = self._parts
        try:
            answered, row = await parts.store.answer_and_claim(
                wait.token_hash, response, by, message, now_ms, self.name, self._lease_ms
            )
        finally:
            self._answering.discard(wait.run_id)
        if row is not None and self._stopping:
            await parts.store.release(row.id, row.epoch, row.seq, parts.clock.now_ms(), "running")
        elif row is not None:
            self._context.copy().run(self._begin, row)
            parts.hub.signal(row.id)
        elif answered is not None and answered.won:  # another process has it in memory, or it is about to leave here
            parts.wake(wait.run_id)
        return answered

    # --- a run in memory ---

    async def _enter(self, row: RunRow, stale: asyncio.Task[None] | None) -> tuple[RunLoop, list[f.Fact]] | None:
        """A claimed run. None: the process ends, and it stays out."""
        if stale is not None:
            await asyncio.wait([stale])
        parts = self._parts
        # A run that begins has put out nothing.
        if not await self._admission.enter(row.id, await parts.store.output_bytes(row.id) if row.seq > 1 else 0):
            await parts.store.release(row.id, row.epoch, row.seq, parts.clock.now_ms(), "running")
            return None
        await parts.turns.turn()
        loop, first = await recover(parts, self._lost_together(row))
        if row.stalls > STALLS_MAX:
            message = f"{row.stalls} workers claimed this run and none made progress"
            # What was under way is lost in any case; the run cannot end before that is said.
            lost = [fact for fact in first if isinstance(fact, f.AttemptLost)]
            first = [f.RunAborted(parts.clock.now_ms(), ErrorInfo("no_progress", message)), *lost]
        if row.orphaned:
            first.insert(0, cancel_of_orphan(parts.clock.now_ms()))
        return loop, first

    async def _drive(self, row: RunRow, enter: Callable[[], Awaitable[tuple[RunLoop, list[f.Fact]] | None]]) -> None:
        """One lease of one run. Whatever goes wrong is contained here: the run is dropped and recovers from its
        journal."""
        ended: Ended | None = None
        try:
            entered = await enter()
            if entered is None:
                return
            loop, first = entered
            while ended in (None, "moved", "refused"):
                if ended is not None:
                    attempts = loop.attempts
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
            log.warning("run %s: lost the lease to another worker", row.id)
        except StoreError as error:
            log.error(
                "run %s: the database failed (%s); it is free for the next claim at the next renewal", row.id, error
            )
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception(
                "run %s: dropped from memory; it recovers from its journal at the next claim after a renewal", row.id
            )
        finally:
            if self._tasks.get(row.id) is asyncio.current_task():
                del self._tasks[row.id]
                self._loops.pop(row.id, None)
            self._parts.hub.signal(row.id)  # who follows it waits for another process's commits from now on
            self._parts.owned.left(row.id)
            self._admission.entered(row.id)
            if ended != "finished" or self._others_wait:  # its due time, or room for another one
                self._wake.set()

    def _held_bytes(self) -> int:
        return sum(loop.held_bytes for loop in self._loops.values())

    def _lost_together(self, row: RunRow) -> RunRow:
        """With `lost_together` as all claims of this process together say."""
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
        return self._lease_ms / 1000 / RENEWALS_PER_LEASE

    async def _renew(self) -> None:
        """The lease of this process on all its runs, those that are still being recovered too. What it has dropped, or
        does not know that it claimed, is free for the next claim. Raises StoreError."""
        async with self._leases:
            await self._renew_held()

    async def _renew_held(self) -> None:
        now_ms = self._parts.clock.now_ms()
        held = dict(self._tasks)
        not_created = {run_id for run_id, adoption in self._adopting.items() if not adoption.is_over}
        if held:
            kept = await self._parts.store.renew(self.name, [*held, *self._answering], now_ms, self._lease_ms)
            for run_id, task in held.items():
                if run_id not in kept:
                    if not task.done() and run_id not in not_created:
                        log.warning("run %s: lost the lease to another worker", run_id)
                        task.cancel()
                elif run_id in self._loops:
                    self._loops[run_id].inbox_changed()  # an answer may have been written by another process
        self._renewed_at_ms = now_ms
