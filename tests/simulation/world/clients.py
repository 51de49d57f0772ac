"""Who uses the world from outside: they ask twice, too early, too late, and again whenever they were told nothing.

A request is a task of one process and dies with it; the client then knows nothing and asks again, mostly elsewhere.
What a client was told is kept, to be compared with the database at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, field

from executor.errors import AlreadyAnswered, Conflict, NotFound, StoreError
from executor.kernel.run.links import purpose_of
from executor.kernel.store.run_rows import Record
from executor.kernel.store.statements import TERMINAL
from executor.open.engine import Engine
from executor.service.views import Submitted
from tests.simulation.world.script import CHILD, UNWIRED, Case
from tests.simulation.world.server import Lost
from tests.support.core.generator import ACTIONS
from tests.support.core.watch import Broken

if TYPE_CHECKING:
    from tests.simulation.world.world import World

T = TypeVar("T")

_OPEN_WAITS = "SELECT w.run_id, w.id, w.node, w.path, w.kind, w.on_expire, r.workflow FROM waits AS w JOIN runs AS r"
_PENDING = f"{_OPEN_WAITS} ON r.id = w.run_id WHERE w.status = 'pending' AND w.kind NOT IN ('timer', 'child')"
_ANSWER_IS_THERE = "SELECT 1 FROM waits WHERE run_id = ?1 AND id = ?2 AND answered_by = ?3"
_CANCEL_IS_THERE = """
SELECT 1 FROM inbox WHERE run_id = ?1 AND instr(fact, '"type":"cancel"')
 UNION ALL SELECT 1 FROM events WHERE run_id = ?1 AND type IN ('run.cancelling', 'run.finished')"""
_PATIENCE_S = 30.0
_HASTE = 60  # times


class Told(Struct):
    """What clients were told. `answers`: who was told to have answered a wait; `signals`: by run and dedupe key how
    often the answer was that it is new; `runs`: by idempotency key; `transcripts`: by run what each follower got."""

    runs: dict[str, set[str]] = field(default_factory=dict)
    all_runs: set[str] = field(default_factory=set)
    answers: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    signals: dict[tuple[str, str], int] = field(default_factory=dict)
    cancels: dict[str, float] = field(default_factory=dict)
    answered_s: dict[tuple[str, str], float] = field(default_factory=dict)
    transcripts: dict[str, list[list[Record]]] = field(default_factory=dict)


class Clients:
    def __init__(self, world: World, rng: Random) -> None:
        self._world = world
        self._rng = rng
        self.told = Told()
        self.tasks: list[asyncio.Task[Any]] = []
        self._at_work: set[tuple[str, str]] = set()  # waits that a person is about to answer
        self._names = 0
        self.something_opened = asyncio.Event()

    async def ask(self, what: Callable[[Engine], Awaitable[T]]) -> T:
        """Of any process. Raises Lost, and what the product raises."""
        await asyncio.sleep(self._rng.random() * self._rng.choice((0, 0.2)))
        return await self._world.ask(what, _PATIENCE_S)

    async def insist(self, what: Callable[[Engine], Awaitable[T]]) -> T:
        """Until there is an answer; when told, perhaps once more."""
        while True:
            try:
                answer = await self.ask(what)
                break
            except (Lost, StoreError):
                await asyncio.sleep(0.1 + self._rng.random() * 2)
        if self._rng.random() < self._world.faults.twice:
            self._begin(self._again(what))
        return answer

    async def _again(self, what: Callable[[Engine], Awaitable[Any]]) -> None:
        with contextlib.suppress(Lost, StoreError, AlreadyAnswered):
            await self.ask(what)

    def _begin(self, what: Any) -> None:
        self.tasks.append(self._world.begin(what))

    def _there(self, what: str, query: str, *values: str) -> None:
        """No client gets anything that is not on disk."""
        if not self._world.disk.db.execute(query, values).fetchall():
            self._world.complain(f"{what} is acknowledged, and is not on disk: {values}")

    # --- runs

    async def submit(self, case: Case, number: int) -> None:
        """With an idempotency key, at times from two places at once."""
        await asyncio.sleep(self._rng.random() * (0.5 if number == 0 else 8))
        variant = 0 if number == 0 else self._rng.randrange(2)
        key = f"{case.name} {number}"

        async def once(engine: Engine) -> Submitted:
            submitted = await engine.submit(case.documents[variant], idempotency_key=key)
            self._there("a run", "SELECT 1 FROM runs WHERE id = ?1", submitted.run)
            self._world.variants[submitted.run] = variant
            self.told.runs.setdefault(key, set()).add(submitted.run)
            self.told.all_runs.add(submitted.run)
            return submitted

        if self._rng.random() < self._world.faults.twice:
            self._begin(self._again(once))
        run = (await self.insist(once)).run
        for _ in range(self._rng.choice((1, 1, 3))):
            self._begin(self.follow(run, self._rng.random() * self._rng.choice((0, 0, 9))))
        if self._rng.random() < self._world.faults.cancel:
            self._begin(self.cancel(run))
        self._begin(self.send_early(case, run))
        if self._rng.random() < 0.5:
            self._begin(self.hasten(run))

    async def cancel(self, run: str) -> None:
        self._world.ledger.looks_at_cancels = True
        await asyncio.sleep(self._rng.random() * 12)

        async def once(engine: Engine) -> bool:
            posted = await engine.cancel(run)
            if posted:
                self._there("a cancel", _CANCEL_IS_THERE, run)
                self.told.cancels.setdefault(run, self._world.loop.time())
            return posted

        await self.insist(once)

    async def hasten(self, run: str) -> None:
        """Does not let its blocks wait for their next attempts."""
        for _ in range(_HASTE):
            await asyncio.sleep(self._rng.random() * 0.4)
            waiting = sorted(key for key in self._world.ledger.retries if key[0] == run)
            if waiting:
                _, node, path = self._rng.choice(waiting)
                with contextlib.suppress(Lost, StoreError, Conflict):
                    await self.ask(partial(self._retry_now, run, f"{node}@{path}" if path else node))

    async def _retry_now(self, run: str, key: str, engine: Engine) -> None:
        row, plan = await engine.lifecycle._run(run)
        if row.status not in TERMINAL:  # of a run that has ended it would make another one
            await engine.lifecycle._retry_now(row, plan, key)

    async def follow(self, run: str, after_s: float) -> None:
        """The whole journal, whatever breaks off in between."""
        await asyncio.sleep(after_s)
        got: list[Record] = []
        self.told.transcripts.setdefault(run, []).append(got)
        world = self._world

        async def read(engine: Engine) -> None:
            quiet_s = world.loop.time()
            process = world.ledger.owners[engine._worker.name]
            async for records in engine.follow(run, got[-1].seq if got else 0):
                for record in records:
                    if (run, record.seq) not in world.ledger.committed_s:
                        world.complain(f"event {record.seq} of run {run} was written without the row of its run")
                        return
                    late_s = world.loop.time() - max(world.ledger.committed_s[run, record.seq], quiet_s)
                    if record.seq != (got[-1].seq if got else 0) + 1:
                        world.complain(f"a follower of run {run} got event {record.seq} behind {len(got)}")
                    world.told_late(run, record.seq, late_s, world.ledger.committed_by[run, record.seq] == process)
                    got.append(record)
                await asyncio.sleep(self._rng.random() * 0.2)
                quiet_s = world.loop.time()

        while not got or got[-1].type != "run.finished":
            try:
                await self._world.ask(read, 1e9)
            except (Lost, StoreError):
                await asyncio.sleep(0.1 + self._rng.random())
            else:
                if not got or got[-1].type != "run.finished":
                    world.complain(f"a follower of run {run} came to an end behind event {len(got)}")
                    return

    # --- waits and signals

    async def answer_all(self) -> None:
        """Looks at what waits, and has a person answer it some time."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._rng.random() * 2):
                    await self.something_opened.wait()
            self.something_opened.clear()
            for run, wait, node, path, kind, on_expire, workflow in self._world.disk.db.execute(_PENDING).fetchall():
                if (run, wait) in self._at_work:
                    continue
                act = None if workflow == CHILD else self._world.cases[workflow].act(node, path)
                if act is not None and kind != "attention" and act.wait == "expired" and on_expire not in ACTIONS:
                    continue  # according to the table it is not to be answered
                self._at_work.add((run, wait))
                for _ in range(2 if self._rng.random() < self._world.faults.twice else 1):
                    self._begin(self._answer(run, wait, node, path, kind, workflow))

    async def _answer(self, run: str, wait: str, node: str, path: str, kind: str, workflow: str) -> None:
        await asyncio.sleep(self._rng.random() * self._rng.choice((0, 1, 9)))  # at once: its run is about to park
        self._names += 1
        by = f"client {self._names}"
        if kind == "signal":
            await self._signal(run, wait.rpartition("!")[0])
            return
        action, fields = self._reply(run, node, path, kind, workflow)
        asked = 0

        async def once(engine: Engine) -> None:
            nonlocal asked
            asked += 1
            token = engine.parts.links.token(run, wait, purpose_of(kind))
            if kind == "webhook":
                await engine.callbacks.receive(token, {"by": by}, {"user-agent": by})
            else:
                await engine.answer(token, fields, action, by)
            self._there("an answer", _ANSWER_IS_THERE, run, wait, by)
            self.told.answers.setdefault((run, wait), set()).add(by)
            self.told.answered_s.setdefault((run, wait), self._world.loop.time())

        try:
            await self.insist(once)
        except AlreadyAnswered:  # by another client, by its expiry, or by this client, whose answer was lost
            if asked == 1 and self._world.disk.db.execute(_ANSWER_IS_THERE, (run, wait, by)).fetchall():
                self._world.complain(f"{by} answered wait {wait} of run {run}, and was told that another one did")
        except NotFound:
            self._world.complain(f"wait {wait} of run {run} is pending, and its link is not known")

    def _reply(self, run: str, node: str, path: str, kind: str, workflow: str) -> tuple[str | None, dict[str, Any]]:
        """What fits the table. For a lost attempt the answer is true: what the block comes to in any case."""
        case = None if workflow == CHILD else self._world.cases[workflow]
        if kind == "attention":
            if case is None:
                return "retry", {}
            act, block = case.act(node, path), case.block(node)
            hopeless = act.fails and (not act.retryable or act.fails >= block.max_attempts)
            if hopeless and self._rng.random() < 0.3:
                return "fail", {}
            if block.kind == "plain" and not (hopeless or act.skip) and self._rng.random() < 0.3:
                return "done", {"output": {"by hand": True, "label": ""}}
            return "retry", {}
        if kind == "form":
            return None, {"fine": True}
        return (UNWIRED if case is None else case.action(node, path)), {}

    async def send_early(self, case: Case, run: str) -> None:
        """Signals that come before anything waits for them."""
        for label in sorted(case.verdict.decided):
            node, _, path = label.partition("@")
            if ":" in node or case.block(node).kind != "wait" or case.act(node, path).wait != "answered":
                continue
            if case.kind(node, path) == "signal" and self._rng.random() < 0.3:
                await asyncio.sleep(self._rng.random() * 3)
                await self._signal(run, label)

    async def _signal(self, run: str, label: str) -> None:
        """One dedupe key for each key that waits: however often it is sent, it counts once."""

        async def once(engine: Engine) -> None:
            try:
                _, new = await engine.signal(
                    run, "go", {"label": label}, correlation=label, dedupe_key=label, by="the clock"
                )
            except Conflict as error:
                if error.code != "run_ended":
                    raise
                return
            self._there("a signal", "SELECT 1 FROM signals WHERE run_id = ?1 AND dedupe_key = ?2", run, label)
            self.told.signals[run, label] = self.told.signals.get((run, label), 0) + new

        await self.insist(once)

    # --- when all is over

    async def too_late(self) -> None:
        """Nothing that comes now may change anything."""
        rows = self._world.disk.db.execute("SELECT run_id, id, kind FROM waits WHERE kind IN ('approval', 'form')")
        for run, wait, kind in rows.fetchall()[:3]:
            try:
                await self.insist(
                    lambda engine, run=run, wait=wait, kind=kind: engine.answer(  # type: ignore[misc]
                        engine.parts.links.token(run, wait, purpose_of(kind)), {}, None, "too late"
                    )
                )
            except AlreadyAnswered:
                continue
            raise Broken(f"wait {wait} of run {run} was answered after all was over")
