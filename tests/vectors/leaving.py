"""A stream of a block that is entered at the end of each of its waits, as the core makes it."""

from __future__ import annotations

from typing import Any

import orjson
from msgspec.structs import replace

from compiler.keys import ROOT, NodeKey
from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.decide import decide
from executor.kernel.core.evolve import evolve
from executor.kernel.core.state import State
from executor.kernel.journal.codec import Codec
from server.http.response import encode_record
from tests.support.core.generator import Block, Rates, Workflow, plan_of

A: NodeKey = (ROOT, 0)


class Leaving:
    """One run of one block, `a`; `events` are those that the editor receives, one a second."""

    def __init__(self, began_ms: int) -> None:
        self.plan = plan_of(Workflow(0, Rates(*[0.0] * 9), [Block("a", "plain", entry=True)], [], 10, "drain"))
        self.state = State.new(self.plan)
        self.codec = Codec(self.plan)
        self.at_ms = began_ms
        self.received_seq = 0
        self.events: list[dict[str, Any]] = []

    def play(self) -> None:
        self._fact(f.StartRequested(self.at_ms, "run-1"))
        self._step(1)
        self._leaves(self._opens(2, "signal"), self._opens(3, "timer", 5), self._opens(4, "child"))
        self._ends(3)  # the first of three
        self._ends(2)  # while it runs
        self._step(5)
        self._leaves(self._opens(6, "form"), drops=(4,))  # and is entered at once
        self._leaves(due_s=60)  # a pause, with a wait open
        self._fact(f.TimerFired(self.at_ms + 60_000, A, self.state.retries[A][0]))
        self._retries(8)
        self._say(e.StepStarted(A, self.state.running[A], 7, "step", "write", "hash", "write"))
        self._fact(f.AttemptLost(self.at_ms, A, self.state.running[A]))
        asked = f.WaitBeside(f.WaitStep(7, "write", "hash", lost=True), "attention")
        self._leaves(asked)
        self._ends(6)
        self._leaves()  # the question is open
        self._ends(7)
        self._leaves(self._opens(9, "signal"), self._opens(10, "timer", 600))
        self._ends(10)
        self._say(e.StepStarted(A, self.state.running[A], 11, "step", "step 11", "hash", "read"))
        self._waits(self._opens(12, "approval"), self._opens(13, "signal"))  # while it runs
        self._ends(12)
        self.received_seq = len(self.events)
        self._waits(drops=(13,))
        self._say(e.StepFinished(A, self.state.running[A], 11))
        self._leaves()  # it has received the answer
        self._ends(9)
        self._fact(f.NodeDone(self.at_ms, A, self.state.running[A]))

    def _fact(self, fact: f.Fact) -> None:
        for event in decide(self.plan, self.state, fact):
            self._keep(event)

    def _opens(self, n: int, kind: e.WaitKind, due_s: int | None = None) -> f.WaitBeside:
        due_ms = None if due_s is None else self.at_ms + due_s * 1000
        return f.WaitBeside(f.WaitStep(n, f"wait {n}", "hash"), kind, due_ms, "continue")

    def _leaves(self, *opens: f.WaitBeside, drops: tuple[int, ...] = (), due_s: int | None = None) -> None:
        due_ms = None if due_s is None else self.at_ms + due_s * 1000
        attempt, received_seq = self.state.running[A], self.received_seq
        self._fact(f.HandlerLeft(self.at_ms, A, attempt, opens, drops, due_ms, received_seq))

    def _waits(self, *opens: f.WaitBeside, drops: tuple[int, ...] = ()) -> None:
        self._fact(f.HandlerWaits(self.at_ms, A, self.state.running[A], opens, drops))

    def _ends(self, n: int) -> None:
        """The wait of step `n` ends."""
        waits = self.state.waits[A].values()
        number = next(wait.attempt for wait in waits if wait.step == n)
        self._fact(f.WaitAnswered(self.at_ms, A, number, by="ada"))

    def _step(self, n: int) -> None:
        self._say(e.StepStarted(A, self.state.running[A], n, "step", f"step {n}", "hash", "read"))
        self._say(e.StepFinished(A, self.state.running[A], n))

    def _retries(self, n: int) -> None:
        """Step `n` fails twice, and is then done."""
        error = e.ErrorInfo("function_failed", "Busy: not yet", True, type="flow.Busy")
        began = e.StepStarted(A, self.state.running[A], n, "step", "flaky", "hash", "write")
        for times in (1, 2):
            self._say(began)
            self._say(e.StepRetrying(A, self.state.running[A], n, times, self.at_ms + 1_000, error))
        self._say(began)
        self._say(e.StepFinished(A, self.state.running[A], n))

    def _say(self, event: e.Event) -> None:
        evolve(self.plan, self.state, event)
        self._keep(event)

    def _keep(self, event: e.Event) -> None:
        self.at_ms += 1000
        record = self.codec.to_record(len(self.events) + 1, self.at_ms, event)
        if isinstance(event, e.WaitOpened):
            data = orjson.loads(record.data or b"{}") | {"wait": self.codec.wait_id(A, event.attempt)}
            record = replace(record, data=orjson.dumps(data))
        self.events.append(orjson.loads(encode_record("run-1", record)))
