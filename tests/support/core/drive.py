"""Drives the core through one run: answers its commands in a seeded random order, in virtual time, with seeded faults.

It stands for the runtime and for the world. What a block does comes from the `Table`; when it does it, and what goes
wrong around it, comes from the order seed:
  * stop and fold: the journal, encoded and decoded, is folded to a new state, which must equal the old one byte by
    byte; the run continues from there, with nothing but `outstanding` to tell what was under way;
  * crash: as before, and every attempt under way is lost; for some of them a person has to say what became of them;
  * facts that come twice, timers that come early, answers to waits that are closed: they must change nothing;
  * a request to cancel.
`watch.py` reads the journal as it grows and checks what must hold at every moment.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

import msgspec

from compiler.keys import NodeKey, format_key
from compiler.plan import Plan
from executor.kernel.core import commands as c
from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.commands import commands_of, outstanding
from executor.kernel.core.decide import decide
from executor.kernel.core.evolve import evolve, fold
from executor.kernel.core.explain import explain
from executor.kernel.core.state import RunPhase, State
from tests.support.core.generator import Behaviour, Block, Place, Table, Workflow
from tests.support.core.lanes import Entry, Lanes
from tests.support.core.watch import Broken, Observed, Watch, require
from tests.support.snapshots import content, restored
from tests.support.snapshots import encode as encode_state

STEPS_MAX = 20_000
CRASHES_MAX = 6  # fewer than the core allows one attempt to be lost
FAR_MS = 10_000_000_000  # no run of the simulation takes so long

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(e.Event)


@dataclass
class Faults:
    """Chances per step, and the steps at which the run is cancelled, and cancelled again (-1: it is not). `now`:
    without its cleanups."""

    fold: float = 0.0
    crash: float = 0.0
    stale: float = 0.0
    cancel_at: int = -1
    cancel_again_at: int = -1
    now: bool = False
    stop_cleanup: float = 0.0

    @classmethod
    def draw(cls, rng: Random) -> Faults:
        faults = cls(
            fold=rng.choice((0.0, 0.1, 0.3)),
            crash=rng.choice((0.0, 0.05, 0.1)),
            stale=rng.choice((0.0, 0.1, 0.3)),
            cancel_at=rng.randint(0, 60) if rng.random() < 0.1 else -1,
        )
        if faults.cancel_at >= 0:
            faults.now = rng.random() < 0.1
            faults.cancel_again_at = faults.cancel_at + rng.randint(1, 20) if rng.random() < 0.4 else -1
        faults.stop_cleanup = 0.2 if rng.random() < 0.1 else 0.0
        return faults


class Drive:
    """One run from start to end. `run()` returns what it came to; raises Broken with the reason."""

    def __init__(
        self,
        workflow: Workflow,
        plan: Plan,
        table: Table,
        order: int,
        faults: Faults | None = None,
        reuse: dict[int, str | None] | None = None,
    ) -> None:
        self.workflow, self.plan, self.table, self.reuse = workflow, plan, table, reuse or {}
        self.rng = Random(f"{workflow.seed} order {order}")
        self.cuts = Random(f"{workflow.seed} snapshots {order}")
        self.first_in_first_out = order == 0
        self.faults = faults or Faults()
        self.state = State.new(plan)
        self.journal: list[bytes] = []
        self.watch = Watch(plan)
        self.now_ms = 1_000_000
        self.attempts: dict[NodeKey, int] = {}  # under way
        self.stopped: set[NodeKey] = set()  # under way, told to stop
        self.timers: dict[tuple[NodeKey, int], int] = {}
        self.raised: Counter[NodeKey] = Counter()  # attempts that raised; a lost one did nothing
        self.past_facts: list[f.Fact] = []
        self.beside = Random(f"{workflow.seed} waits side by side {order}")
        self.steps: Counter[NodeKey] = Counter()  # the last number of each
        self.lanes = Lanes(workflow.seed, order)
        self.crashes = 0

    def run(self) -> Observed:
        self.feed(f.StartRequested(self.now_ms, f"run-{self.workflow.seed}", self.reuse))
        return self._to_the_end()

    def go_on(self, copied: list[e.Event]) -> Observed:
        """A fork: the run that the copied events are the beginning of, a long time later."""
        at_ms = self.now_ms = FAR_MS // 2
        self.state = fold(self.plan, copied)
        for event in copied:
            self.journal.append(_encoder.encode(event))
            if isinstance(event, e.WaitOpened) and event.kind == "attention" and event.step is None:
                self.watch.lost(event.key)
            self.watch.event(event, at_ms)
            if isinstance(event, e.StepStarted):
                self.steps[event.key] = max(self.steps[event.key], event.n)
            if isinstance(event, e.RetryScheduled) and event.error.code == "scripted":
                self.raised[event.key] += 1
        self.feed(f.ForkMade(at_ms, "the first run", len(copied)))
        self.watch.left_behind()
        commands = outstanding(self.plan, self.state)
        require(not any(isinstance(command, c.RunNode) for command in commands), "a fork begins with nothing running")
        self.timers = {(t.key, t.attempt): t.due_ms for t in commands if isinstance(t, c.SetTimer)}
        self.feed(f.Recovered(at_ms))
        return self._to_the_end()

    def _to_the_end(self) -> Observed:
        for step in range(STEPS_MAX):
            if self.watch.seen.status:
                self._nothing_more()
                return self.watch.seen
            if step == self.faults.cancel_at:
                self.cancel()
            elif step == self.faults.cancel_again_at:
                asked = self.rng.random() < 0.5  # else a run above: that stops no cleanup
                self.feed(f.CancelRequested(self.now_ms, "and again", asked=asked))
            elif self.state.cleanups and self.rng.random() < self.faults.stop_cleanup:
                self._stop_cleanup()
            elif self.rng.random() < self.faults.stale:
                self._stale()
            elif self.rng.random() < self.faults.crash and self.crashes < CRASHES_MAX:
                self._crash()
            else:
                self._step()
            if self.rng.random() < self.faults.fold:
                self._stop_and_fold()
        raise Broken(f"no end after {STEPS_MAX} steps")

    def cancel(self) -> None:
        self.feed(f.CancelRequested(self.now_ms, "the simulation says so", self.faults.now, asked=True))

    def feed(self, fact: f.Fact) -> list[e.Event]:
        events = decide(self.plan, self.state, fact)
        self.past_facts.append(fact)
        if not events:
            return events
        self.watch.seen.commits += 1
        for event in events:
            self.keep(event, fact.at_ms)
            if isinstance(event, e.RetryScheduled) and event.error.code != e.LOST:
                self.lanes.raised(event.key, self.state)
            if isinstance(event, e.StepFinished | e.StepLost):
                self.lanes.wait_ended(event, self.state)
        require(self.state.seq == len(self.journal), "events are numbered 1, 2, 3, ... without gaps")
        for command in commands_of(self.plan, self.state, events):
            self._obey(command)
        for key in self.watch.left & self.watch.news:
            self._is_entered(key)
        return events

    def _is_entered(self, key: NodeKey) -> None:
        """A wait of a handler has ended: nothing but the limits of the run keeps it from being entered."""
        _, due_ms = self.state.retries.get(key, (0, FAR_MS))
        entered = key in self.state.running or due_ms <= self.now_ms
        require(entered or not self._goes_on(key), f"{self.name(key)} waits on, though something has ended")

    def keep(self, event: e.Event, at_ms: int) -> None:
        self.journal.append(_encoder.encode(event))
        self.watch.event(event, at_ms)

    def _obey(self, command: c.Command) -> None:
        match command:
            case c.RunNode():
                require(command.key not in self.attempts, f"{self.name(command.key)} runs twice at one time")
                self.attempts[command.key] = command.attempt
            case c.CancelNode():
                self.stopped.add(command.key)
            case c.SetTimer():
                self.timers[command.key, command.attempt] = command.due_ms
            case c.Park():
                require(not self.attempts, "a run parks only when nothing is under way")
            case c.Finish():
                require(self.watch.seen.status == command.status, "the command says what the event says")

    # --- the world moves ---

    def _step(self) -> None:
        """One thing that may happen next: an attempt ends, a wait is answered, a timer comes due."""
        answers = [
            which
            for which, wait in self.watch.waits.items()
            if wait.kind == "attention" or wait.step or self.act(which[0]).wait in ("answered", "child")
        ]
        choices: list[tuple[str, NodeKey, int]] = [("end", key, attempt) for key, attempt in self.attempts.items()]
        choices += [("answer", *which) for which in answers]
        choices += [
            ("timer", key, attempt)
            for (key, attempt), due_ms in self.timers.items()
            if due_ms < FAR_MS and attempt  # the far ones are there to be overtaken by an answer
        ]
        if not choices:
            raise Broken("the run is stuck: " + self._why())
        kind, key, attempt = choices[0] if self.first_in_first_out else self.rng.choice(choices)
        self.now_ms += self.rng.randrange(3)
        if kind == "end":
            fact = self._outcome(key, attempt)
            if isinstance(fact, f.HandlerWaits):
                self.feed(fact)
            elif fact is not None:
                del self.attempts[key]
                events = self.feed(fact)
                self.stopped.discard(key)
                if isinstance(fact, f.HandlerLeft) and self._goes_on(key):
                    left = next((event for event in events if isinstance(event, e.NodeLeft)), None)
                    entry = self.lanes.entry(key, attempt, self.state)
                    missed = entry.has_missed or bool(entry.to_receive)
                    require(left is None or left.again or not missed, "a handler leaves, and is not entered for an end")
                    kept = {wait.step for wait in self.state.waits.get(key, {}).values()}
                    require(not kept & set(fact.drops), "a wait stays open that is not needed any more")
        elif kind == "answer":
            self.feed(self._answer(key, attempt))
        elif self.rng.random() < 0.1 and key in self.state.retries:
            self.feed(f.RetryWanted(self.now_ms, key, attempt))
        else:
            due_ms = self.timers.pop((key, attempt))
            self.now_ms = max(self.now_ms, due_ms)
            self.feed(f.TimerFired(self.now_ms, key, attempt))

    def _goes_on(self, key: NodeKey) -> bool:
        scope = self.state.scopes.get(key[0])
        return self.state.phase is RunPhase.RUNNING and scope is not None and not scope.dead

    def _stop_cleanup(self) -> None:
        """Its time is over."""
        left = [key for key in self.state.cleanups if (key, 0) in self.timers]
        if left:
            key = self.rng.choice(left)
            self.now_ms = max(self.now_ms, self.timers.pop((key, 0)))
            self.feed(f.TimerFired(self.now_ms, key, 0))

    def _answer(self, key: NodeKey, attempt: int) -> f.Fact:
        """How a wait ends. What a person says of a lost attempt is true: it fits what the block comes to."""
        act, block = self.act(key), self.block_of(key)[0]
        wait = self.watch.waits[key, attempt]
        if wait.step and wait.kind == "attention" and self.beside.random() < 0.4:
            return f.WaitRetried(self.now_ms, key, attempt, "someone")
        if wait.step and self.beside.random() < 0.3:
            return f.WaitFailed(self.now_ms, key, attempt, e.ErrorInfo("scripted", "the step failed"))
        if wait.step:
            return f.WaitAnswered(self.now_ms, key, attempt)
        if wait.kind == "attention":
            hopeless = act.fails and (not act.retryable or act.fails >= block.max_attempts)
            if hopeless and self.rng.random() < 0.3:
                return f.WaitFailed(self.now_ms, key, attempt, e.ErrorInfo("attempt_lost", "given up"), "someone")
            if block.kind == "plain" and not (hopeless or act.skip) and self.rng.random() < 0.3:
                return f.WaitAnswered(self.now_ms, key, attempt, by="someone")
            return f.WaitRetried(self.now_ms, key, attempt, "someone")
        if self.raised[key] < act.fails:
            self.raised[key] += 1
            error = e.ErrorInfo("scripted", "the child run failed", retryable=act.retryable)
            return f.WaitFailed(self.now_ms, key, attempt, error)
        return f.WaitAnswered(self.now_ms, key, attempt, act.route, "someone")

    def _outcome(self, key: NodeKey, attempt: int) -> f.Fact | None:
        """Return the outcome of the attempt, or None if it is still under way; one that is stopped may still finish its
        work."""
        node, act, now_ms = self.plan.nodes[key[1]], self.act(key), self.now_ms
        if key in self.stopped and self.rng.random() < 0.7:
            return f.NodeErred(now_ms, key, attempt, e.ErrorInfo("cancelled", "stopped"))
        if node.sentinel == "end":
            turns = self.watch.opened[key[0], node.body]
            if act.test_fails_after and act.test_fails_after == turns:
                return f.NodeErred(now_ms, key, attempt, e.ErrorInfo("test_failed", "the test raised", retryable=True))
            return f.LoopTested(now_ms, key, attempt, again=turns < act.count)
        if self.rng.random() < 0.05 and self.state.phase is RunPhase.RUNNING and not self.state.scopes[key[0]].dead:
            error = e.ErrorInfo("crowded", "there was no room, and nothing begun", retryable=True)
            asked = node.policy.retry.max_attempts > 1 and self.rng.random() < 0.5
            return f.NodeErred(now_ms, key, attempt, error, deferred="asked" if asked else "not_begun")
        if not node.inline and node.sentinel is None:
            if self.lanes.has(key):
                entry = self.lanes.entry(key, attempt, self.state)
                errs = self.raised[key] < act.fails and self.lanes.rng.random() < 0.1
                if not errs and (does := self.lanes.moves(entry, now_ms)) is not None:
                    if isinstance(does, f.HandlerLeft | f.HandlerWaits):
                        return does
                    self._say(entry, does)
                    return None
            elif self.beside.random() < 0.05:
                return self._side_by_side(key, attempt)
        if act.wait == "child" and not (act.skip and self.raised[key] >= act.fails):
            return f.NodeSuspended(now_ms, key, attempt, "child")
        if self.raised[key] < act.fails:
            self.raised[key] += 1
            error = e.ErrorInfo("scripted", "as the table says", retryable=act.retryable)
            retry_at_ms = now_ms + self.rng.randrange(5000) if self.rng.random() < 0.2 else None
            return f.NodeErred(now_ms, key, attempt, error, retry_at_ms)
        if node.sentinel == "start":
            # a while loop knows only whether there is a first iteration
            count = min(act.count, 1) if act.lazy and node.type == "loop:start" else act.count
            return f.RegionSizeKnown(now_ms, key, attempt, count)
        if act.skip:
            return f.NodePassed(now_ms, key, attempt)
        if act.wait == "timer":
            return f.NodeSuspended(now_ms, key, attempt, "timer", now_ms + self.rng.randrange(100_000))
        if act.wait == "expired":
            return f.NodeSuspended(now_ms, key, attempt, "approval", now_ms + self.rng.randrange(9000), act.on_expire)
        if act.wait == "answered":
            due_ms = FAR_MS + now_ms if self.rng.random() < 0.5 else None
            return f.NodeSuspended(now_ms, key, attempt, "form", due_ms)
        return f.NodeDone(now_ms, key, attempt, act.route, end_run=node.type == "response")

    def _say(self, entry: Entry, event: e.StepStarted | e.StepRetrying | e.StepFinished) -> None:
        """A step of an attempt begins or ends, which is decided by no fact."""
        if self.state.running.get(entry.key) != entry.attempt:
            return
        evolve(self.plan, self.state, event)
        self.keep(event, self.now_ms)
        if isinstance(event, e.StepRetrying):
            self.lanes.failed(entry, event)
        if isinstance(event, e.StepFinished):
            self.lanes.ended(entry, event.n, event.error is not None)

    def _side_by_side(self, key: NodeKey, attempt: int) -> f.Fact:
        """The handler waits for several things at the same time."""
        waits = []
        for _ in range(self.beside.randint(2, 4)):
            self.steps[key] += 1
            step = f.WaitStep(self.steps[key], "asked", "hash")
            kind: e.WaitKind = self.beside.choice(("child", "form", "timer"))
            due_ms = None if kind == "child" else self.now_ms + self.beside.randrange(9000)
            waits.append(f.WaitBeside(step, kind, due_ms, "continue"))
        first = waits[0]
        return f.NodeSuspended(
            self.now_ms, key, attempt, first.kind, first.due_ms, first.on_expire, first.step, tuple(waits[1:])
        )

    # --- faults ---

    def _stale(self) -> None:
        """Tell the core something it knows already, or too early. It must not care."""
        early = [(key, attempt) for (key, attempt), due_ms in self.timers.items() if due_ms > self.now_ms]
        old = [fact for fact in self.past_facts if self._is_stale(fact)]
        if early and self.rng.random() < 0.5:
            key, attempt = self.rng.choice(early)
            fact: f.Fact = f.TimerFired(self.now_ms, key, attempt)
        elif self.watch.waits and self.rng.random() < 0.3:
            (key, _), wait = self.rng.choice(list(self.watch.waits.items()))
            error = e.ErrorInfo("scripted", "too late")
            older = min(self.watch.waiting(key)) - 1
            fact = self.rng.choice(
                (
                    f.WaitAnswered(self.now_ms, key, older),
                    f.WaitFailed(self.now_ms, key, older, error),
                    f.WaitRetried(self.now_ms, key, older if wait.kind == "attention" else wait.attempt),
                )
            )
        elif old:
            fact = msgspec.structs.replace(self.rng.choice(old), at_ms=self.now_ms)
        else:
            return
        before = encode_state(self.state)
        require(decide(self.plan, self.state, fact) == [], f"a stale fact has effects: {fact}")
        require(encode_state(self.state) == before, f"a stale fact changes the state: {fact}")

    def _is_stale(self, fact: f.Fact) -> bool:
        if isinstance(fact, f.StartRequested):
            return True
        if isinstance(fact, f.Recovered | f.CancelRequested | f.RunAborted):
            return False
        if isinstance(fact, f.TimerFired):
            return (fact.key, fact.attempt) not in self.timers
        if isinstance(fact, f.WaitAnswered | f.WaitFailed | f.WaitRetried):
            return (fact.key, fact.attempt) not in self.watch.waits
        if isinstance(fact, f.RetryWanted):
            return (fact.key, fact.attempt) not in self.timers
        if isinstance(fact, f.ForkMade):
            return False
        return self.attempts.get(fact.key) != fact.attempt

    def _stop_and_fold(self) -> None:
        """The process stops after this commit; another one continues from the journal."""
        events = [_decoder.decode(line) for line in self.journal]
        folded = fold(self.plan, events)
        require(encode_state(folded) == encode_state(self.state), "the fold of the journal differs from the state")
        cut = self.cuts.randint(0, len(events))
        self.state = restored(self.plan, fold(self.plan, events[:cut]))
        for event in events[cut:]:
            evolve(self.plan, self.state, event)
        require(content(self.state) == content(folded), f"a snapshot of event {cut} and the rest differ from the fold")
        require(self.state.due_ms() == folded.due_ms(), f"with a snapshot of event {cut} other times come due")
        require(outstanding(self.plan, self.state) == outstanding(self.plan, folded), "other attempts are under way")
        folded = self.state
        if self.watch.seen.status:
            return
        commands = outstanding(self.plan, folded)
        running = {command.key: command.attempt for command in commands if isinstance(command, c.RunNode)}
        require(running == self.attempts, f"outstanding attempts {running}, under way were {self.attempts}")
        timers = {(t.key, t.attempt): t.due_ms for t in commands if isinstance(t, c.SetTimer)}
        unknown = {t for t, due_ms in timers.items() if due_ms and self.timers.get(t, due_ms) != due_ms}  # 0: at once
        require(not unknown, f"timers with other times than before: {unknown}")
        self.timers = timers
        if not folded.parked and self.rng.random() < 0.5:
            self.feed(f.Recovered(self.now_ms))

    def _crash(self) -> None:
        self.crashes += 1
        self._stop_and_fold()
        lost, self.attempts = self.attempts, {}
        self.stopped.clear()
        together = self.rng.random() < 0.5
        for key, attempt in lost.items():
            if self.state.running.get(key) == attempt:  # an earlier loss may have ended the run
                self.watch.lost(key)
                self.feed(f.AttemptLost(self.now_ms, key, attempt, together))

    def _nothing_more(self) -> None:
        """After its end a run takes nothing in any more."""
        self._stop_and_fold()
        for fact in self.past_facts[-3:]:
            require(decide(self.plan, self.state, fact) == [], "events after the end of the run")

    # --- names ---

    def act(self, key: NodeKey) -> Behaviour:
        block, place = self.block_of(key)
        return self.table.of(block, place)

    def block_of(self, key: NodeKey) -> tuple[Block, Place]:
        place = tuple((self.plan.regions[region].id, index) for region, index in key[0])
        return self.workflow.by_id[self.plan.nodes[key[1]].block], place

    def name(self, key: NodeKey) -> str:
        return format_key(self.plan, key)

    def _why(self) -> str:
        keys = [(path, n) for path in self.state.scopes for n in range(len(self.plan.nodes))]
        keys = [key for key in keys if self.plan.region_of[key[1]] == self.state.scopes[key[0]].region]
        return "; ".join(f"{self.name(key)} {explain(self.plan, self.state, key)}" for key in keys)
