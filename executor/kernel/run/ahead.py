"""The turns of a run with `durability: ahead` that take effect before they are on disk.

Blocks that change nothing outside may start before the commit that records why. Such a turn of the loop is *held*: its
events stay in the recorder and are written a moment later, or in the append of the next turn that has to wait for its
commit, whichever comes first. At most one append of a run is under way, so appends are in order by themselves. If one
fails the run is dropped and recovers from its journal: what was held has not happened, and its attempts run again with
the same idempotency keys. See docs/decisions/0019-durability-ahead.md.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from compiler.plan import Node
from executor.errors import Fenced
from executor.kernel.core import commands as c
from executor.kernel.core.decide import ATTEMPT_ENDED
from executor.kernel.core.state import RunPhase
from executor.kernel.read.live_texts import DELTAS_MAX
from executor.kernel.run.loaded import LoadedRun
from executor.kernel.run.recorder import Recorder
from executor.kernel.run.results import Arrivals, Result
from executor.kernel.store.run_rows import Append, Appended
from executor.kernel.store.topics.store import Store

# Turns that are not on disk, and bytes of outputs that are not on their way there: as much may have to run again.
TURNS_MAX = 64
BYTES_MAX = 1024 * 1024
# Held turns are written after this time at the latest, or when they are half as many as permitted.
HOLD_S = 0.01


def may_run_ahead(node: Node) -> bool:
    """Returns True if attempts of this node may start before their start is on disk. Such a start leaves no trace if
    the process dies: the attempt is not lost, it is made again. So it must change nothing outside, and the author must
    not want a person to decide about it. The cache is excluded because it depends on what is on disk."""
    return node.effect != "write" and node.policy.on_lost == "retry" and node.policy.cache is None


class Ahead:
    """The held turns of one run while it is in memory. `committed` is called after each append that is made here."""

    def __init__(
        self,
        run: LoadedRun,
        store: Store,
        recorder: Recorder,
        arrivals: Arrivals,
        committed: Callable[[Append, Appended], None],
    ) -> None:
        self._run = run
        self._store = store
        self._recorder = recorder
        self._arrivals = arrivals
        self._committed = committed
        self._may_start = [may_run_ahead(node) for node in run.plan.nodes]
        self._strict = 0  # turns that are not held
        self._turns = self._turns_under_way = 0
        self._bytes = run.fold.bytes  # of outputs when something was last written
        self._is_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._under_way: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._stored_seq = recorder.appended_seq
        self._after: deque[tuple[int, Callable[[], None]]] = deque(maxlen=DELTAS_MAX)
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._closed = False

    def lost(self) -> None:
        """Attempts of the run were lost with their process. As many turns as may have been held then are not held now:
        if a block takes its process down, its start is on disk the next time, and its losses are counted."""
        self._strict = TURNS_MAX

    @property
    def holds(self) -> bool:
        return self._turns > 0

    def may_hold(self, results: Sequence[Result], commands: Sequence[c.Command]) -> bool:
        if self._strict:
            self._strict -= 1
            return False
        return (
            self._recorder.has_only_events
            and self._run.state.phase is RunPhase.RUNNING
            and self._turns + self._turns_under_way < TURNS_MAX
            and self._run.fold.bytes - self._bytes < BYTES_MAX
            and all(self._may_be_followed(result) for result in results)
            and all(isinstance(command, c.RunNode) and self._may_start[command.key[1]] for command in commands)
        )

    def _may_be_followed(self, result: Result) -> bool:
        """Not what came from outside the run, as its first turn does: it is on disk before a block starts. And not what
        an attempt did that must not be made again unasked."""
        fact = result.fact
        return isinstance(fact, ATTEMPT_ENDED) and self._run.plan.nodes[fact.key[1]].policy.on_lost == "retry"

    def hold(self, results: Sequence[Result]) -> None:
        self._turns += 1
        self._recorder.hold()
        if self._turns >= TURNS_MAX // 2 or any(self._is_effect(result) for result in results):
            self._is_due = True
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(HOLD_S, self._held_long)

    def _is_effect(self, result: Result) -> bool:
        """Returns True for a result of a block that writes: it would run again after a crash, so it is committed at
        once."""
        key = getattr(result.fact, "key", None)
        return key is not None and self._run.plan.nodes[key[1]].effect == "write"

    def _held_long(self) -> None:
        self._timer = None
        self._write_soon()

    def _write_soon(self) -> None:
        if self._turns:
            self._is_due = True
            self._arrivals.changed.set()

    # --- writing

    def look(self) -> None:
        """Between two turns: write what is due. Raises what an append has failed with."""
        if self._failure is not None:
            raise self._failure
        if self._is_due and (self._under_way is None or self._under_way.done()):
            self._begin()

    async def write(self) -> None:
        """Write what is held and wait until all is on disk. Raises the error of a failed append."""
        await self.written()
        if self._turns:
            self._begin()
            await self.written()

    async def written(self) -> None:
        """Wait for the append under way, if there is one. Raises the error of a failed append."""
        if self._under_way is not None and not self._under_way.done():
            await asyncio.shield(self._under_way)  # the append is made even if the caller is cancelled
        if self._failure is not None:
            raise self._failure

    def popped(self) -> None:
        """Note that what was held is now part of an append that the loop makes."""
        self._turns = 0
        self._is_due = False
        self._bytes = self._run.fold.bytes

    def _begin(self) -> None:
        append = self._recorder.pop_append(())
        if append is None:  # the turns that were held had only facts that came too late
            self.popped()
            return
        self._turns_under_way = self._turns
        self.popped()
        self._under_way = asyncio.create_task(self._write(append), name=f"{self._run.id}:ahead")

    async def _write(self, append: Append) -> None:
        try:
            appended = await self._store.append(append)
        except Exception as error:
            self._failure = error
            self._arrivals.changed.set()
        else:
            self._turns_under_way = 0
            self.stored(appended.seq)
            self._committed(append, appended)
            if self._is_due:
                self._arrivals.changed.set()

    # --- what attempts that are ahead wait for

    def stored(self, seq: int) -> None:
        self._stored_seq = seq
        for _ in range(len(self._after)):
            upto, call = self._after.popleft()
            if upto <= seq:
                call()
            else:
                self._after.append((upto, call))
        for reached, upto in self._waiting.items():
            if upto <= seq and not reached.done():
                reached.set_result(None)

    def after(self, seq: int, call: Callable[[], None]) -> None:
        """Call it when event `seq` is on disk; never if that does not come to be, or too many wait."""
        if seq <= self._stored_seq:
            call()
        else:
            self._after.append((seq, call))

    async def reached(self, seq: int) -> None:
        """Wait until event `seq` is on disk. Raises Fenced if the run leaves memory before."""
        if seq <= self._stored_seq:
            return
        if self._closed:
            raise self._dropped()
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[reached] = seq
        self._write_soon()
        try:
            await reached
        finally:
            del self._waiting[reached]

    def close(self) -> None:
        """The run leaves memory, or continues in another loop. What is held is dropped."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for reached in self._waiting:
            if not reached.done():
                reached.set_exception(self._dropped())

    def _dropped(self) -> Fenced:
        return Fenced(f"run {self._run.id} was dropped before what this depends on was on disk", run=self._run.id)
