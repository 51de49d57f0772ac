"""One run, from claim to park or end: fact -> decide -> append -> signal -> launch. This is the loop to read.

The order that carries the promises:
  1. A fact arrives (an attempt ended, an answer, a timer).
  2. `decide` turns it into events; pure control nodes that become ready run right here and add theirs.
  3. ONE append commits all of it: the completion, its successors' starts, waits, consumed answers.
  4. Only then effects start, readers are woken, the run parks or ends.
A failed append poisons this object: it is dropped and the journal folded again. It is never patched.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

import orjson
from msgspec.structs import replace

from compiler.keys import NodeKey, parse_key
from compiler.plan import Plan
from executor.answers import answer_output, refusal_error, withdrawal_error
from executor.core import commands as c
from executor.core import facts as f
from executor.core import messages as m
from executor.core.decide import ATTEMPT_ENDED, CANCELLED, commands_of, route_of_action
from executor.core.events import ErrorInfo
from executor.core.state import RunPhase, State
from executor.errors import CorruptJournal, Fenced, LimitExceeded, StoreError, Unheard
from executor.journal.reader import load_plan
from executor.runtime import attention, bounds
from executor.runtime.admission import SMALL_BYTES
from executor.runtime.attempt_log import Stream
from executor.runtime.children import cancel_of_orphan, error_of_end
from executor.runtime.launch import CANCEL_GRACE_S, Launcher, Payload, Result
from executor.runtime.move import carried, fit, move_append, translator
from executor.runtime.recorder import Recorder
from executor.runtime.timers import Timers
from executor.runtime.turns import Turns
from executor.services import RunLimits
from executor.store.contract import Store
from executor.store.rows import Appended, Move, RunRow, RunStatus
from executor.values.fold import Fold
from executor.values.payload import encode as encode_payload

log = logging.getLogger("weft.run")

# Inline nodes run between two commits at most; a loop of pure nodes commits and yields every so often.
INLINE_BATCH_MAX = 256
# Fewer, when they put out much: what is not committed yet is in memory twice, and keeps the writer from others.
INLINE_BATCH_BYTES = 1024 * 1024
RETRY_EXPIRY_MS = 1_000

Ended = Literal["parked", "finished", "stopped", "moved", "refused"]


class RunLoop:
    """Owns one run while its lease lasts. `drive` returns when the run leaves memory; it raises Fenced when the lease
    is lost."""

    def __init__(
        self,
        *,
        row: RunRow,
        plan: Plan,
        state: State,
        fold: Fold,
        launcher: Launcher,
        recorder: Recorder,
        store: Store,
        timers: Timers,
        now_ms: Callable[[], int],
        signal: Callable[[str], None],
        messages_written: Callable[[], None] = lambda: None,
        wake: Callable[[str], None] = lambda run: None,
        limits: RunLimits | None = None,
        turns: Turns | None = None,
    ) -> None:
        self.id = row.id
        self._row = row
        self._epoch = row.epoch
        self._plan = plan
        self._deciding = plan  # by this; once the process goes down it is one that lets nothing more start
        self._state = state
        self._fold = fold
        self._launcher = launcher
        self._recorder = recorder
        self._store = store
        self._timers = timers
        self._now_ms = now_ms
        self._signal = signal
        self._messages_written = messages_written
        self._wake_other = wake
        self._limits = limits or RunLimits()
        self._turns = turns or Turns()

        self._held_at = self._held_bytes = 0

        self._results: deque[Result] = deque()
        self._said: deque[tuple[NodeKey, int, str, Stream]] = deque()
        self._wake = asyncio.Event()
        self._inbox_may_have_facts = True
        self._inbox_n = 0  # of the newest fact that has been read, or that is sure to be read
        self._stopping = False
        self._tasks: dict[NodeKey, asyncio.Task[None]] = {}
        self._told_to_stop: set[NodeKey] = set()  # of those tasks, the ones that were cancelled
        self._timer_numbers: set[int] = set()
        self._consumed_inbox: list[int] = []
        self._expiries: set[asyncio.Task[None]] = set()
        self._move: tuple[int, m.Migrate] | None = None  # inbox number and message of a wish to change the plan
        self._moved_to: Plan | None = None
        self._heir: tuple[RunLoop, Callable[[NodeKey], NodeKey]] | None = None

    # --- from outside, same thread ---

    def inbox_changed(self) -> None:
        """Something may be in the inbox."""
        self._inbox_may_have_facts = True
        self._wake.set()

    def end_with_family(self) -> None:
        """The root of its family was cancelled, or has ended: so does this run."""
        if self._ends_not_yet:
            self._results.appendleft(Result(cancel_of_orphan(self._now_ms()), Payload()))
            self._wake.set()

    def stop(self) -> None:
        """The process is going down: start nothing more; `drive` returns when what runs has ended (or is
        cancelled). What becomes ready stays so, for the next owner: a start that is recorded and not made would be
        taken for a lost one."""
        self._stopping = True
        self._deciding = replace(self._plan, settings=replace(self._plan.settings, max_concurrency=0))
        self._wake.set()

    @property
    def held_bytes(self) -> int:
        """Of the outputs that it holds. Looked at anew when it has put out much since."""
        made = self._fold.bytes
        if made <= SMALL_BYTES:
            return made
        if made > self._held_at + SMALL_BYTES:
            self._held_at, self._held_bytes = made, self._fold.values.held_bytes()
        return self._held_bytes

    @property
    def _ends_not_yet(self) -> bool:
        return self._state.phase is not RunPhase.CANCELLING

    @property
    def root(self) -> str | None:
        return self._row.root_id

    @property
    def busy(self) -> bool:
        return bool(self._tasks)

    # --- the loop ---

    async def drive(self, first: list[f.Fact]) -> Ended:
        """`first`: the facts recovery found (attempts lost), or a StartRequested for a journal that is empty."""
        self._results.extend(Result(fact, Payload()) for fact in first)
        # The limit is on one stretch of activity: days spent waiting for people are not work. By the loop's clock: the
        # wall clock may be set by days, when a machine without a battery has started, and nothing took that long.
        limit_s = self._plan.settings.timeout_ms / 1000
        limit = asyncio.get_running_loop().call_later(limit_s, self._run_is_late)
        try:
            while True:
                if self._inbox_may_have_facts:
                    self._inbox_may_have_facts = False
                    await self._read_inbox()
                if self._results or self._said or self._consumed_inbox:
                    await self._turns.turn()
                    ended = await self._turn()
                    if ended is not None:
                        return ended
                elif self._move is not None:
                    if await self._move_on(*self._move):
                        return "moved"
                elif self._may_leave():
                    if await self._leave():
                        return "parked" if self._state.parked else "stopped"
                else:
                    await self._wake.wait()
                    self._wake.clear()
        finally:
            limit.cancel()
            self._drop()

    async def _turn(self) -> Ended | None:
        """All facts that are here: decide, commit once, act."""
        after: list[c.Command] = []
        inline: deque[c.RunNode] = deque()
        results: list[Result] = []
        said: list[tuple[NodeKey, int, str, Stream]] = []
        self._log(said)
        while self._results:
            results.append(self._results.popleft())
            self._decide(results[-1], after, inline)
        budget = INLINE_BATCH_MAX
        made = self._fold.bytes
        while inline and budget and self._fold.bytes - made < INLINE_BATCH_BYTES:
            budget -= 1
            command = inline.popleft()
            result = await self._run_inline(command)
            self._log(said)
            self._decide(result, after, inline)
        append = self._recorder.take(self._state, tuple(self._consumed_inbox))
        self._consumed_inbox.clear()
        if append is not None:
            try:
                appended = await self._store.append(append)
            except (Unheard, LimitExceeded) as error:
                self._said.extendleft(reversed(said))
                self._begin_again(results, error)
                return "refused"
            self._signal(self.id)
            if append.notifications:
                self._messages_written()
            if not self._state.parked and any(wait.kind == "signal" for wait in append.waits):
                self._inbox_may_have_facts = True  # what it waits for may be here; a run that parks looks as it leaves
            for run in {child.id for child in append.children} | {run for run, _ in (*append.posts, *append.cancels)}:
                self._wake_other(run)
            if not append.finished:
                await self._hear(appended)
        for command in inline:  # over budget: they are committed as started, and go on in the next turn
            self._results.append(await self._run_inline(command))
        return "finished" if self._act(after) else None

    async def _hear(self, appended: Appended) -> None:
        """What others have committed before this commit: read now, so that what it made ready does not start any more
        if it was a cancel."""
        if appended.inbox_n > self._inbox_n:
            self._inbox_n = appended.inbox_n
            self._inbox_may_have_facts = False
            await self._read_inbox()
        family = appended.family
        if family is not None and family.over:
            self.end_with_family()
        elif family is not None and family.bytes > self._limits.family_bytes and self._ends_not_yet:
            aborted = f.RunAborted(self._now_ms(), bounds.family_error(self._limits))
            self._results.appendleft(Result(aborted, Payload()))

    def _begin_again(self, results: list[Result], error: Unheard | LimitExceeded) -> None:
        """The append was refused, so nothing of `results` has happened: the run is folded anew from what is on disk,
        and `hand_over` gives it what attempts brought. What came from the inbox or a timer comes again by itself."""
        if isinstance(error, LimitExceeded):
            results = [_without_child(result, error) for result in results]
        kept = [result for result in results if isinstance(result.fact, (*ATTEMPT_ENDED, f.RunAborted))]
        self._results.extendleft(reversed(kept))
        self._moved_to = self._plan

    def _decide(self, result: Result, after: list[c.Command], inline: deque[c.RunNode]) -> None:
        most, output = self._limits.run_bytes, result.payload.output
        if output is not None and self._fold.bytes + len(output) > most:
            error = bounds.run_error(self._limits)
            self._decide_one(Result(f.RunAborted(result.fact.at_ms, error), Payload()), after, inline)
            result = bounds.without_output(result, error)
        self._decide_one(result, after, inline)
        if self._fold.bytes > most:  # what a container puts out is known when it does
            error = bounds.run_error(self._limits)
            self._decide_one(Result(f.RunAborted(result.fact.at_ms, error), Payload()), after, inline)

    def _decide_one(self, result: Result, after: list[c.Command], inline: deque[c.RunNode]) -> None:
        events = self._recorder.decide(self._deciding, self._state, result)
        for command in commands_of(self._plan, self._state, events):
            if isinstance(command, c.RunNode) and self._plan.nodes[command.key[1]].inline:
                inline.append(command)
            else:
                after.append(command)

    def _log(self, said: list[tuple[NodeKey, int, str, Stream]]) -> None:
        """What attempts said goes before what they brought."""
        while self._said:
            said.append(self._said.popleft())
            self._recorder.log(self._plan, self._state, *said[-1])

    async def _run_inline(self, command: c.RunNode) -> Result:
        key = command.key
        node = self._plan.nodes[key[1]]
        turn = count = 0
        if node.sentinel == "end":
            container = self._state.containers.get((key[0], node.body))
            if container is not None:
                turn, count = container.opened, container.count
        return await self._launcher.run(key, command.attempt, self._state.seq, self._keep, turn, count)

    def _act(self, commands: list[c.Command]) -> bool:
        """After the commit. True when the run has ended."""
        cancelled = any(isinstance(result.fact, f.CancelRequested | f.RunAborted) for result in self._results)
        for command in commands:
            match command:
                case c.RunNode():
                    if self._state.running.get(command.key) == command.attempt:
                        self._launch(command)
                        if cancelled:
                            self._cancel(command.key)  # before it begins
                case c.SetTimer():
                    self.set_node_timer(command)
                case c.CancelNode():
                    self._cancel(command.key)
                case c.Park():
                    pass  # `drive` leaves when nothing else has come in
                case c.Finish():
                    return True
        return False

    # --- attempts ---

    def _launch(self, command: c.RunNode) -> None:
        key = command.key
        task = asyncio.create_task(self._attempt(command, self._state.seq), name=f"{self.id}:{key[1]}")
        task.add_done_callback(lambda done: self._attempt_gone(command, done))
        self._tasks[key] = task

    def _attempt_gone(self, command: c.RunNode, task: asyncio.Task[None]) -> None:
        """One that was cancelled before it began had no chance to say so."""
        if task.cancelled():
            gone = f.NodeErred(self._now_ms(), command.key, command.attempt, CANCELLED)
            self._attempt_ended(command.key, Result(gone, Payload()))

    async def _attempt(self, command: c.RunNode, seq: int) -> None:
        """`seq`: of the commit that its start is in."""
        await self._turns.turn()
        self._attempt_ended(command.key, await self._launcher.run(command.key, command.attempt, seq, self._keep))

    def _keep(self, key: NodeKey, attempt: int, message: str, stream: Stream) -> None:
        """What an attempt said goes to the journal with the next commit."""
        if self._heir is not None:
            heir, translate = self._heir
            heir._keep(translate(key), attempt, message, stream)
            return
        self._said.append((key, attempt, message, stream))
        self._wake.set()

    def _attempt_ended(self, key: NodeKey, result: Result) -> None:
        if self._heir is not None:
            heir, translate = self._heir
            heir._attempt_ended(translate(key), carried(result, translate))
            return
        self._tasks.pop(key, None)
        self._told_to_stop.discard(key)
        self._results.append(result)
        self._wake.set()

    def _cancel(self, key: NodeKey) -> None:
        task = self._tasks.get(key)
        if task is None or key in self._told_to_stop:  # told again it would be interrupted while it cleans up
            return
        task.cancel()
        self._give_grace(key, task)

    def _give_grace(self, key: NodeKey, task: asyncio.Task[None]) -> None:
        self._told_to_stop.add(key)
        attempt = self._state.running.get(key, 0)
        asyncio.get_running_loop().call_later(CANCEL_GRACE_S, self._give_up, key, attempt, task)

    def _give_up(self, key: NodeKey, attempt: int, task: asyncio.Task[None]) -> None:
        if self._tasks.get(key) is not task:
            return
        del self._tasks[key]
        self._told_to_stop.discard(key)
        error = ErrorInfo("cancelled", f"the handler did not stop within {CANCEL_GRACE_S:g} s and was abandoned")
        self._results.append(Result(f.NodeErred(self._now_ms(), key, attempt, error), Payload()))
        self._wake.set()

    # --- time ---

    def _set_timer(self, due_ms: int, callback: Callable[[], None]) -> None:
        number = 0

        def fire() -> None:
            self._timer_numbers.discard(number)
            callback()

        number = self._timers.set(due_ms, fire)
        self._timer_numbers.add(number)

    def set_node_timer(self, command: c.SetTimer) -> None:
        """Deliver a retry, a timer wait or an expiry when it is due."""
        self._set_timer(command.due_ms, lambda: self._due(command))

    def _due(self, command: c.SetTimer) -> None:
        key = command.key
        wait = self._state.waits.get(key)
        if wait is not None and wait.due_ms != command.due_ms:
            return  # of the retry that led to this attempt, which began sooner; the wait has a timer of its own
        if wait is not None and wait.attempt == command.attempt and wait.kind != "timer":
            # An answer may be on its way: the row decides who was first, and the inbox tells us.
            wait_id = self._recorder.wait_id(key, wait.attempt)
            task = asyncio.create_task(self._expire(command, wait_id, by_row=wait.kind != "signal"))
            self._expiries.add(task)
            task.add_done_callback(self._expiries.discard)
            return
        at_ms = max(self._now_ms(), command.due_ms)
        payload = Payload()
        if wait is not None:
            output = {"status": "completed", "due_ms": command.due_ms, "resumed_ms": at_ms}
            payload = Payload(encode_payload(output), self._recorder.assigned(key, output))
        self._results.append(Result(f.TimerFired(at_ms, key, command.attempt), payload))
        self._wake.set()

    async def _expire(self, command: c.SetTimer, wait_id: str, by_row: bool) -> None:
        """Not `by_row`: it is this loop that takes signals, so the order of its own facts decides, and its append
        settles the row."""
        now_ms = self._now_ms()
        expired = m.encode(m.Expired(wait_id, now_ms))
        try:
            if by_row:
                await self._store.expire_wait(self.id, wait_id, expired, now_ms)
            else:
                await self._store.post_fact(self.id, expired, now_ms)
        except StoreError as error:
            log.error("run %s: %s could not be expired (%s); trying again", self.id, wait_id, error)
            self._set_timer(now_ms + RETRY_EXPIRY_MS, lambda: self._due(command))
            return
        self.inbox_changed()

    def _run_is_late(self) -> None:
        seconds = self._plan.settings.timeout_ms / 1000
        error = ErrorInfo("run_timeout", f"the run took longer than {seconds:g} s (settings.timeout_s)")
        self._results.append(Result(f.RunAborted(self._now_ms(), error), Payload()))
        self._wake.set()

    # --- what comes from outside ---

    async def _read_inbox(self) -> None:
        signals = False
        for row in await self._store.read_inbox(self.id):
            if row.n in self._consumed_inbox or (self._move is not None and row.n == self._move[0]):
                continue
            self._consumed_inbox.append(row.n)
            self._inbox_n = max(self._inbox_n, row.n)
            match m.decode(row.fact):
                case m.Answer() as answer:
                    await self._answered(answer)
                case m.ChildEnded() as ended:
                    await self._child_ended(ended)
                case m.Expired() as expired:
                    await self._expired(expired)
                case m.Withdrawn() as withdrawn:
                    self._withdrawn(withdrawn)
                case m.Cancel(reason):
                    # First in line: once it is acknowledged, nothing that ended meanwhile may start anything new.
                    cancel = f.CancelRequested(self._now_ms(), reason)
                    self._results.appendleft(Result(cancel, Payload()))
                case m.Retry() as retry:
                    self._retry_wanted(retry)
                case m.Migrate() as migrate:
                    self._consumed_inbox.remove(row.n)  # answered by the append that moves the run, or refused
                    self._move = (row.n, migrate)
                case m.SignalSent():
                    signals = True
                case m.Unknown(type):
                    log.error("run %s: ignored an inbox message of unknown type %r", self.id, type)
        if signals or any(wait.kind == "signal" for wait in self._state.waits.values()):
            await self._match_signals()

    async def _answered(self, answer: m.Answer) -> None:
        key = self._recorder.key_of_wait(answer.wait)
        if key is None or key not in self._state.waits:
            return
        if self._state.waits[key].kind == "attention":
            self._lost_attempt_answered(key, answer)
            return
        attempt = self._state.waits[key].attempt
        if answer.refused:
            failed = f.WaitFailed(self._now_ms(), key, attempt, refusal_error(answer), answer.by)
            self._results.append(Result(failed, Payload()))
            return
        route = route_of_action(self._plan.nodes[key[1]], answer.action)
        answered = f.WaitAnswered(self._now_ms(), key, attempt, route, answer.by)
        await self._take_output(answered, answer_output(answer))

    async def _child_ended(self, ended: m.ChildEnded) -> None:
        key = self._recorder.key_of_wait(ended.wait)
        wait = self._state.waits.get(key) if key is not None else None
        if key is None or wait is None or self._recorder.wait_id(key, wait.attempt) != ended.wait:
            return  # the wait was closed before, and the child was cancelled
        if ended.status == "succeeded":
            answered = f.WaitAnswered(self._now_ms(), key, wait.attempt)
            await self._take_output(answered, orjson.loads(bytes(ended.output)), Payload(child=ended.run))
        else:
            failed = f.WaitFailed(self._now_ms(), key, wait.attempt, error_of_end(ended))
            self._results.append(Result(failed, Payload(child=ended.run)))

    async def _take_output(self, answered: f.WaitAnswered, output: Any, payload: Payload | None = None) -> None:
        """What a wait brought is the block's output, unless it does not fit the bounds or the block's output schema."""
        payload = payload or Payload()
        taken = await self._launcher.encode_external(answered.key, output)
        if isinstance(taken, ErrorInfo):
            failed = f.WaitFailed(answered.at_ms, answered.key, answered.attempt, taken, answered.by)
            self._results.append(Result(failed, payload))
            return
        payload.output, payload.patches = taken, self._recorder.assigned(answered.key, output)
        self._results.append(Result(answered, payload))

    def _retry_wanted(self, retry: m.Retry) -> None:
        key = parse_key(self._plan, retry.key)
        if key in self._state.retries:
            self._results.append(Result(f.RetryWanted(self._now_ms(), key, self._state.retries[key][0]), Payload()))

    def _lost_attempt_answered(self, key: NodeKey, answer: m.Answer) -> None:
        attempt, fields = self._state.waits[key].attempt, answer.fields or {}
        assert answer.action is not None, "the answer was checked"
        answered, output = attention.answer(self._now_ms(), key, attempt, answer.action, fields, answer.by)
        payload = Payload()
        if isinstance(answered, f.WaitAnswered):
            payload = Payload(encode_payload(output), self._recorder.assigned(key, output))
        self._results.append(Result(answered, payload))

    def _withdrawn(self, withdrawn: m.Withdrawn) -> None:
        key = self._recorder.key_of_wait(withdrawn.wait)
        wait = self._state.waits.get(key) if key is not None else None
        if key is not None and wait is not None:
            failed = f.WaitFailed(self._now_ms(), key, wait.attempt, withdrawal_error(withdrawn), withdrawn.by)
            self._results.append(Result(failed, Payload()))

    async def _expired(self, expired: m.Expired) -> None:
        key = self._recorder.key_of_wait(expired.wait)
        wait = self._state.waits.get(key) if key is not None else None
        if key is None or wait is None or self._recorder.wait_id(key, wait.attempt) != expired.wait:
            return
        if wait.kind == "signal":
            await self._match_signals()  # one that has come by now is taken, however late it is looked for
        payload, error = Payload(), None
        if wait.on_expire not in ("fail", "continue", "skip"):
            output = {"action": wait.on_expire, "answered_by": None, "answered_at": expired.at_ms, "expired": True}
            data = encode_payload(output)
            error = await self._launcher.validate_output(key, data)
            if error is None:
                payload = Payload(data, self._recorder.assigned(key, output))
        at_ms = max(self._now_ms(), wait.due_ms or 0)
        self._results.append(Result(f.TimerFired(at_ms, key, wait.attempt, error), payload))

    async def _match_signals(self) -> None:
        """Oldest signal to the oldest wait of its name and correlation. Both early signals and late ones come this
        way."""
        spoken_for = {result.fact.key for result in self._results if isinstance(result.fact, f.WaitAnswered)}
        waits = [wait for wait in self._recorder.signal_waits(self._state) if wait[0] not in spoken_for]
        if not waits:
            return
        used = {result.payload.signal[0] for result in self._results if result.payload.signal is not None}
        for signal in await self._store.unconsumed_signals(self.id):
            if signal.seq in used:
                continue
            for key, name, correlation in waits:
                if name == signal.name and (correlation is None or correlation == signal.correlation):
                    attempt = self._state.waits[key].attempt
                    output = {
                        "payload": orjson.loads(signal.payload),
                        "name": name,
                        "correlation": signal.correlation,
                        "received_at": signal.received_at_ms,
                        "received_by": signal.received_by,
                    }
                    payload = Payload(signal=(signal.seq, self._recorder.wait_id(key, attempt)))
                    answered = f.WaitAnswered(self._now_ms(), key, attempt, "out", signal.received_by)
                    await self._take_output(answered, output, payload)
                    waits.remove((key, name, correlation))
                    break

    # --- another plan ---

    async def _move_on(self, inbox: int, migrate: m.Migrate) -> bool:
        """Between two commits: nothing is decided while this looks. False: the journal does not fit (any more)."""
        self._move = None
        row = replace(self._row, seq=self._state.seq)
        try:
            plan = await load_plan(self._store, migrate.plan)
        except CorruptJournal as error:
            log.error("run %s: cannot move to version %s: %s", self.id, migrate.version, error)
            self._consumed_inbox.append(inbox)
            return False
        fitted = await fit(self._store, row, self._plan, plan)
        if fitted.misfits:
            self._consumed_inbox.append(inbox)
            return False
        move = Move(migrate.version, plan.hash, plan.encoded)
        await self._store.append(move_append(row, move, plan, fitted, self._state.seq, inbox, self._now_ms()))
        self._signal(self.id)
        self._moved_to = plan
        return True

    def hand_over(self, heir: RunLoop, first: list[f.Fact]) -> list[f.Fact]:
        """After `drive` said "moved" or "refused": `heir`, recovered under the plan that it follows now, gets the
        attempts under way and what has come in. Returns `first`, the facts of its recovery, without those attempts:
        they are not lost."""
        assert self._moved_to is not None
        translate = translator(self._plan, self._moved_to)
        self._heir = heir, translate
        results = [carried(result, translate) for result in self._results]
        tasks = {translate(key): task for key, task in self._tasks.items()}
        alive = tasks.keys() | {getattr(result.fact, "key", None) for result in results}
        heir._results.extend(results)
        heir._said.extend((translate(key), attempt, text, stream) for key, attempt, text, stream in self._said)
        heir._tasks |= tasks
        for key in self._told_to_stop:
            heir._give_grace(translate(key), self._tasks[key])
        if self._stopping:
            heir.stop()
        self._results.clear()
        self._said.clear()
        self._tasks.clear()
        self._told_to_stop.clear()
        return [fact for fact in first if not (isinstance(fact, f.AttemptLost) and fact.key in alive)]

    # --- leaving memory ---

    def _may_leave(self) -> bool:
        if self._stopping:
            return not self._tasks
        due_ms = self._state.due_ms() if self._state.parked else None
        # What is due already has its timer set: its fact is on the way, leaving would only mean to be claimed again.
        return self._state.parked and (due_ms is None or due_ms > self._now_ms())

    async def _leave(self) -> bool:
        """Free the lease. False: something arrived meanwhile, go on."""
        if self._state.parked:
            await self._match_signals()
            if self._results:
                return False
            released = await self._release("waiting", self._state.due_ms())
        else:
            released = await self._release("running", self._now_ms())
        if released:
            self._signal(self.id)  # the run's status changed, though its journal did not
        else:
            self._inbox_may_have_facts = True
            row = await self._store.get_run(self.id)
            if row is None or row.epoch != self._epoch:
                raise Fenced
        return released

    async def _release(self, status: RunStatus, next_run_at_ms: int | None) -> bool:
        return await self._store.release(self.id, self._epoch, self._recorder.taken_seq, next_run_at_ms, status)

    async def abandon(self) -> None:
        """After `drive` was cancelled at shutdown: let another worker have the run at once."""
        await self._release("running", self._now_ms())

    def _drop(self) -> None:
        for number in self._timer_numbers:
            self._timers.cancel(number)
        for task in self._expiries:
            task.cancel()
        if self._moved_to is None:
            self.drop_attempts()

    def drop_attempts(self) -> None:
        """Stop what is under way: nobody waits for it any more."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self._told_to_stop.clear()


def _without_child(result: Result, error: LimitExceeded) -> Result:
    """An attempt whose child was refused has failed for it."""
    fact = result.fact
    if not isinstance(fact, f.NodeSuspended) or result.payload.suspend is None or result.payload.suspend.child is None:
        return result
    info = ErrorInfo(error.code, error.message, hint=error.hint)
    return Result(f.NodeErred(fact.at_ms, fact.key, fact.attempt, info), Payload())
