"""One run, from claim to park or end: fact -> decide -> append -> signal -> launch. This is the loop to read.

The order that carries the promises:
  1. A fact arrives (an attempt ended, an answer, a timer).
  2. `decide` turns it into events; pure control nodes that become ready run right here and add theirs.
  3. ONE append commits all of it: the completion, its successors' starts, waits, consumed answers.
  4. Only then effects start, readers are woken, the run parks or ends.
A failed append poisons this object: it is dropped and the journal folded again. It is never patched.

With `durability: ahead`, 4 may come before 3 for blocks that change nothing outside: see `ahead.py`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from compiler.keys import NodeKey
from compiler.plan import Node
from executor.errors import Fenced, LimitExceeded, Unheard
from executor.kernel.core import commands as c
from executor.kernel.core import facts as f
from executor.kernel.core import messages as m
from executor.kernel.core.commands import commands_of
from executor.kernel.core.decide import ATTEMPT_ENDED
from executor.kernel.core.events import ErrorInfo
from executor.kernel.run.adoption import Taken
from executor.kernel.run.ahead import Ahead
from executor.kernel.run.attempt import Host
from executor.kernel.run.attempts import Attempts
from executor.kernel.run.children import cancel_of_orphan
from executor.kernel.run.deadlines import Deadlines
from executor.kernel.run.earlier import Earlier, earlier_of
from executor.kernel.run.inbox import Inbox
from executor.kernel.run.launch import Launcher
from executor.kernel.run.loaded import LoadedRun, Snapshots
from executor.kernel.run.move import move, translator
from executor.kernel.run.parts import Parts
from executor.kernel.run.recorder import Recorder
from executor.kernel.run.refused import staying
from executor.kernel.run.results import (
    SMALL_BYTES,
    Log,
    Payload,
    Result,
    StepNote,
    family_error,
    run_error,
    without_output,
)
from executor.kernel.run.snapshots import snapshot_of
from executor.kernel.run.wait_ends import Settling
from executor.kernel.store.run_rows import Append, Appended
from executor.kernel.store.statements import RunStatus
from executor.kernel.store.topics.snapshots import SnapshotRow

# Inline nodes run between two commits at most; a loop of pure nodes commits and yields every so often.
INLINE_BATCH_MAX = 256
# Fewer, when their outputs are large: what is not committed yet is in memory twice, and delays the writes of others.
INLINE_BATCH_BYTES = 1024 * 1024

# Bytes of outputs that cleanups may add in a run that has reached its limit, which may be why they run.
CLEANUP_BYTES = 1024 * 1024

_CANCELS = (f.CancelRequested, f.RunAborted)
_SETTLED = (f.WaitAnswered, f.WaitFailed, f.TimerFired, f.HandlerLeft)

Ended = Literal["parked", "finished", "stopped", "moved", "refused"]


class _Turn(Struct):
    """The decisions between two commits: the results and logs they come from, and the commands to carry out after it.
    `steps` are those among the logs; `taken` may take something over from an earlier run; `ends` are what waits
    for the append."""

    results: list[Result] = []
    logs: list[Log] = []
    inline: deque[c.RunNode] = field(default_factory=deque)
    taken: deque[c.RunNode] = field(default_factory=deque)
    commands: list[c.Command] = []
    ends: list[Settling] = []

    @property
    def steps(self) -> list[StepNote]:
        return [said for _, _, said, _ in self.logs if type(said) is StepNote]


class RunLoop:
    """Owns one run while its lease lasts. `drive` returns when the run leaves memory; it raises Fenced when the lease
    is lost. `attempts` are those that an earlier loop of the same lease has started. `adoption`: the run is created, or
    taken, by its first append."""

    def __init__(
        self, run: LoadedRun, parts: Parts, recorder: Recorder, attempts: Attempts, adoption: Taken[Any] | None = None
    ) -> None:
        self.id = run.id
        self.attempts = attempts
        self._run = run
        self._parts = parts
        self._plan = run.plan
        self._deciding = run.plan  # by this; when the process stops it is one that lets nothing more start
        self._state = run.state
        self._store = parts.store
        self._adoption = adoption
        self._watched = adoption.watched if adoption is not None else None
        self._recorder = recorder
        self._snapshots = Snapshots(run, snapshot_of)
        self._arrivals = attempts.arrivals
        self._results = attempts.arrivals.results
        self._ahead: Ahead | None = None
        if run.plan.settings.durability == "ahead":
            self._ahead = Ahead(run, parts.store, recorder, self._arrivals, self._committed_ahead)
        self._launcher = Launcher(Host(run, parts, self._ahead))
        border = self._launcher.host.border
        self._inbox = Inbox(run, parts, recorder, border, attempts.arrivals, is_empty=adoption is not None)
        self._deadlines: Deadlines | None = None  # most runs wait for no time
        self._earlier: Earlier | None = None
        self._stopping = False
        self._continues = False  # the run continues in another loop of the same lease, and its attempts with it
        self._held_at = self._held_bytes = 0

    # --- from outside, same thread ---

    def inbox_changed(self) -> None:
        self._inbox.changed()

    @property
    def may_continue(self) -> bool:
        """Returns True for a run that only a message can continue, or a time."""
        return self._state.parked

    def put_in_hand(self, message: bytes) -> None:
        """Set the message that the first append takes the run for."""
        self._inbox.put_in_hand(message)

    def set_timer(self, command: c.SetTimer) -> None:
        """Set a timer; its fact comes when it is due."""
        if self._deadlines is None:
            self._deadlines = Deadlines(self._run, self._parts, self._inbox, self._arrivals)
        self._deadlines.set(command)

    def end_with_family(self) -> None:
        """End this run: the root of its family was cancelled, or has ended."""
        if not self._state.is_cancelled:
            self._arrivals.add_first(cancel_of_orphan(self._now_ms()))

    def stop(self) -> None:
        """The process stops: start nothing more; `drive` returns when what runs has ended (or is cancelled). What
        becomes ready stays so, for the next owner: a start that is recorded and not made would count as a lost one."""
        self._stopping = True
        self._start_nothing()
        self._arrivals.changed.set()

    def _start_nothing(self) -> None:
        self._deciding = replace(self._plan, settings=replace(self._plan.settings, max_concurrency=0))

    @property
    def held_bytes(self) -> int:
        """Return the bytes of the outputs in memory. Measured again when many have been added since."""
        made = self._run.fold.bytes
        if made <= SMALL_BYTES:
            return made
        if made > self._held_at + SMALL_BYTES:
            self._held_at, self._held_bytes = made, self._run.fold.values.held_bytes()
        return self._held_bytes

    @property
    def root(self) -> str | None:
        return self._run.row.root_id

    # --- the loop ---

    async def drive(self, first: list[f.Fact]) -> Ended:
        """Drive the run. `first` are the facts recovery found (attempts lost), or a StartRequested for a journal that
        is empty."""
        self._results.extend(Result(fact, Payload()) for fact in first)
        ahead = self._ahead
        for fact in first:
            if isinstance(fact, f.AttemptLost):
                self._parts.meters.attempts.add((self._plan.nodes[fact.key[1]].type, "lost"))
        if ahead is not None and any(isinstance(fact, f.AttemptLost) for fact in first):
            ahead.lost()
        # The limit is on one stretch of activity: days spent waiting for people are not work. By the loop's clock: the
        # wall clock may be set by days, when a machine without a battery has started, and nothing took that long.
        limit_s = self._plan.settings.timeout_ms / 1000
        limit = asyncio.get_running_loop().call_later(limit_s, self._run_is_late)
        try:
            self._earlier = await earlier_of(self._parts, self._run)
            while True:
                if self._inbox.may_have_messages:
                    await self._inbox.read_if_changed()
                if ahead is not None:
                    ahead.look()
                if self._results or self._arrivals.logs or self._inbox.consumed:
                    if self._state.seq >= self._snapshots.due_seq:
                        if ahead is not None:
                            await ahead.write()
                        await self._snapshots.make()
                    ended = await self._turn()
                    if ended is not None:
                        return ended
                elif ahead is not None and ahead.holds and (self._inbox.migration or self._may_leave()):
                    await ahead.write()
                elif self._inbox.migration is not None:
                    if await self._migrate(*self._inbox.migration):
                        return "moved"
                elif self._may_leave():
                    if await self._leave():
                        return "parked" if self._state.parked else "stopped"
                else:
                    await self._arrivals.changed.wait()
                    self._arrivals.changed.clear()
        finally:
            limit.cancel()
            if self._deadlines is not None:
                self._deadlines.close()
            if ahead is not None:
                ahead.close()
            if not self._continues:
                self.attempts.cancel_all()

    async def _turn(self) -> Ended | None:
        """Everything that has arrived: decide, commit once, act."""
        turn = _Turn()
        await self._decide_all(turn)
        if self._ahead is not None and self._may_hold(self._ahead, turn):
            self._ahead.hold(turn.results)
        elif not await self._commit(turn):
            return "refused"
        if turn.logs:
            for note in turn.steps:
                note.stored()
        for end in turn.ends:
            end.settle(stored=True)
        if self._deciding is not self._plan and not self._stopping:  # enough was taken over for one append
            self._deciding = self._plan
            self._results.append(Result(f.Recovered(self._now_ms()), Payload()))
        for command in turn.inline:  # over the bound: their starts are committed, and they run in the next turn
            self._results.append(await self.attempts.run_inline(self._launcher, command))
        return "finished" if self._act(turn.commands) else None

    def _may_hold(self, ahead: Ahead, turn: _Turn) -> bool:
        inbox, noted = self._inbox.consumed, turn.logs and turn.steps
        waits = turn.inline or inbox or self._snapshots.is_made or noted or turn.ends
        return not waits and ahead.may_hold(turn.results, turn.commands)

    async def _commit(self, turn: _Turn) -> bool:
        """Commit what was decided, and everything that was held before. Returns False if it was refused."""
        append = self._recorder.pop_append(self._inbox.pop_consumed())
        if append is None:
            return True
        if (snapshot := self._snapshots.pop()) is not None and not append.finished:
            append = replace(append, snapshot=snapshot)
        ahead = self._ahead
        try:
            if ahead is not None:
                ahead.popped()
                await ahead.written()
            appended = await (self._adoption or self._store).append(append)
        except (Unheard, LimitExceeded) as error:
            held = self._recorder.only_held(append)
            if ahead is not None and held is not None:  # its attempts have begun
                appended = await self._store.append(held)
                ahead.stored(appended.seq)
                self._committed_ahead(held, appended)
            self._begin_again(turn, error)
            return False
        self._adoption = None
        if append.places is not None:
            left = {result.place.key for result in turn.results if result.place is not None}
            self._parts.places.release(left | self.attempts.limits_in_use() if append.finished else left)
        if ahead is not None:
            ahead.stored(appended.seq)
        await self._committed(append, appended)
        return True

    # --- decide ---

    async def _decide_all(self, turn: _Turn) -> None:
        if self._arrivals.logs:
            self._log(turn)
        while self._results:
            result = self._results.popleft()
            turn.results.append(result)
            self._decide(result, turn)
        if not (turn.inline or turn.taken):
            return
        left = INLINE_BATCH_MAX
        fold, most = self._run.fold, self._run.fold.bytes + INLINE_BATCH_BYTES
        while turn.taken or (turn.inline and left > 0 and fold.bytes < most):
            if turn.taken:
                left -= 1
                await self._take_over(turn.taken.popleft(), turn)
                if (left <= 0 or fold.bytes >= most) and self._deciding is self._plan:
                    self._start_nothing()
                continue
            if self._adoption is not None and _evaluates(self._plan.nodes[turn.inline[0].key[1]]):
                break  # who submits the run waits for the commit that creates it
            left -= 1
            result = await self.attempts.run_inline(self._launcher, turn.inline.popleft())
            self._log(turn)
            self._decide(result, turn)

    async def _take_over(self, command: c.RunNode, turn: _Turn) -> None:
        """Let a node that has started take over what it may, now that all before it is decided."""
        key, attempt = command.key, command.attempt
        if self._earlier is not None and (outcome := self._earlier.find(key, attempt)) is not None:
            steps, result = await self._earlier.read(outcome, key, self._now_ms())
            for event, output in steps:
                self._recorder.take_step(event, output)
            if result is not None:
                self._decide(result, turn)
                return
        (turn.inline if self._plan.nodes[key[1]].inline else turn.commands).append(command)

    def _log(self, turn: _Turn) -> None:
        """Record what attempts logged, before their results."""
        logs = self._arrivals.logs
        while logs:
            turn.logs.append(logs.popleft())
            key, attempt, said, stream = turn.logs[-1]
            if isinstance(said, StepNote):
                self._recorder.step(key, attempt, said)
            else:
                self._recorder.log(key, attempt, said, stream)

    def _decide(self, result: Result, turn: _Turn) -> None:
        limits, fold = self._parts.services.limits, self._run.fold
        output = result.payload.output
        over = 0 if output is None else fold.bytes + len(output) - limits.run_bytes
        if over > 0 and over > self._spare_bytes(result):
            error = run_error(limits)
            self._decide_one(Result(f.RunAborted(result.fact.at_ms, error), Payload()), turn)
            result = without_output(result, error)
        self._decide_one(result, turn)
        if fold.bytes > limits.run_bytes:  # the output of a container is known only now
            error = run_error(limits)
            self._decide_one(Result(f.RunAborted(result.fact.at_ms, error), Payload()), turn)

    def _spare_bytes(self, result: Result) -> int:
        in_cleanup = isinstance(result.fact, ATTEMPT_ENDED) and self._plan.in_cleanup(result.fact.key[0])
        return CLEANUP_BYTES if in_cleanup else 0

    def _decide_one(self, result: Result, turn: _Turn) -> None:
        events = self._recorder.decide(self._deciding, result)
        if isinstance(result.fact, _SETTLED):
            turn.ends += self.attempts.settling(events, self._state.seq - len(events) + 1)
        nodes = self._plan.nodes
        for command in commands_of(self._plan, self._state, events):
            if type(command) is c.RunNode and self._earlier is not None:
                turn.taken.append(command)
            elif type(command) is c.RunNode and nodes[command.key[1]].inline:
                turn.inline.append(command)
            else:
                turn.commands.append(command)

    # --- after the append ---

    async def _committed(self, append: Append, appended: Appended) -> None:
        self._publish(append)
        if append.finished or append.usage:
            self._parts.meters.committed(self._run.row, append)
        if append.notifications:
            self._parts.hub.messages.set()
        if append.alerts:
            self._parts.hub.alerts.set()
        if append.waits and not self._state.parked and any(wait.kind == "signal" for wait in append.waits):
            self._inbox.changed()  # the signal may be here; a run that parks looks for it as it leaves
        if append.next is not None:
            self._parts.wake(append.next.id)
        if append.children or append.posts or append.cancels:
            for run in {child.id for child in append.children} | {run for run, _ in (*append.posts, *append.cancels)}:
                self._parts.wake(run)
        if not append.finished and (appended.inbox_n > self._inbox.newest_n or appended.family is not None):
            await self._receive(appended)

    def _publish(self, append: Append) -> None:
        self._parts.hub.committed(self.id, append.records)
        if (tracing := self._parts.services.tracing) is not None:
            (tracing.run_ended if append.finished else tracing.run_grew)(self.id)
        if self._watched is not None:
            self._watched.add(append)

    async def _receive(self, appended: Appended) -> None:
        """Read messages committed before this append, so that a cancel stops nodes that just became ready."""
        await self._inbox.read_upto(appended.inbox_n)
        self._follow_family(appended)

    def _follow_family(self, appended: Appended) -> None:
        family, limits = appended.family, self._parts.services.limits
        if family is not None and family.over:
            self.end_with_family()
        elif family is not None and family.bytes > limits.family_bytes and not self._state.is_cancelled:
            self._arrivals.add_first(f.RunAborted(self._now_ms(), family_error(limits)))

    def _committed_ahead(self, append: Append, appended: Appended) -> None:
        """Handle a commit in the background: what was acted upon before is on disk."""
        self._publish(append)
        self._inbox.changed_upto(appended.inbox_n)
        self._follow_family(appended)

    def _begin_again(self, turn: _Turn, error: Unheard | LimitExceeded) -> None:
        """The append was refused, so nothing of `turn` has happened: the run is folded again from what is on disk, and
        the results of attempts wait for that. Those of the inbox and of timers come again by themselves."""
        for end in turn.ends:
            end.settle(stored=False)
        self._results.extendleft(reversed(staying(turn.results, error, self.attempts)))
        self._arrivals.logs.extendleft(reversed(turn.logs))
        self._continues = True

    def _act(self, commands: list[c.Command]) -> bool:
        """Carry out the commands after the commit. Returns True if the run has ended."""
        cancelled = bool(self._results) and any(isinstance(result.fact, _CANCELS) for result in self._results)
        starts: dict[NodeKey, int] = {}
        for command in commands:
            match command:
                case c.RunNode(key, attempt):
                    if self._state.running.get(key) == attempt:
                        starts[key] = attempt
                case c.SetTimer():
                    self.set_timer(command)
                case c.CancelNode(key, drains):
                    if key in starts:  # before it begins
                        self.attempts.refuse(key, starts.pop(key))
                    else:
                        self.attempts.cancel(key, drains)
                case c.Park():
                    pass  # `drive` leaves when nothing else has come in
                case c.Finish():
                    return True
        seq = self._state.seq
        for key, attempt in starts.items():
            if cancelled and not self._plan.in_cleanup(key[0]):
                self.attempts.refuse(key, attempt)
            else:
                self.attempts.start(self._launcher, key, attempt, seq)
        return False

    def _run_is_late(self) -> None:
        seconds = self._plan.settings.timeout_ms / 1000
        error = ErrorInfo("run_timeout", f"the run took longer than {seconds:g} s (settings.timeout_s)")
        self._arrivals.add(f.RunAborted(self._now_ms(), error))

    def _now_ms(self) -> int:
        return self._parts.clock.now_ms()

    # --- another plan ---

    async def _migrate(self, n: int, migrate: m.Migrate) -> bool:
        """Between two commits: nothing is decided meanwhile. False: the journal does not fit (any more)."""
        row = replace(self._run.row, seq=self._state.seq)
        plan = await move(self._store, row, self._plan, migrate, n, self._now_ms)
        self._inbox.migration = None
        if plan is None:
            self._inbox.consumed.append(n)
            return False
        self._parts.hub.grown(self.id)
        self.attempts.rekey(translator(self._plan, plan))
        self._continues = True
        return True

    # --- leaving memory ---

    def _may_leave(self) -> bool:
        if self._stopping:
            return not self.attempts
        due_ms = self._state.due_ms() if self._state.parked else None
        # A time that is due has its timer set, and its fact is on the way: a run that left would be claimed again.
        return self._state.parked and (due_ms is None or due_ms > self._now_ms())

    async def _leave(self) -> bool:
        """Free the lease. False: something arrived meanwhile, go on."""
        await self._snapshots.make_before_leaving()
        if self._state.parked:
            await self._inbox.match_signals()
            if self._results:
                return False
            released = await self._release("waiting", self._state.due_ms(), self._snapshots.pop())
            if released:
                self._parts.owned.parked.keep(self._run, self._recorder.at_ms)
        else:
            released = await self._release("running", self._now_ms(), self._snapshots.pop())
        if released:
            self._parts.hub.signal(self.id)  # the run's status changed, though its journal did not
        else:
            self._inbox.changed()
            row = await self._store.get_run(self.id)
            if row is None or row.epoch != self._run.row.epoch:
                raise Fenced
        return released

    async def _release(
        self, status: RunStatus, next_run_at_ms: int | None, snapshot: SnapshotRow | None = None
    ) -> bool:
        epoch, seq = self._run.row.epoch, self._recorder.appended_seq
        return await self._store.release(self.id, epoch, seq, next_run_at_ms, status, snapshot)


def _evaluates(node: Node) -> bool:
    return bool(node.code or node.policy.skip_if or node.policy.cache)
