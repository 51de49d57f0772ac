"""The policy: a fact comes in, events go out. Whatever could be decided otherwise tomorrow is decided, and
recorded, here.

`decide` applies each event with `evolve` the moment it is made, so that later decisions of the same fact see it. It
never looks at payloads, clocks or chance: the time is `fact.at_ms`.

Order of one call: the fact's own events, then everything that follows without any further fact: containers that leave
or open scopes, aborted containers that fail, reused nodes; then due retries and ready nodes start, first in first out,
as far as the limits allow; then the run parks or finishes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from msgspec.structs import replace

from compiler.keys import NodeKey, Path
from compiler.plan import Node, Plan
from executor.kernel.core import commands as c
from executor.kernel.core import facts as f
from executor.kernel.core.events import (
    Caught,
    CleanupOpened,
    CleanupStopped,
    Deferred,
    ErrorInfo,
    Event,
    NodeFailed,
    NodeSkipped,
    NodeStarted,
    NodeSucceeded,
    RegionExited,
    RegionSized,
    RetryHastened,
    RetryScheduled,
    RunCancelling,
    RunContinuing,
    RunEnd,
    RunFinished,
    RunForked,
    RunParked,
    RunStarted,
    ScopesOpened,
    StepFinished,
    StepLost,
    StepStarted,
    WaitClosed,
    WaitOpened,
    WaitOutcome,
)
from executor.kernel.core.evolve import FORKED, LOST, cleanup_of, evolve
from executor.kernel.core.state import Cleanup, Due, RunPhase, State, Wait, deferred_pause_ms, delay_ms

# A run with nothing to do for less than this stays in memory: parking and claiming costs two commits.
PARK_MIN_MS = 2_000
# A block that takes its process down with it must not do so for ever: after so many losses a person is asked.
LOST_ATTEMPTS_MAX = 10
# Losses that other runs had part in, such as a machine that runs out of memory, count for this limit alone.
LOST_TOGETHER_MAX = 100

# A name of this module costs a tenth of a look-up in the enum (CPython 3.11: 0.01 and 0.1 us).
_RUNNING, _STOPPING, _FAILING, _CANCELLING, _FINISHED = (
    RunPhase.RUNNING,
    RunPhase.STOPPING,
    RunPhase.FAILING,
    RunPhase.CANCELLING,
    RunPhase.FINISHED,
)

CANCELLED = ErrorInfo("cancelled", "the result is no longer needed")
LOST_ERROR = ErrorInfo(LOST, "the process that ran this attempt has ended", retryable=True)
_AWAITED = {"signal": "signal", "webhook": "callback"}  # by kind of wait; else an answer

ATTEMPT_ENDED = (
    f.NodeDone,
    f.RegionSizeKnown,
    f.LoopTested,
    f.NodePassed,
    f.NodeErred,
    f.NodeSuspended,
    f.AttemptLost,
)


def decide(plan: Plan, state: State, fact: f.Fact) -> list[Event]:
    """Events that follow from `fact`, already applied to `state`. Stale facts (an attempt that is over, a wait that is
    closed, a timer before its time) give no events."""
    if state.phase is _FINISHED:
        return []
    turn = _Turn(plan, state, fact.at_ms)
    if turn.record(fact):
        turn.advance()
    return turn.events


def first_event(start: f.StartRequested) -> RunStarted:
    """Return the first event of a new run."""
    return RunStarted(start.run, 1, start.reuse, start.stop_after, start.source_run, start.by)


class _Turn:
    """One call of decide: the events so far."""

    __slots__ = ("at_ms", "events", "plan", "state")

    def __init__(self, plan: Plan, state: State, at_ms: int) -> None:
        self.plan = plan
        self.state = state
        self.at_ms = at_ms
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        pruned = evolve(self.plan, self.state, event)
        self.events.append(event)
        for key, because in pruned:
            told = NodeSkipped(key, "pruned", because)
            evolve(self.plan, self.state, told)
            self.events.append(told)

    # --- the fact itself ---

    def record(self, fact: f.Fact) -> bool:
        """Record the events of `fact`. Returns False if it is stale."""
        state = self.state
        if isinstance(fact, ATTEMPT_ENDED):  # by far the most frequent
            if state.running.get(fact.key) != fact.attempt:
                return False
            self._attempt_ended(fact)
            return True
        match fact:
            case f.StartRequested():
                if state.phase is not RunPhase.NEW:
                    return False
                self.emit(first_event(fact))
            case f.Recovered():
                return state.phase is not RunPhase.NEW
            case f.CancelRequested() | f.RunAborted():
                return self._end_wanted(fact)
            case f.TimerFired():
                return self._timer_fired(fact)
            case f.WaitAnswered() | f.WaitFailed() | f.WaitRetried():
                return self._wait_over(fact)
            case f.RetryWanted():
                attempt, due_ms = state.retries.get(fact.key, (0, 0))
                if attempt != fact.attempt or due_ms <= self.at_ms:
                    return False
                self.emit(RetryHastened(fact.key, attempt, self.at_ms))
            case f.ForkMade():
                self.emit(RunForked(fact.source, fact.seq))
                error = ErrorInfo(FORKED, "the run was forked while this attempt was running", retryable=True)
                for key, attempt in list(state.running.items()):
                    if state.scopes[key[0]].dead:  # it was only draining, and is not needed here either
                        self._fail(key, attempt, CANCELLED)
                    else:
                        self._lose_steps(key, attempt, again=True)
                        self.emit(RetryScheduled(key, attempt, self.at_ms, error))
                self._close_waits(self._dead_waits())
                for key in list(state.waits):
                    self._leave_children(key, error)
                return False  # nothing starts yet
            case _:
                assert_never(fact)
        return True

    def _leave_children(self, key: NodeKey, error: ErrorInfo) -> None:
        """The child runs that this node waits for are those of the other run. It starts others here, together with what
        comes after its other waits."""
        steps = self.state.steps.get(key)
        last = 0 if steps is None else steps.last_wait
        for attempt, wait in list(self.state.waits[key].items()):
            if wait.kind == "child":
                self._close(key, attempt, "answered")
                if wait.step is not None:
                    self.emit(StepLost(key, attempt, wait.step, True))
                last = max(last, attempt)
        if key not in self.state.waits:
            self.emit(RetryScheduled(key, last, self.at_ms, error))

    def _end_wanted(self, fact: f.CancelRequested | f.RunAborted) -> bool:
        """A run with cleanups is cancelled once, and a second time without them."""
        state = self.state
        if state.phase is _CANCELLING:
            return False
        now = fact.now and self.plan.has_cleanup
        if isinstance(fact, f.RunAborted):
            if state.ending is not None and not now:
                return False
            self.emit(RunCancelling(fact.error.code, fact.error, now))
            return True
        if state.cancelled:
            now = now or fact.asked
            if not now:
                return False
        self.emit(RunCancelling(fact.reason, now=now))
        return True

    def _attempt_ended(
        self,
        fact: f.NodeDone
        | f.NodePassed
        | f.NodeErred
        | f.NodeSuspended
        | f.RegionSizeKnown
        | f.LoopTested
        | f.AttemptLost,
    ) -> None:
        key, attempt = fact.key, fact.attempt
        # Nothing new may follow from an attempt in a run or a subtree that is being given up: it only drains.
        draining = self.state.phase is _CANCELLING or self.state.scopes[key[0]].dead
        if self.state.steps:
            self._lose_steps(key, attempt)
        match fact:
            case f.NodeDone():
                ends = fact.end_run and not draining and self.state.phase is not _FAILING
                if ends and fact.as_new:
                    self.emit(RunContinuing(key))
                self.emit(NodeSucceeded(key, attempt, fact.route, False, ends, fact.cached))
                if ends and not self.plan.has_cleanup:
                    self._close_waits()
                    self._finish("succeeded")
            case f.NodePassed():
                self.emit(NodeSkipped(key, "skip_if", attempt=attempt))
            case f.NodeErred():
                self._erred(key, attempt, fact.error, fact.retry_at_ms, fact.deferred)
            case f.AttemptLost():
                self._lost(key, attempt, fact.together, fact.ask)
            case f.NodeSuspended():
                if draining or self.state.phase is _FAILING:
                    self._fail(key, attempt, CANCELLED)
                else:
                    self._suspend(fact)
            case f.RegionSizeKnown():
                self.emit(RegionSized(key, attempt, fact.count))
            case f.LoopTested():
                body = self.plan.nodes[key[1]].body
                container = self.state.containers.get((key[0], body))
                if draining or container is None:
                    self._fail(key, attempt, CANCELLED)
                elif fact.again:
                    self.emit(ScopesOpened((key[0], self.plan.regions[body].start), container.opened, 1))
                elif not self._clean_up(key):
                    self.emit(RegionExited(key, container.opened))
            case _:
                assert_never(fact)

    def _suspend(self, fact: f.NodeSuspended) -> None:
        key, attempt = fact.key, fact.attempt
        for step in (fact.step, *(wait.step for wait in fact.beside)):
            if step is not None and not step.lost:
                self.emit(StepStarted(key, attempt, step.n, "wait", step.name, step.input_hash, "none"))
        n = None if fact.step is None else fact.step.n
        self.emit(WaitOpened(key, attempt, fact.kind, fact.due_ms, fact.on_expire, n))
        for number, wait in enumerate(fact.beside, attempt + 1):
            self.emit(WaitOpened(key, number, wait.kind, wait.due_ms, wait.on_expire, wait.step.n, beside=True))

    def _close(self, key: NodeKey, attempt: int, outcome: WaitOutcome, by: str | None = None) -> None:
        self.emit(WaitClosed(key, attempt, outcome, by, len(self.state.waits[key]) - 1))

    def _wait_over(self, fact: f.WaitAnswered | f.WaitFailed | f.WaitRetried) -> bool:
        key, attempt = fact.key, fact.attempt
        wait = self.state.wait_of(key, attempt)
        if wait is None or (isinstance(fact, f.WaitRetried) and wait.kind != "attention"):
            return False
        self._close(key, attempt, "answered", fact.by)
        match fact:
            case f.WaitAnswered() if wait.step is not None:
                self.emit(StepFinished(key, attempt, wait.step))
            case f.WaitFailed() if wait.step is not None:
                self.emit(StepFinished(key, attempt, wait.step, error=fact.error))
            case f.WaitAnswered():
                self.emit(NodeSucceeded(key, attempt, fact.route))
            case f.WaitFailed():
                self._erred(key, attempt, fact.error)
            case f.WaitRetried():
                if wait.step is not None:
                    self.emit(StepLost(key, attempt, wait.step, True))
                self.emit(RetryScheduled(key, attempt, self.at_ms, LOST_ERROR))
        return True

    def _timer_fired(self, fact: f.TimerFired) -> bool:
        key = fact.key
        if not fact.attempt:
            return self._stop_cleanup(key)
        retry = self.state.retries.get(key)
        if retry is not None:
            return retry[0] == fact.attempt and retry[1] <= self.at_ms  # `advance` starts what is due
        wait = self.state.wait_of(key, fact.attempt)
        if wait is None or wait.due_ms is None or wait.due_ms > self.at_ms:
            return False
        self._close(key, wait.attempt, "fired" if wait.kind == "timer" else "expired")
        if wait.step is not None:
            self.emit(StepFinished(key, wait.attempt, wait.step, error=fact.error or _expiry_error(wait)))
            return True
        if fact.error is not None:
            self._fail(key, wait.attempt, fact.error)
            return True
        if wait.kind == "timer":
            self.emit(NodeSucceeded(key, wait.attempt))
            return True
        match wait.on_expire:
            case "fail":
                self._fail(key, wait.attempt, _expired(wait))
            case "skip":
                self.emit(NodeSkipped(key, "expired", attempt=wait.attempt))
            case "continue":
                self.emit(NodeSucceeded(key, wait.attempt))
            case action:
                self.emit(NodeSucceeded(key, wait.attempt, route_of_action(self.plan.nodes[key[1]], action)))
        return True

    # --- failure ---

    def _erred(
        self,
        key: NodeKey,
        attempt: int,
        error: ErrorInfo,
        retry_at_ms: int | None = None,
        deferred: Deferred | None = None,
    ) -> None:
        retry = self.plan.nodes[key[1]].policy.retry
        times, waited_ms = self.state.deferred.get(key, (0, 0))
        steps = self.state.steps.get(key)
        counted = attempt - self.state.lost.get(key, 0) - times - (0 if steps is None else steps.entries)
        if deferred == "asked" and retry.max_attempts == 1:
            deferred = None  # retries are switched off: an answer is an answer
        if deferred is not None and self._may_go_on(key):
            asked_ms = None if retry_at_ms is None else retry_at_ms - self.at_ms
            back_off_ms = delay_ms(retry, self.state.run, key, counted + times)
            pause_ms = deferred_pause_ms(asked_ms, back_off_ms, times, waited_ms)
            if pause_ms is not None:
                self.emit(RetryScheduled(key, attempt, self.at_ms + pause_ms, error, deferred, pause_ms))
                return
        if error.retryable and counted < retry.max_attempts and self._may_go_on(key):
            due_ms = self.at_ms + delay_ms(retry, self.state.run, key, counted)
            if retry_at_ms is not None:
                due_ms = max(self.at_ms, retry_at_ms)
            self.emit(RetryScheduled(key, attempt, due_ms, error))
        else:
            self._fail(key, attempt, error)

    def _lost(self, key: NodeKey, attempt: int, together: bool, ask: bool) -> None:
        on_lost = self.plan.nodes[key[1]].policy.on_lost
        if ask and on_lost == "retry":
            on_lost = "ask"
        dead = self.state.phase not in (_RUNNING, _STOPPING) or self.state.scopes[key[0]].dead
        if dead or on_lost == "fail":
            self._fail(key, attempt, LOST_ERROR)
        elif on_lost == "retry" and self._may_go_on(key) and self._may_be_lost_again(key, together):
            self.emit(RetryScheduled(key, attempt, self.at_ms, LOST_ERROR, together=together))
        else:
            self.emit(WaitOpened(key, attempt, "attention"))

    def _lose_steps(self, key: NodeKey, attempt: int, again: bool = False) -> None:
        """Record the loss of steps that the attempt began and did not finish. A step that changed something outside is
        not done again unasked: the handler that comes to it waits for a person. With `again` all of them are done
        again."""
        steps = self.state.steps.get(key)
        if steps is not None:
            for n, step in list(steps.by_n.items()):
                if step.under_way:
                    self.emit(StepLost(key, attempt, n, again or step.effect != "write"))

    def _may_be_lost_again(self, key: NodeKey, together: bool) -> bool:
        lost, with_others = self.state.lost.get(key, 0), self.state.together.get(key, 0)
        return lost < LOST_TOGETHER_MAX and (together or lost - with_others < LOST_ATTEMPTS_MAX)

    def _may_go_on(self, key: NodeKey) -> bool:
        return self.state.phase is _RUNNING and not self.state.scopes[key[0]].dead

    def _fail(self, key: NodeKey, attempt: int, error: ErrorInfo) -> None:
        """No attempt is left: the node's error edges, on_error continue, an enclosing catcher, or the run."""
        node = self.plan.nodes[key[1]]
        if not error.block:
            error = replace(error, block=node.block)
        if self.state.scopes[key[0]].dead:
            self.emit(NodeFailed(key, attempt, error))
            return
        if node.sentinel == "end" and self._clean_up(key, error):
            return
        route = _route_on_failure(node)
        caught = None if route else self._catcher(key[0])
        self.emit(NodeFailed(key, attempt, error, route, caught))
        if caught and self.state.waits:
            path = caught[1]
            whole = caught[0] == "container"
            depth = len(path)
            self._close_waits(
                [
                    other
                    for other in self.state.waits
                    if self.state.scopes[other[0]].dead
                    and len(other[0]) >= depth
                    and other[0][: depth - 1] == path[:-1]
                    and (other[0][depth - 1] == path[-1] or (whole and other[0][depth - 1][0] == path[-1][0]))
                ]
            )

    def _catcher(self, path: Path) -> Caught | None:
        for depth in range(len(path), 0, -1):
            region = self.plan.regions[path[depth - 1][0]]
            if region.kind == "cleanup":
                return "cleanup", path[:depth]
            if region.kind == "parallel" and region.on_branch_error != "fail":
                return "branch", path[:depth]
            if region.cleanup >= 0 or _route_on_failure(self.plan.nodes[region.end]):
                return "container", path[:depth]
        return None

    def _close_waits(self, keys: Iterable[NodeKey] | None = None) -> None:
        for key in list(self.state.waits if keys is None else keys):
            for attempt in list(self.state.waits[key]):
                self._close(key, attempt, "cancelled")

    # --- cleanups ---

    def _clean_up(self, key: NodeKey, error: ErrorInfo | None = None) -> bool:
        """Begin the cleanup of the container with this end sentinel, or of the root. False: it has none, or has had
        it, or the run ends at once."""
        region = cleanup_of(self.plan, key[1])
        if region < 0 or self.state.phase is not _RUNNING:
            return False
        body = self.plan.nodes[key[1]].body
        container = self.state.containers.get((key[0], body)) if body >= 0 else None
        if body >= 0 and (container is None or container.cleanup is not Cleanup.NOT_BEGUN):
            return False
        given_up = body >= 0 and self.state.scopes[key[0]].dead
        self.emit(CleanupOpened(key, self.at_ms + self.plan.settings.cleanup_timeout_ms, error, given_up))
        return True

    def _stop_cleanup(self, key: NodeKey) -> bool:
        due_ms = self.state.cleanups.get(key)
        if due_ms is None or due_ms > self.at_ms:
            return False
        seconds = self.plan.settings.cleanup_timeout_ms / 1000
        message = f"the cleanup took longer than {seconds:g} s (settings.cleanup_timeout_s)"
        self.emit(CleanupStopped(key, ErrorInfo("cleanup_timeout", message, block=self.plan.nodes[key[1]].block)))
        self._close_waits(self._dead_waits())
        return True

    def _dead_waits(self) -> list[NodeKey]:
        return [key for key in self.state.waits if self.state.scopes[key[0]].dead]

    # --- what follows without a further fact ---

    def advance(self) -> None:
        state = self.state
        if state.phase is _RUNNING:
            if state.ending is not None:
                self._give_up_waits()
            while self._settle():
                pass
            self._start_ready()
            # A container may have failed, or a limit of the run let nothing start: cleanups do.
            while state.ending is not None and (self._give_up_waits() or self._settle()):
                self._start_ready()
        if state.waits and state.phase in (_FAILING, _CANCELLING):
            self._close_waits()
        if not state.running and state.phase is not _FINISHED:
            self._rest()

    def _give_up_waits(self) -> bool:
        """Close the waits of a run that ends by its cleanups. Returns True if there were some."""
        dead = self._dead_waits()
        self._close_waits(dead)
        return bool(dead)

    def _settle(self) -> bool:
        """Containers and reused nodes. True when something changed: it may have consequences of its own."""
        state = self.state
        root_cleanup = (
            state.root_closed and self.plan.regions[0].cleanup >= 0 and state.root_cleanup is Cleanup.NOT_BEGUN
        )
        if not (
            state.failed_ends or state.exits or state.reusing or state.opening or state.due_cleanups or root_cleanup
        ):
            return False
        if state.phase is not _RUNNING:
            return False
        before = len(self.events)
        if root_cleanup:
            self._clean_up(((), self.plan.regions[0].entries[0]))
        for key in list(state.due_cleanups):
            self._clean_up(key)
        for key in list(state.failed_ends):
            if key in state.failed_ends:
                self._fail_end(key, state.failed_ends[key])
        for key in list(state.exits):
            if key in state.exits:
                self._exit(key)
        for key in list(state.reusing):
            node = self.plan.nodes[key[1]]
            route = state.reuse[key[1]]
            if node.sentinel == "start" and route != "error":
                self.emit(RegionSized(key, 0, 0))
            else:
                self.emit(NodeSucceeded(key, 0, route, reused=True))
        for container_key in list(state.opening):
            if container_key in state.opening:
                self._open(container_key)
        return len(self.events) > before

    def _exit(self, key: NodeKey) -> None:
        path, number = key
        reused = not path and number in self.state.reuse
        if reused and self.state.reuse[number] == "error":
            self.emit(NodeSucceeded(key, 0, "error", reused=True))
            return
        if not reused and self._clean_up(key):
            return
        container = self.state.containers[(path, self.plan.nodes[number].body)]
        self.emit(RegionExited(key, container.opened, reused))

    def _fail_end(self, key: NodeKey, error: ErrorInfo) -> None:
        """A container whose body was given up, or whose cleanup is over."""
        route = _route_on_failure(self.plan.nodes[key[1]])
        if route is None:  # it failed for its cleanup alone: what is around it catches the error
            self._fail(key, 1, error)
        elif not self._clean_up(key, error):
            self.emit(NodeFailed(key, 1, error, route))

    def _open(self, container_key: tuple[Path, int]) -> None:
        path, body = container_key
        container = self.state.containers[container_key]
        region = self.plan.regions[body]
        room = (region.limit or 1) - (container.opened - container.closed)
        count = 1 if region.kind == "loop" else min(container.count - container.opened, room)
        self.emit(ScopesOpened((path, region.start), container.opened, count))

    def _start_ready(self) -> None:
        state = self.state
        while state.ready[0] and state.phase is _RUNNING:
            key = state.ready[0][0][1]
            if self._must_wait(key):
                break  # what is ready after it starts when the other one is done, in this very turn of the run
            if not self._start(key, 1):
                return
        if state.retries:
            self._start_due_retries()
        slots_max, only = self.plan.settings.max_concurrency, len(self.plan.groups) == 1
        while state.slots[0] < slots_max and state.phase is _RUNNING:
            group = 0 if only else self._next_group()
            if group < 0 or not (queue := state.ready[group + 1]) or not self._start(queue[0][1], 1):
                return

    def _start(self, key: NodeKey, attempt: int) -> bool:
        """Start a node. Returns False if the run's budget of executions is used up: the run fails."""
        limit = self.plan.settings.max_executions
        used_up = self.state.executed >= limit and self.plan.nodes[key[1]].sentinel is None
        if used_up and not self.plan.in_cleanup(key[0]):
            message = f"the run can execute at most {limit} blocks (settings.max_executions)"
            self.emit(NodeFailed(key, attempt, ErrorInfo("limit_executions", message)))
            return False
        self.emit(NodeStarted(key, attempt))
        return True

    def _start_due_retries(self) -> None:
        state, plan = self.state, self.plan
        held: list[Due] = []
        while True:
            full = state.slots[0] >= plan.settings.max_concurrency
            due = state.dues.pop_retry(state, self.at_ms, inline_only=full)
            if due is None:
                break
            _, key, attempt = due
            node = plan.nodes[key[1]]
            group = 0 if node.inline else node.policy.group
            if self._must_wait(key) or (group and state.slots[group] >= plan.groups[group].limit):
                held.append(due)
            else:
                self.emit(NodeStarted(key, attempt))
        for due in held:
            state.dues.put_back(due, plan.nodes[due[1][1]].inline)

    def _must_wait(self, key: NodeKey) -> bool:
        """Returns True if the node would end the run, and another that ends it is running. The first of them decides
        how the run ends."""
        nodes = self.plan.nodes
        return nodes[key[1]].ends_run and any(nodes[other[1]].ends_run for other in self.state.running)

    def _next_group(self) -> int:
        """Return the group whose first ready node has waited longest and may start; -1 if none may."""
        state, groups = self.state, self.plan.groups
        best, best_ticket = -1, 0
        for group in range(len(groups)):
            queue = state.ready[group + 1]
            if not queue or (group and state.slots[group] >= groups[group].limit):
                continue
            if best < 0 or queue[0][0] < best_ticket:
                best, best_ticket = group, queue[0][0]
        return best

    # --- nothing runs ---

    def _rest(self) -> None:
        """Finish, park, or notice that the run is stuck."""
        state = self.state
        match state.phase:
            case RunPhase.CANCELLING:
                self._finish("failed" if state.error else "cancelled", state.error)
            case RunPhase.FAILING:
                self._finish("failed", state.error)
            case RunPhase.STOPPING:
                self._close_waits()
                self._finish("succeeded")
            case RunPhase.RUNNING if state.root_closed and state.root_cleanup is not Cleanup.OPEN:
                self._finish(*(state.ending or ("succeeded", None)))
            case RunPhase.RUNNING if any(state.ready):
                pass  # the run may start nothing now: its process goes down
            case RunPhase.RUNNING if state.waits or state.retries:
                due_ms = state.due_ms()
                if due_ms is None or due_ms > self.at_ms + PARK_MIN_MS:
                    self.emit(RunParked(due_ms))
            case RunPhase.RUNNING:
                open_nodes = sum(scope.open for scope in state.scopes.values())
                message = f"{open_nodes} nodes are undecided, but none is running, waiting or ready"
                self._finish("failed", ErrorInfo("internal_undecided", message))
            case _:
                pass

    def _finish(self, status: RunEnd, error: ErrorInfo | None = None) -> None:
        self.emit(RunFinished(status, error))


def _expired(wait: Wait) -> ErrorInfo:
    return ErrorInfo("wait_expired", f"no {_AWAITED.get(wait.kind, 'answer')} arrived in time")


def _expiry_error(wait: Wait) -> ErrorInfo | None:
    """Return the error of an expired wait that is a step, or None."""
    return _expired(wait) if wait.kind != "timer" and wait.on_expire == "fail" else None


def _route_on_failure(node: Node) -> str | None:
    """Return the handle by which a failed node continues: `error` if wired, `out` if on_error is continue, else
    None."""
    if any(edge.handle == "error" for edge in node.out):
        return "error"
    return "out" if node.policy.on_error == "continue" else None


def route_of_action(node: Node, action: str | None) -> str:
    """Return the handle an answer follows: the action's own if it is wired, else `out`."""
    return action if action is not None and any(edge.handle == action for edge in node.out) else "out"


def commands_of(plan: Plan, state: State, events: Iterable[Event]) -> list[c.Command]:
    """Return the commands for the runtime after these events are committed, in order. `state` is the state after
    them."""
    out: list[c.Command] = []
    for event in events:
        kind = type(event)
        if kind is NodeSucceeded or kind is ScopesOpened:  # most have one of these types: checked first
            if kind is NodeSucceeded and event.end_run:  # type: ignore[union-attr]  # `kind` is its type
                out += [c.CancelNode(key) for key in state.running if state.scopes[key[0]].dead]
            continue
        if kind is NodeStarted:
            out.append(c.RunNode(event.key, event.attempt))  # type: ignore[union-attr]  # `kind` is its type
            continue
        match event:
            case RetryScheduled() if event.key in state.retries:
                out.append(c.SetTimer(event.key, event.attempt + 1, event.due_ms))
            case RetryHastened() if event.key in state.retries:
                out.append(c.SetTimer(event.key, event.attempt, event.due_ms))
            case WaitOpened() if event.due_ms is not None:
                out.append(c.SetTimer(event.key, event.attempt, event.due_ms))
            case RunCancelling():
                everything = state.phase is not _RUNNING
                out += [c.CancelNode(key) for key in state.running if everything or state.scopes[key[0]].dead]
            case CleanupOpened() if event.key in state.cleanups:
                out.append(c.SetTimer(event.key, 0, event.due_ms))
            case CleanupStopped():
                out += [c.CancelNode(key) for key in state.running if state.scopes[key[0]].dead]
            case NodeFailed() if event.route is None and plan.settings.on_failure == "cancel":
                everything = event.caught is None and state.phase is _FAILING
                if everything or state.aborts:  # else no scope is dead
                    out += [c.CancelNode(key) for key in state.running if everything or state.scopes[key[0]].dead]
            case RunParked():
                out.append(c.Park(event.due_ms))
            case RunFinished():
                out.append(c.Finish(event.status))
            case _:
                pass
    return out


def outstanding(plan: Plan, state: State) -> list[c.Command]:
    """Return, after a crash, the attempts without an end (the runtime turns each into AttemptLost) and the timers to
    set."""
    out: list[c.Command] = [c.RunNode(key, attempt) for key, attempt in state.running.items()]
    out += [c.SetTimer(key, attempt, due_ms) for key, (attempt, due_ms) in state.retries.items()]
    out += [c.SetTimer(key, 0, due_ms) for key, due_ms in state.cleanups.items()]
    out += [c.SetTimer(key, wait.attempt, wait.due_ms) for key, wait in state.open_waits() if wait.due_ms is not None]
    return out
