"""Two processes, one database, some clients, and everything that may go wrong; then nothing more goes wrong, and every
run has to end.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any, TypeVar

from executor.kernel.store.topics import journal, leases
from executor.open.engine import Engine
from tests.simulation.world.clients import Clients
from tests.simulation.world.disk import Disk, Trap
from tests.simulation.world.faults import Faults
from tests.simulation.world.ledger import Ledger
from tests.simulation.world.loop import PROCESS, Process, WorldLoop, begin
from tests.simulation.world.script import Case, Script
from tests.simulation.world.sealed import sealed
from tests.simulation.world.server import LEASE_MS, Lost, Server, WallClock
from tests.simulation.world.steps import Stepping
from tests.simulation.world.verdict import audit, pronounce
from tests.support.core.watch import Broken, Observed

T = TypeVar("T")

STEPS_MAX = 400_000
STRIKES_MAX = 8  # of one kind: fewer than make a run be given up for making no progress
# Longer than a lease, a look at the timers and a look at the database together.
PATIENCE_S = 90.0
FAR_MS = 10 * 86_400_000  # the world's own clock steps are shorter, the waits that are not to run out are longer
FOLLOW_S = 2.5  # another process's commits are looked for every second
FOLLOW_OWN_S = 0.3  # those of this process are not looked for: readers hear of them as soon as it does


def simulate(seed: int) -> World:
    """One seed from start to end. Raises AssertionError that names what is wrong and the command to run it again."""
    with sealed(seed) as (tunables, log):
        world = World(seed, tunables)
        log.complain = world.complain
        try:
            world.loop.run(world.live())
            world.observed = pronounce(world)
        except Exception as error:
            again = f"python -m tests.simulation.world --seed {seed}"
            raise AssertionError(f"seed {seed}: {error}\nrun it again: {again}") from error
        finally:
            world.disk.db.close()
        return world


class World:
    def __init__(self, seed: int, tunables: dict[str, int]) -> None:
        rng = Random(f"world {seed}")
        self.seed = seed
        self.tunables = tunables
        self.faults = Faults.draw(rng)
        self.rng = Random(f"world {seed} strikes")
        self.loop = WorldLoop(Random(f"world {seed} loop"), STEPS_MAX)
        self.disk = Disk(Random(f"world {seed} disk"))
        self.clock = WallClock(self.loop)
        self.ledger = Ledger(self.disk.db, self.loop.time, self.clock.highest_ms, self.complain, LEASE_MS / 1000)
        self.disk.committed = self.ledger.committed
        self.disk.kept_awake = self.ledger.kept_awake
        self.ledger.let_go = lambda: self.disk.let_go
        self.disk.sick = self._disturbed
        self.stolen = asyncio.Event()
        self.ledger.taken_over = self._claimed
        drawn = [Case.draw(2 * seed + n, rng) for n in range(rng.choice((1, 1, 2)))]
        self.cases = {case.name: case for case in drawn}
        self.submits = [case for case in drawn for _ in range(rng.choice((1, 1, 2)))]
        if not self.faults.calm:  # where all is prompt no run waits for a place
            self._share(drawn, Random(f"world {seed} limits"))
        self.ledger.is_calm = lambda: self.faults.calm
        self.ledger.may_run_ahead = self._may_run_ahead
        stepping = Stepping.draw(seed, self.ledger.steps, self._owns)
        self.script = Script(self.cases, self.disk, self.ledger, Random(f"world {seed} script"), stepping)
        self.script.long = rng.random() < 0.3
        self.script.stubborn = rng.choice((0.0, 0.5))
        self.clients = Clients(self, Random(f"world {seed} clients"))
        self.ledger.opened = self.clients.something_opened.set
        self.servers = [Server(self, name) for name in ("left", "right")[: rng.choice((1, 2, 2, 2))]]
        self.variants: dict[str, int] = {}
        self.observed: dict[str, Observed] = {}
        self.healthy = False
        self.strikes: dict[str, int] = {}
        self._fault_s = rng.uniform(5, 45)

    def _share(self, cases: list[Case], rng: Random) -> None:
        if rng.random() < 0.4:
            self.ledger.limits = {"one": 1, "few": rng.choice((1, 2))}
            for case in cases:
                case.share(self.ledger.limits, rng)

    async def live(self) -> None:
        for server in self.servers:
            await server.start()
        self.disk.faults = self.faults
        answering = self.begin(self.clients.answer_all())
        chaos = [self.begin(self._strikes(*kind)) for kind in self._kinds() if kind[0]]
        submits = [self.begin(self.clients.submit(case, n)) for n, case in enumerate(self.submits)]
        await asyncio.sleep(self._fault_s if not self.faults.calm else 1)
        await self._heal(chaos)
        await asyncio.gather(*submits)
        await self._until_all_have_ended()
        answering.cancel()
        for task in self.clients.tasks:
            await task
        await self.clients.too_late()
        for server in self.servers:
            await server.stop()

    def begin(self, what: Any) -> asyncio.Task[Any]:
        """A task of the world outside. What it raises ends the world."""
        return begin(None, self._guarded(what))

    async def _guarded(self, what: Awaitable[Any]) -> None:
        try:
            await what
        except Exception as error:
            self.complain(str(error) if isinstance(error, Broken) else repr(error))

    def complain(self, what: str) -> None:
        """Ends the world. For where an exception would be caught by the product."""
        if self.loop.broken is None:
            self.loop.broken = Broken(what)

    def _may_run_ahead(self, workflow: str, node: str) -> bool:
        return workflow in self.cases and self.cases[workflow].may_run_ahead(node)

    def _owns(self, run: str) -> bool:
        """Whether the process that asks does, by the rows."""
        process = PROCESS.get()
        return process is not None and self.ledger.claimed_by.get(run) == process.name

    def inline(self, workflow: str, node: str) -> bool:
        return workflow in self.cases and self.cases[workflow].block(node).inline

    async def ask(self, what: Callable[[Engine], Awaitable[T]], patience_s: float) -> T:
        """A request to any process that is up, frozen or not. Raises Lost, and what the product raises."""
        up = [server for server in self.servers if server.engine is not None]
        if not up:
            raise Lost
        return await self.rng.choice(up).ask(what, patience_s)

    def told_late(self, run: str, seq: int, late_s: float, own: bool) -> None:
        """`own`: the process that tells has committed it."""
        most_s = FOLLOW_OWN_S + 3 * self.faults.slow_s if own else FOLLOW_S
        if self.faults.calm and not self.faults.lost_wakeups and late_s > most_s:
            self.complain(f"event {seq} of run {run} reached its follower {late_s:.1f} s after it could")

    # --- what goes wrong

    def _kinds(self) -> list[tuple[float, str, Callable[[], Awaitable[None]]]]:
        faults = self.faults
        return [
            (faults.crash_s, "crash", self._crash),
            (faults.stop_s, "stop", self._stop),
            (faults.freeze_s, "freeze", self._freeze),
            (faults.clock_s, "clock", self._step_clock),
            (faults.theft_s, "theft", self._steal),
        ]

    async def _strikes(self, mean_s: float, kind: str, strike: Callable[[], Awaitable[None]]) -> None:
        while self.strikes.get(kind, 0) < STRIKES_MAX:
            await asyncio.sleep(self.rng.expovariate(1 / mean_s))
            self.strikes[kind] = self.strikes.get(kind, 0) + 1
            await strike()

    def _any_server(self) -> Server | None:
        up = [server for server in self.servers if server.engine is not None and not server.leaving]
        return self.rng.choice(up) if up else None

    async def _crash(self) -> None:
        server = self._any_server()
        if server is not None:
            server.kill()
            audit(self)
            self.begin(server.start_again(self.rng.random() * self.rng.choice((0.5, 4, 25))))

    async def _stop(self) -> None:
        server = self._any_server()
        if server is not None:
            self.begin(server.stop_and_start(2 + self.rng.random() * 6))  # at least what a commit takes

    async def _freeze(self) -> None:
        server = self._any_server()
        if server is not None and server.process is not None:
            process = server.process
            if self.rng.random() < 0.8:  # with a commit under way
                write = self.rng.choice((journal.append, leases.release))
                self.disk.traps[process.name] = Trap(write, partial(self._stand_still, process))
                await asyncio.sleep(self.rng.random() * 10)
                self.disk.traps.pop(process.name, None)
            else:
                self._stand_still(process)
            if process.frozen and self.rng.random() < 0.5:
                self._end_leases([name for name, owner in self.ledger.owners.items() if owner == process.name])
            stolen = self.stolen = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.rng.choice((3 * self.rng.random(), 2.5 * LEASE_MS / 1000))):
                    await stolen.wait()
            self._go_on(process)

    def _end_leases(self, workers: list[str]) -> None:
        """As if these had stood still for longer."""
        for worker in workers:
            self.disk.db.execute("UPDATE workers SET until_ms = 0 WHERE id = ?", (worker,))

    def _stand_still(self, process: Process) -> None:
        process.frozen = True
        self.ledger.disturbed[process.name] = math.inf

    def _go_on(self, process: Process) -> None:
        if process.frozen:
            self.loop.thaw(process)
            self._disturbed(process.name)

    def _claimed(self) -> None:
        """A lease was taken over. This is the moment at which an owner that stood still does most harm."""
        if self.rng.random() < 0.7:
            self.stolen.set()

    async def _step_clock(self) -> None:
        step_ms = self.rng.choice((-1, 1)) * self.rng.choice((20_000, 2 * 3_600_000, 86_400_000))
        self._set_clock(step_ms)
        if self.rng.random() < 0.5:
            await asyncio.sleep(self.rng.random() * 20)
            self._set_clock(-step_ms)

    def _set_clock(self, step_ms: int) -> None:
        self.clock.step(step_ms)
        self.ledger.clock_was_set = True

    async def _steal(self) -> None:
        """As a clock does it that is set to and fro. The first process that looks has the run then, be it its owner."""
        owners = self.disk.db.execute("SELECT DISTINCT owner FROM heads WHERE owner IS NOT NULL ORDER BY 1").fetchall()
        if owners:
            owner = self.rng.choice(owners)
            self.disk.db.execute("UPDATE workers SET until_ms = 0 WHERE id = ?", owner)
            held = self.disk.db.execute("SELECT id FROM heads WHERE owner = ?", owner).fetchall()
            self.ledger.stolen.update(run for (run,) in held)

    def _disturbed(self, process: str) -> None:
        self.ledger.disturbed[process] = self.loop.time()

    async def _heal(self, chaos: list[asyncio.Task[None]]) -> None:
        """Nothing goes wrong from now on; what stands still continues."""
        for task in chaos:
            task.cancel()
        self.disk.traps.clear()
        await asyncio.wait(chaos) if chaos else None
        self.disk.faults = Faults(slow_s=self.faults.slow_s)
        self.healthy = True
        for server in self.servers:
            if server.process is not None:
                self._go_on(server.process)
            self.begin(server.start_again(0))

    # --- that it ends

    async def _until_all_have_ended(self) -> None:
        query = "SELECT id, status, due_ms FROM heads"
        quiet_since_s = self.loop.time()
        while rows := self.disk.db.execute(query).fetchall():
            await asyncio.sleep(1)
            quiet_since_s = max(quiet_since_s, self.ledger.progress_s)
            if self.loop.time() - quiet_since_s < PATIENCE_S:
                continue
            due_ms = self._next_due_ms({id for id, _, _ in rows})
            if due_ms is None:
                raise Broken(f"nothing happened for {PATIENCE_S:.0f} s, and these do not end: {rows}")
            self._set_clock(due_ms - self.clock.now_ms())  # a clock that was set back makes waits long
            quiet_since_s = self.loop.time()

    def _next_due_ms(self, runs: set[str]) -> int | None:
        """The next time at which one of these has something to do by itself."""
        now_ms = self.clock.now_ms()
        query = "SELECT run_id, expires_at_ms FROM waits WHERE status = 'pending' AND expires_at_ms > ?"
        dues = [due_ms for _, due_ms in self.disk.db.execute(query, (now_ms,)).fetchall()]
        dues += [due_ms for (run, _, _), due_ms in self.ledger.retries.items() if run in runs and due_ms > now_ms]
        return min((due_ms for due_ms in dues if due_ms < now_ms + FAR_MS), default=None)
