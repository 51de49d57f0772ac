"""A process of the world with an engine in it: it starts, is asked, loses wake-ups, dies or stops, and starts again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from executor.blocks.http.client import GuardedClient
from executor.blocks.services import Services
from executor.errors import StoreError
from executor.kernel.journal import codec
from executor.kernel.read import cursor as journal_cursor
from executor.kernel.store.run_rows import Record
from executor.open.engine import Engine
from tests.simulation.world.disk import WorldStore
from tests.simulation.world.loop import Process, WorldLoop, begin
from tests.simulation.world.script import Expressions
from tests.support.core.watch import Broken

if TYPE_CHECKING:
    from tests.simulation.world.world import World

T = TypeVar("T")

LEASE_MS = 15_000
BEGIN_MS = 1_800_000_000_000
_SECRET = b"the secret of the simulated installation"


class Lost(Exception):
    """The process died, or did not answer: what became of the request is unknown."""


class Server:
    """A process with an engine in it, one after the other."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name
        self._starts = 0
        self.process: Process | None = None
        self.engine: Engine | None = None
        self.leaving = False
        self._asked: set[asyncio.Future[Any]] = set()
        self._remains: list[Any] = []  # kept from the garbage collector, whose time is no seed's

    async def start(self) -> None:
        world = self._world
        self._starts += 1
        process = self.process = Process(f"{self._name} {self._starts}")
        codec.plans_at_hand.clear()
        script = world.script
        services = Services(sandbox=Expressions(script), http=GuardedClient())  # type: ignore[arg-type]
        opening = Engine.open(
            WorldStore(world.disk, process.name, world.ledger.shown),
            registry=script.registry(),
            services=services,
            secret=_SECRET,
            clock=world.clock,
            lease_ms=LEASE_MS,
        )
        engine = await begin(process, opening)
        world.ledger.owners[engine._worker.name] = process.name
        self._look_at_pages(engine)
        self._lose_wakeups(engine)
        self._look_at_live_text(engine)
        self.engine, self.leaving = engine, False

    def _lose_wakeups(self, engine: Engine) -> None:
        """Only looking again helps then."""
        world, hub, owned, places = self._world, engine.parts.hub, engine.parts.owned, engine.parts.places

        def sometimes(call: Callable[..., None]) -> Callable[..., None]:
            def maybe(*args: Any) -> None:
                if (world.healthy and not world.faults.calm) or world.rng.random() >= world.faults.lost_wakeups:
                    call(*args)

            return maybe

        for owner, name in ((hub, "signal"), (hub, "committed"), (hub, "grown"), (owned, "wake"), (places, "release")):
            setattr(owner, name, sometimes(getattr(owner, name)))

    def _look_at_live_text(self, engine: Engine) -> None:
        """Readers get none of an attempt whose start may never be in the journal."""
        delta, ledger = engine.parts.hub.delta, self._world.ledger

        def look(run: str, key: str, text: str, seq: int = 0) -> None:
            node, _, path = key.partition("@")
            ledger.shown(run, node, path, int(text))
            delta(run, key, text, seq)

        engine.parts.hub.delta = look

    def _look_at_pages(self, engine: Engine) -> None:
        """Whatever readers share, each gets all that it was told of before it asked, up to the end of the page."""
        world, hub, read = self._world, engine.parts.hub, engine.events._pages.read
        grown, committed, looked = hub.grown, hub.committed, hub.looked
        told: dict[str, int] = {}

        def note_growth(run: str) -> None:
            told[run] = world.ledger.runs[run].seq
            grown(run)

        def note_commit(run: str, records: Sequence[Record]) -> None:
            if any((run, record.seq) not in world.ledger.committed_s for record in records):
                world.complain(f"readers of run {run} hear of what is not on the disk")
            told[run] = max(told.get(run, 0), *(record.seq for record in records), 0)
            committed(run, records)

        def note_look(run: str, seq: int | None) -> bool:
            told[run] = max(told.get(run, 0), seq or 0)
            return looked(run, seq)

        async def look(run: str, after: int) -> list[Record]:
            there, end = told.get(run, 0), after - after % journal_cursor.PAGE + journal_cursor.PAGE
            records = await read(run, after)
            if (records[-1].seq if records else after) < min(there, end):
                world.complain(f"a page of run {run} ends at {after + len(records)}, its readers know of {there}")
            return records

        hub.grown, hub.committed, hub.looked = note_growth, note_commit, note_look
        engine.events._pages.read = look

    async def ask(self, what: Callable[[Engine], Awaitable[T]], patience_s: float) -> T:
        assert self.engine is not None and self.process is not None
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        task = begin(self.process, what(self.engine))
        task.add_done_callback(lambda done: _relay(done, answer))
        self._asked.add(answer)
        try:
            async with asyncio.timeout(patience_s):
                return await answer
        except TimeoutError:
            raise Lost from None
        finally:
            self._asked.discard(answer)

    def kill(self) -> None:
        process, self.process, self.engine = self.process, None, None
        assert process is not None
        process.dead = True
        self._world.ledger.dead.add(process.name)
        self._remains.append(process)
        for answer in self._asked:
            if not answer.done():
                answer.set_exception(Lost())
        self._asked = set()

    async def start_again(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        if self.process is None:
            await self.start()

    async def stop(self, grace_s: float = 8.0) -> None:
        """As SIGTERM does it: afterwards it holds nothing."""
        engine, process = self.engine, self.process
        if engine is None or process is None:
            return
        self.leaving = True
        worker = engine._worker.name
        task = begin(process, engine.close(grace_s))
        await asyncio.wait([task], timeout=120)
        if self.process is not process:
            return  # it was killed meanwhile
        if not task.done():
            raise Broken(f"{process.name} does not stop")
        if task.exception() is not None and not isinstance(task.exception(), StoreError):
            raise Broken(f"{process.name} stopped with {task.exception()!r}")
        held = self._world.disk.db.execute("SELECT id FROM heads WHERE owner = ?", (worker,)).fetchall()
        if held and self._world.ledger.disturbed.get(process.name) is None:
            raise Broken(f"{process.name} has stopped and still holds {held}")
        self.kill()

    async def stop_and_start(self, grace_s: float) -> None:
        await self.stop(grace_s)
        await self.start_again(self._world.rng.random() * 3)


class WallClock:
    """The wall clock of the one machine: virtual time, and what sets it. It gives no notice, as no system does."""

    def __init__(self, loop: WorldLoop) -> None:
        self._loop = loop
        self._offset_ms = BEGIN_MS
        self._peak_ms = 0

    def now_ms(self) -> int:
        return int(self._loop.time() * 1000) + self._offset_ms

    def on_jump(self, callback: Callable[[], None]) -> None:
        pass

    def step(self, ms: int) -> None:
        self._peak_ms = self.highest_ms()
        self._offset_ms += ms

    def highest_ms(self) -> int:
        """That it ever showed."""
        return max(self._peak_ms, self.now_ms())


def _relay(done: asyncio.Task[T], answer: asyncio.Future[T]) -> None:
    if answer.done() or done.cancelled():
        done.cancelled() or done.exception()
        return
    error = done.exception()
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(done.result())
