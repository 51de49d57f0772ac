"""A durable function that is cancelled: its code (`lanes.py`) is entered once more, in the cleanup of the run, and gets
a cancel there. For what there is to be right, see `Undone.check`.

The cancel comes at any moment: before the function begins, while it runs, waits or is in no memory, and twice; with
ends of waits in the same moment, and kills before and after it. So does the time limit of the run.
"""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from compiler.keys import NodeKey
from compiler.plan import Plan
from executor.kernel.core import commands as c
from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.events import STOPPED
from executor.kernel.core.evolve import evolve
from executor.kernel.core.state import RunPhase
from tests.support.core.drive import Drive, Faults
from tests.support.core.generator import Block, Rates, Table, Workflow, plan_of
from tests.support.core.watch import Observed, require


def durable(seed: int) -> tuple[Workflow, Plan]:
    """Return a workflow with nothing but a durable function, and its plan."""
    rng = Random(f"durable {seed}")
    body = Block("b", "plain", effect="write")
    trigger = Block("a", "trigger", entry=True, inline=True, out=[("out", "b")])
    trigger.cleanup = [Block("a.fa", "plain", entry=True, effect="write")]
    fail = rng.choice((0.0, 0.0, 0.3))
    workflow = Workflow(seed, Rates(fail, 0, 0, 0, 0, 0, 0, 0, 0), [trigger, body], [], 100, "drain")
    plan = plan_of(workflow)
    root, cleanup = plan.regions
    undoes = next(number for number, node in enumerate(plan.nodes) if node.id == body.id)
    return workflow, replace(plan, regions=(root, replace(cleanup, undoes=undoes)))


class Undone(Drive):
    """`run` checks what became of it."""

    def __init__(self, workflow: Workflow, plan: Plan, order: int) -> None:
        rng = Random(f"{workflow.seed} undone {order}")
        faults = Faults.draw(rng) if order else Faults()
        faults.cancel_at = rng.choice((-1, rng.randint(0, 8), rng.randint(0, 30), rng.randint(0, 60)))
        again = faults.cancel_at >= 0 and rng.random() < 0.25
        faults.cancel_again_at = faults.cancel_at + rng.randint(1, 12) if again else -1
        faults.now = rng.random() < 0.05
        faults.stop_cleanup = rng.choice((0.0, 0.0, 0.0, 0.1))
        super().__init__(workflow, plan, Table(workflow), order, faults)
        assert plan.undone is not None
        self.body: NodeKey = plan.undone
        region = plan.regions[0].cleanup
        self.undo: NodeKey = (((region, 0),), plan.regions[region].first)
        self.lanes.undoes = {self.undo: self.body}
        self.lanes.share = 1.0
        self.drains: set[NodeKey] = set()
        self.moment = rng  # of the cancel
        self.aborts = rng.random() < 0.2

    def run(self) -> Observed:
        seen = super().run()
        self.check()
        return seen

    # --- the cancel ---

    def cancel(self) -> None:
        """Ends of waits come in the same moment: before the cancel, which has them, or after it, when most waits are
        closed. The process is killed before, after, or both."""
        self._kill()
        for _ in range(self.moment.choice((0, 0, 1, 2))):
            self._an_end()
        open_before = set(self.watch.waits)
        if self.aborts:
            error = e.ErrorInfo("run_timeout", "the time of the run is over")
            self.feed(f.RunAborted(self.now_ms, error, self.faults.now))
        else:
            super().cancel()
        for key, number in sorted(open_before - set(self.watch.waits)):
            late = f.WaitAnswered(self.now_ms, key, number)
            require(self.feed(late) == [], "a wait is answered that the cancel has closed")
        for _ in range(self.moment.choice((0, 0, 1, 2))):
            self._an_end()
        self._kill()

    def feed(self, fact: f.Fact) -> list[e.Event]:
        asks = isinstance(fact, f.CancelRequested) and fact.asked
        again = asks and self.state.cancelled and self.state.phase is RunPhase.RUNNING
        events = super().feed(fact)
        is_now = any(isinstance(event, e.RunCancelling) and event.now for event in events)
        require(is_now or not again, "a second cancel does not end the compensation")
        return events

    def _kill(self) -> None:
        if self.moment.random() < 0.3 and not self.watch.seen.status:
            self._crash()

    def _an_end(self) -> None:
        if self.watch.waits and not self.watch.seen.status:
            self.feed(self._answer(*self.moment.choice(sorted(self.watch.waits))))

    # --- attempts that are stopped ---

    def _obey(self, command: c.Command) -> None:
        super()._obey(command)
        if isinstance(command, c.CancelNode):
            (self.drains.add if command.drains else self.drains.discard)(command.key)

    def _outcome(self, key: NodeKey, attempt: int) -> f.Fact | None:
        if key in self.stopped and key in (self.body, self.undo):
            return self._stops(key, attempt)
        fact = super()._outcome(key, attempt)
        if key == self.undo and isinstance(fact, f.NodeDone):
            entry = self.lanes.entry(key, attempt, self.state)
            if not entry.program.cancelled:
                return f.NodeErred(self.now_ms, key, attempt, e.ErrorInfo("cancelled_late", "nothing was undone"))
        return fact

    def _stops(self, key: NodeKey, attempt: int) -> f.Fact | None:
        """No step begins any more. One that changes something ends before the attempt does, others are cancelled; when
        nothing waits for them, all are left alone."""
        entry, rng = self.lanes.entry(key, attempt, self.state), self.moment
        if key in self.drains and entry.under_way:
            n = entry.under_way.pop(rng.randrange(len(entry.under_way)))
            error = e.ErrorInfo("scripted", "the step failed") if rng.random() < 0.2 else None
            if entry.known_effect(n) != "write":
                error = e.ErrorInfo("cancelled", "stopped") if rng.random() < 0.8 else error
            event = e.StepFinished(key, attempt, n, error=error)
            evolve(self.plan, self.state, event)
            self.keep(event, self.now_ms)
            return None
        if not entry.under_way and rng.random() < 0.2:
            return f.HandlerLeft(self.now_ms, key, attempt, received_seq=entry.received_seq)
        if not entry.program.pending and rng.random() < 0.5:
            return f.NodeDone(self.now_ms, key, attempt)
        return f.NodeErred(self.now_ms, key, attempt, e.ErrorInfo("cancelled", "stopped"))

    # --- what must hold ---

    def check(self) -> None:
        """There is one end, with the status of its cause, and at it nothing is under way (the rest of this is in
        `watch.py`). After the cancel nothing begins but the compensation: no attempt of the function, and no step but
        those that the code calls after it was cancelled. The compensation begins once, if and only if the function was
        under way and has not ended all the same, and after its child runs. It knows each step whose end was recorded
        before it, and no other one; it receives them before the cancel, and asks what became of one whose outcome is
        unknown. It begins nothing after its time is over, or after a second cancel."""
        journal = self.watch.seen.journal
        state = self.state
        require(
            not (self.attempts or state.running or state.waits or state.retries), "something is under way at the end"
        )
        require(sum(isinstance(event, e.RunFinished) for event in journal) == 1, "a run has one end")
        cancel = next((n for n, event in enumerate(journal) if isinstance(event, e.RunCancelling)), len(journal))
        before, after = journal[:cancel], journal[cancel:]
        began = any(isinstance(event, e.NodeStarted) and event.key == self.body for event in before)
        opened = [n for n, event in enumerate(after) if isinstance(event, e.CleanupOpened)]
        over = any(_decides(event, self.body) for event in before)
        over |= any(isinstance(event, e.NodeSucceeded) and event.key == self.body for event in after)
        at_once = [n for n, event in enumerate(after) if n and isinstance(event, e.RunCancelling) and event.now]
        at_once += [0] if after and isinstance(after[0], e.RunCancelling) and after[0].now else []
        stopped = [n for n, event in enumerate(after) if isinstance(event, e.CleanupStopped)]
        if not after or over or not began:
            require(not opened, "something is undone, and nothing was under way")
        elif not at_once:
            require(len(opened) == 1, "a function that was under way is not undone")
        ends = min([*at_once, *stopped, len(after)])
        calls = {event.n for event in before if isinstance(event, e.StepStarted) and event.key == self.body}
        if any(isinstance(event, e.RetryScheduled) and _forgets(event, self.body) for event in before):
            calls = set()  # what it does again may be something else
        for n, event in enumerate(after):
            if isinstance(event, e.NodeStarted | e.StepStarted):
                require(event.key == self.undo, f"after the cancel begins {event}")
                require(n < ends, f"after the end of the compensation begins {event}")
            if isinstance(event, e.StepStarted):
                require(event.n not in calls, f"step {event.n} begins again in the compensation")
        self._children(journal, cancel, ends)
        if opened:
            self._knows(journal[: cancel + opened[0]])
        status = "cancelled" if not self.aborts else "failed"
        if after:
            require(self.watch.seen.status == status, f"a run that ends as {status} ended as {self.watch.seen.status}")

    def _children(self, journal: list[e.Event], cancel: int, ends: int) -> None:
        """The child runs for which the function waits end first, unless nothing is undone."""
        of = {(event.key, event.attempt): event.kind for event in journal if isinstance(event, e.WaitOpened)}
        for event in journal[cancel : cancel + ends]:
            if isinstance(event, e.WaitClosed) and event.key == self.body and event.outcome == "cancelled":
                require(of[event.key, event.attempt] != "child", "a child run is not waited for")

    def _knows(self, before: list[e.Event]) -> None:
        """Each step of the function that had ended is among what the code of the compensation received before its
        cancel, unless it has given the call up. A failed one is not, if the function was to be tried again."""
        cancel = next((n for n, event in enumerate(before) if isinstance(event, e.RunCancelling)), 0)
        ended: dict[int, bool] = {}
        unsure: set[int] = set()  # they may be known or not
        lost: set[int] = set()
        for at, event in enumerate(before):
            if isinstance(event, e.StepFinished) and event.key == self.body:
                is_stopped = at > cancel and event.error is not None and event.error.code in STOPPED
                ended |= {} if is_stopped else {event.n: event.error is not None}
                lost.discard(event.n)
            elif isinstance(event, e.StepStarted) and event.key == self.body:
                ended.pop(event.n, None)  # it is done again
                unsure.discard(event.n)
                lost.discard(event.n)
            elif isinstance(event, e.StepLost) and event.key == self.body:
                (lost.discard if event.again else lost.add)(event.n)
            elif isinstance(event, e.RetryScheduled) and _forgets(event, self.body):
                unsure |= {n for n, failed in ended.items() if failed}
        later = self.watch.seen.journal[len(before) :]
        unsure |= {event.n for event in later if isinstance(event, e.StepFinished) and event.key == self.undo}
        seen = self.lanes.cancelled
        if seen is not None:
            missing = {(n, failed) for n, failed in ended.items() if n not in seen.given_up | unsure} - seen.received
            require(not missing, f"the compensation does not know the ends {sorted(missing)}")
            asked = {event.step for event in later if isinstance(event, e.WaitOpened) and event.key == self.undo}
            require(lost - seen.given_up <= asked, "the compensation does not ask about steps whose outcome is unknown")
            unknown = {n for n, _ in seen.received} - ended.keys() - unsure
            require(not unknown, f"the compensation receives ends of steps {sorted(unknown)}, which have none")


def _forgets(event: e.RetryScheduled, key: NodeKey) -> bool:
    """Return whether steps that failed last are done again."""
    return event.key == key and event.error.code not in (e.LOST, e.CODE)


def _decides(event: e.Event, key: NodeKey) -> bool:
    return isinstance(event, e.NodeSucceeded | e.NodeFailed) and event.key == key
