"""Handlers that are entered at the end of each of their waits (`node.left`), for `drive.py`.

What such a handler does next follows from what it has received so far, in the order in which it came, and from nothing
else: it makes calls (steps and waits), gives some up, and ends when none is left. So two entries that receive the same
in another order make other calls, which is found at once: the input of a call is a hash of all that was received before
it. Beside that, each entry must first receive what the entries before it have received.

A step may fail and begin again: how often it has failed, and when it begins again, must hold from entry to entry.
"""

from __future__ import annotations

import hashlib
from copy import copy
from random import Random

from compiler.keys import NodeKey
from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.state import State, Step, Tries
from tests.support.core.watch import Broken, require

CALLS_MAX = 9
TRIES_MAX = 3
SHARE = 0.06  # of the blocks that can

Arrival = tuple[int, bool]  # a call, and whether it failed
Failed = dict[int, tuple[int, bool]]  # how often each step has failed, and whether it pauses


class Program:
    """The code of a handler: which calls it makes after which arrivals."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self.received = hashlib.blake2b(seed.encode(), digest_size=8).hexdigest()
        self.pending: dict[int, tuple[e.StepKind, e.StepEffect, str]] = {}  # calls that are awaited
        self.given_up: set[int] = set()
        self.count = 0
        self._go_on(Random(f"{seed} begins").randint(1, 4))

    def receive(self, n: int, failed: bool) -> None:
        del self.pending[n]
        self.received = hashlib.blake2b(f"{self.received} {n} {failed}".encode(), digest_size=8).hexdigest()
        rng = Random(f"{self._seed} {self.received}")
        for other in list(self.pending):
            if rng.random() < 0.15:
                del self.pending[other]
                self.given_up.add(other)
        self._go_on(rng.choice((0, 1, 1, 2)))

    def _go_on(self, calls: int) -> None:
        rng = Random(f"{self._seed} calls {self.received}")
        for _ in range(min(calls, CALLS_MAX - self.count)):
            self.count += 1
            kind: e.StepKind = rng.choice(("wait", "wait", "step"))
            effect: e.StepEffect = "none" if kind == "wait" else rng.choice(("none", "read", "write"))
            self.pending[self.count] = kind, effect, self.received


class Entry:
    """One attempt of such a handler, from when it reads its steps. `received_before`: by earlier entries."""

    def __init__(
        self,
        program: Program,
        key: NodeKey,
        attempt: int,
        state: State,
        received_before: list[Arrival],
        failed: Failed,
    ) -> None:
        tries = state.tries.get(key) or Tries()
        self.program, self.key, self.attempt = program, key, attempt
        self.known: dict[int, Step] = {n: copy(step) for n, step in tries.by_n.items()}
        self.under_way: list[int] = []
        self.failed = failed
        self.pauses = {n: step.due_ms for n, step in self.known.items() if step.due_ms is not None}
        for n, (times, pauses) in failed.items():
            kept = self.known[n].times if n in self.known else 0
            require(kept == times, f"step {n} has failed {times} times, and the state says {kept}")
            require(n in self.pauses or not pauses, f"step {n} pauses, and the state does not say so")
        self.received: list[Arrival] = []
        self.paused = False
        while (arrived := self._next()) is not None:
            self._receive(*arrived)
        for was, now in zip(received_before, self.received, strict=False):
            require(was == now, f"an entry received {self.received}, the ones before it {received_before}")
        require(
            len(self.received) >= len(received_before),
            f"an entry received {self.received}, the ones before it {received_before}",
        )

    def _next(self) -> Arrival | None:
        """The oldest arrival of a call that is made."""
        self._check()
        ended = [
            (step.arrives_seq or step.finished_seq, step.finished_seq, n)
            for n, step in self.known.items()
            if n in self.program.pending and step.finished_seq and step.arrives_seq >= 0
        ]
        return (n := min(ended)[2], self.known[n].failed) if ended else None

    def _receive(self, n: int, failed: bool) -> None:
        self.received.append((n, failed))
        self.program.receive(n, failed)

    def _check(self) -> None:
        for n, (kind, _, received) in self.program.pending.items():
            known = self.known.get(n)
            if known is not None and (known.kind, known.input_hash) != (kind, received):
                raise Broken(f"call {n} is {kind} {received} now, and was {known.kind} {known.input_hash}")

    def begins(self, at_ms: int) -> int | None:
        """The next step to begin."""
        steps = [n for n, (kind, _, _) in self.program.pending.items() if kind == "step" and n not in self.under_way]
        due = (n for n in steps if self.pauses.get(n, at_ms + 1) <= at_ms)
        return next((n for n in steps if n not in self.known and n not in self.pauses), next(due, None))

    def began(self, n: int) -> e.StepStarted:
        kind, effect, received = self.program.pending[n]
        self.under_way.append(n)
        self.pauses.pop(n, None)
        if n in self.failed:
            self.failed[n] = self.failed[n][0], False
        on_lost: e.StepOnLost = ("", "", "retry", "ask", "fail")[n % 5]
        return e.StepStarted(self.key, self.attempt, n, kind, "call", received, effect, on_lost=on_lost)

    def times(self, n: int) -> int:
        return self.failed[n][0] if n in self.failed else 0

    def again(self, n: int, due_ms: int) -> e.StepRetrying:
        """It failed, and begins again."""
        self.under_way.remove(n)
        self.pauses[n] = due_ms
        error = e.ErrorInfo("scripted", "the step failed")
        return e.StepRetrying(self.key, self.attempt, n, self.times(n) + 1, due_ms, error)

    def ends(self, n: int, failed: bool) -> e.StepFinished:
        self.under_way.remove(n)
        return e.StepFinished(
            self.key, self.attempt, n, error=e.ErrorInfo("scripted", "the step failed") if failed else None
        )

    def ended(self, n: int, failed: bool) -> None:
        """Its end is on disk."""
        if n in self.program.pending:
            self._receive(n, failed)
            self._check()

    def leaves(self, at_ms: int, rng: Random) -> f.HandlerLeft:
        """Open what is new, and close what was given up."""
        opens = []
        for n, (kind, _, received) in self.program.pending.items():
            known = self.known.get(n)
            if known is not None and known.lost:  # asked again each time: the core knows if the question is open
                opens.append(f.WaitBeside(f.WaitStep(n, "call", received, lost=True), "attention"))
            elif kind == "wait" and known is None:
                wait: e.WaitKind = rng.choice(("child", "form", "timer"))
                due_ms = None if wait == "child" else at_ms + rng.randrange(9000)
                step = f.WaitStep(n, "call", received)
                opens.append(f.WaitBeside(step, wait, due_ms, rng.choice(("continue", "fail"))))
        drops = tuple(n for n in self.program.given_up if n in self.known)
        due_ms = at_ms + rng.randrange(9000) if self.paused or rng.random() < 0.1 else None
        pauses = [until_ms for n, until_ms in self.pauses.items() if n in self.program.pending]
        due_ms = min(pauses) if pauses else due_ms
        return f.HandlerLeft(at_ms, self.key, self.attempt, tuple(opens), drops, due_ms)


class Lanes:
    """The handlers of a run that are entered at the end of each wait."""

    def __init__(self, seed: int, order: int) -> None:
        self.seed = seed
        self.rng = Random(f"{seed} lanes {order}")
        self._entries: dict[NodeKey, Entry] = {}
        self._received: dict[NodeKey, list[Arrival]] = {}
        self._failed: dict[NodeKey, Failed] = {}
        self._paused: set[NodeKey] = set()

    def has(self, key: NodeKey) -> bool:
        return Random(f"{self.seed} lane {key}").random() < SHARE

    def entry(self, key: NodeKey, attempt: int, state: State) -> Entry:
        """The code of this attempt; it reads its steps when it is first asked for."""
        entry = self._entries.get(key)
        if entry is None or entry.attempt != attempt:
            program = Program(f"{self.seed} {key}")
            failed = self._failed.setdefault(key, {})
            entry = self._entries[key] = Entry(program, key, attempt, state, self._received.get(key, []), failed)
            self._keep(entry)
        return entry

    def _keep(self, entry: Entry) -> None:
        self._received[entry.key] = list(entry.received)

    def failed(self, entry: Entry, event: e.StepRetrying) -> None:
        entry.failed[event.n] = event.times, True

    def ended(self, entry: Entry, n: int, failed: bool) -> None:
        entry.ended(n, failed)
        self._keep(entry)

    def raised(self, key: NodeKey, state: State) -> None:
        """The handler raised: steps that failed last are done again, if it is tried again."""
        tries = state.tries.get(key)
        if tries is None:
            return
        received = self._received.get(key, [])
        kept = next((n for n, (call, _) in enumerate(received) if call not in tries.by_n), len(received))
        self._received[key] = received[:kept]
        for n in [n for n in self._failed.get(key, {}) if n not in tries.by_n]:
            del self._failed[key][n]

    def moves(self, entry: Entry, at_ms: int) -> e.StepStarted | e.StepRetrying | e.StepFinished | f.HandlerLeft | None:
        """One thing that the handler does next: an event of a step, or it leaves; None when it has ended."""
        rng = self.rng
        begins = entry.begins(at_ms)
        if begins is not None and entry.under_way and rng.random() < 0.5:
            begins = None
        if begins is not None and not entry.under_way and rng.random() < 0.1 and entry.key not in self._paused:
            self._paused.add(entry.key)
            entry.paused = True
            return entry.leaves(at_ms, rng)
        if begins is not None:
            return entry.began(begins)
        if entry.under_way:
            n = rng.choice(entry.under_way)
            if n in entry.program.pending and entry.times(n) < TRIES_MAX and rng.random() < 0.2:
                return entry.again(n, at_ms + rng.randrange(9000))
            return entry.ends(n, rng.random() < 0.2)
        return entry.leaves(at_ms, rng) if entry.program.pending else None
