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
from typing import NamedTuple

from compiler.keys import NodeKey
from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.state import State, Step, Tries
from tests.support.core.watch import Broken, require

CALLS_MAX = 9
UNDO_MAX = 5  # calls after a cancel
CANCEL = 0  # as a call that was received
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
        self.cancelled = False
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

    def cancel(self) -> None:
        """The code catches it, and undoes what it has done; what it waited for is cancelled as well."""
        self.cancelled = True
        self.given_up |= self.pending.keys()
        self.pending.clear()
        self.received = hashlib.blake2b(f"{self.received} cancelled".encode(), digest_size=8).hexdigest()
        self._go_on(Random(f"{self._seed} {self.received}").randint(0, 3))

    def _go_on(self, calls: int) -> None:
        rng = Random(f"{self._seed} calls {self.received}")
        for _ in range(min(calls, CALLS_MAX + self.cancelled * UNDO_MAX - self.count)):
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
        waits = state.waits.get(key, {}).values()
        self.open = {wait.step for wait in waits if wait.step is not None}
        self.received_seq = max((step.finished_seq for step in self.known.values()), default=0)
        self.to_receive: list[tuple[int, bool, int]] = []
        self.has_missed = False
        self.received: list[Arrival] = []
        self.paused = False
        while (arrived := self._next()) is not None:
            self._receive(*arrived)
        self._all_received()
        for was, now in zip(received_before, self.received, strict=False):
            require(was == now, f"an entry received {self.received}, the ones before it {received_before}")
        require(
            len(self.received) >= len(received_before),
            f"an entry received {self.received}, the ones before it {received_before}",
        )

    def _all_received(self) -> None:
        """Deliver what is on disk."""

    def _is_held(self) -> bool:
        """Return whether what the code calls does not begin."""
        return False

    def _next(self) -> Arrival | None:
        """The oldest arrival of a call that is made."""
        self._check()
        ended = [
            (step.finished_seq, n) for n, step in self.known.items() if n in self.program.pending and step.finished_seq
        ]
        return (n := min(ended)[1], self.known[n].failed) if ended else None

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
        if self._is_held():
            return None
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

    def known_effect(self, n: int) -> e.StepEffect:
        return self.program.pending[n][1] if n in self.program.pending else "write"

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

    def receive_waits(self) -> None:
        """Receive the ends of waits that came while it runs."""
        ends, self.to_receive = self.to_receive, []
        for n, failed, seq in ends:
            self.received_seq = seq
            self.open.discard(n)
            self.ended(n, failed)

    def ended(self, n: int, failed: bool) -> None:
        """Its end is on disk."""
        if n in self.program.pending:
            self._receive(n, failed)
            self._check()

    def leaves(self, at_ms: int, rng: Random) -> f.HandlerLeft:
        due_ms = at_ms + rng.randrange(9000) if self.paused or rng.random() < 0.1 else None
        pauses = [until_ms for n, until_ms in self.pauses.items() if n in self.program.pending]
        due_ms = min(pauses) if pauses else due_ms
        opens, drops = self._waits(at_ms, rng)
        return f.HandlerLeft(at_ms, self.key, self.attempt, opens, drops, due_ms, self.received_seq)

    def waits(self, at_ms: int, rng: Random) -> f.HandlerWaits | None:
        """Return the waits to change while it runs; None if there are none."""
        opens, drops = self._waits(at_ms, rng)
        if not (opens or drops):
            return None
        self.open = self.open.difference(drops).union(wait.step.n for wait in opens)
        return f.HandlerWaits(at_ms, self.key, self.attempt, opens, drops)

    def _waits(self, at_ms: int, rng: Random) -> tuple[tuple[f.WaitBeside, ...], tuple[int, ...]]:
        """Open what is new, and close what was given up."""
        opens = []
        for n, (kind, _, received) in self.program.pending.items():
            known = self.known.get(n)
            if n in self.open:
                continue
            if known is not None and known.lost:
                opens.append(f.WaitBeside(f.WaitStep(n, "call", received, lost=True), "attention"))
            elif kind == "wait" and known is None and not self._is_held():
                wait: e.WaitKind = rng.choice(("child", "form", "timer"))
                due_ms = None if wait == "child" else at_ms + rng.randrange(9000)
                step = f.WaitStep(n, "call", received)
                opens.append(f.WaitBeside(step, wait, due_ms, rng.choice(("continue", "fail"))))
        return tuple(opens), tuple(n for n in self.program.given_up if n in self.open)


class Cancelled(NamedTuple):
    """The state of the code when the cancel came: what it had received, and which calls it had given up."""

    received: frozenset[Arrival]
    given_up: frozenset[int]


class UndoEntry(Entry):
    """One that undoes another node, of which it knows the steps. Its code is cancelled after the last end of what began
    before, also after the answer about a step whose outcome is unknown; until then what it calls does not begin."""

    def __init__(
        self,
        program: Program,
        key: NodeKey,
        attempt: int,
        state: State,
        received_before: list[Arrival],
        failed: Failed,
    ) -> None:
        self.taken_seq = state.tries[key].taken_seq
        self.cancelled: Cancelled | None = None
        super().__init__(program, key, attempt, state, received_before, failed)

    def _is_held(self) -> bool:
        return not self.program.cancelled

    def _next(self) -> Arrival | None:
        self._cancel()
        return super()._next()

    def ended(self, n: int, failed: bool) -> None:
        super().ended(n, failed)
        self._cancel()

    def _cancel(self) -> None:
        pending = self.program.pending
        comes = any(
            (step.finished_seq or step.lost) and step.started_seq < self.taken_seq
            for n, step in self.known.items()
            if n in pending
        )
        if pending and not comes and not self.program.cancelled:
            self.cancelled = Cancelled(frozenset(self.received), frozenset(self.program.given_up))
            self.program.cancel()
            self.received.append((CANCEL, False))


class Lanes:
    """The handlers of a run that are entered at the end of each wait."""

    def __init__(self, seed: int, order: int) -> None:
        self.seed = seed
        self.rng = Random(f"{seed} lanes {order}")
        self._entries: dict[NodeKey, Entry] = {}
        self._received: dict[NodeKey, list[Arrival]] = {}
        self._failed: dict[NodeKey, Failed] = {}
        self._paused: set[NodeKey] = set()
        self.share = SHARE
        self.undoes: dict[NodeKey, NodeKey] = {}
        self.cancelled: Cancelled | None = None

    def has(self, key: NodeKey) -> bool:
        return Random(f"{self.seed} lane {key}").random() < self.share

    def entry(self, key: NodeKey, attempt: int, state: State) -> Entry:
        """The code of this attempt; it reads its steps when it is first asked for."""
        entry = self._entries.get(key)
        if entry is None or entry.attempt != attempt:
            undone = self.undoes.get(key)
            program = Program(f"{self.seed} {undone or key}")
            failed = self._failed.setdefault(key, {})
            received = self._received.get(key) or self._received.get(undone or key, [])
            of = Entry if undone is None else UndoEntry
            entry = self._entries[key] = of(program, key, attempt, state, received, failed)
            self._keep(entry)
        return entry

    def _keep(self, entry: Entry) -> None:
        self._received[entry.key] = list(entry.received)
        if isinstance(entry, UndoEntry):
            self.cancelled = entry.cancelled or self.cancelled

    def failed(self, entry: Entry, event: e.StepRetrying) -> None:
        entry.failed[event.n] = event.times, True

    def ended(self, entry: Entry, n: int, failed: bool) -> None:
        entry.receive_waits()  # they are older
        entry.ended(n, failed)
        self._keep(entry)

    def wait_ended(self, event: e.StepFinished | e.StepLost, state: State) -> None:
        """The end of a wait is on disk: the attempt that runs, and has read its steps, is to receive it. Not that a
        step is to be done again, which the next one knows."""
        entry = self._entries.get(event.key)
        if entry is None or state.running.get(event.key) != entry.attempt or event.attempt == entry.attempt:
            return
        if isinstance(event, e.StepLost):
            entry.has_missed = True
        else:
            seq = state.tries[event.key].by_n[event.n].finished_seq
            entry.to_receive.append((event.n, event.error is not None, seq))

    def raised(self, key: NodeKey, state: State) -> None:
        """The handler raised: steps that failed last are done again, if it is tried again."""
        tries = state.tries.get(key)
        if tries is None:
            return
        received = self._received.get(key, [])
        kept = next((n for n, (call, _) in enumerate(received) if call and call not in tries.by_n), len(received))
        self._received[key] = received[:kept]
        for n in [n for n in self._failed.get(key, {}) if n not in tries.by_n]:
            del self._failed[key][n]

    def moves(
        self, entry: Entry, at_ms: int
    ) -> e.StepStarted | e.StepRetrying | e.StepFinished | f.HandlerLeft | f.HandlerWaits | None:
        """One thing that the handler does next: an event of a step, other waits, or it leaves; None when it has
        ended."""
        rng = self.rng
        if rng.random() < 0.7:
            entry.receive_waits()
            self._keep(entry)
        if entry.under_way and rng.random() < 0.4 and (waits := entry.waits(at_ms, rng)) is not None:
            return waits
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
