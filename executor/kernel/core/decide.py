"""The policy: a fact comes in, events go out. Whatever could be decided otherwise tomorrow is decided, and
recorded, here.

`decide` applies each event with `evolve` the moment it is made, so that later decisions of the same fact see it. It
never looks at payloads, clocks or chance: the time is `fact.at_ms`.

Order of one call: the fact's own events, then everything that follows without any further fact: containers that leave
or open scopes, aborted containers that fail, reused nodes; then due retries and ready nodes start, first in first out,
as far as the limits allow; then the run parks or finishes. `decide_attempts` has the rules that a plain
run does not need.
"""

from __future__ import annotations

from typing import Final, assert_never

from compiler.keys import NodeKey, Path
from compiler.plan import Plan
from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.aborts import awaits_children, owes_root_cleanup
from executor.kernel.core.decide_attempts import (
    CANCELLED,
    change_waits,
    clean_up,
    close,
    close_waits,
    dead_waits,
    erred,
    fail,
    fork_made,
    left,
    lose_steps,
    lost,
    route_on_failure,
    suspend,
    timer_fired,
    wait_over,
)
from executor.kernel.core.evolve import Turn
from executor.kernel.core.state import Cleanup, Due, RunPhase, State

# A run with nothing to do for less than this stays in memory: parking and claiming costs two commits.
PARK_MIN_MS = 2_000

# A name of this module costs a tenth of a look-up in the enum (CPython 3.11: 0.01 and 0.1 us).
_RUNNING, _STOPPING, _FAILING, _CANCELLING, _FINISHED = (
    RunPhase.RUNNING,
    RunPhase.STOPPING,
    RunPhase.FAILING,
    RunPhase.CANCELLING,
    RunPhase.FINISHED,
)

ATTEMPT_ENDED = (
    f.NodeDone,
    f.RegionSizeKnown,
    f.LoopTested,
    f.NodePassed,
    f.NodeErred,
    f.NodeSuspended,
    f.HandlerLeft,
    f.AttemptLost,
)


_MORE_EXECUTIONS: Final = "Raise `max_executions` (Max block executions) in the settings of the workflow."


def decide(plan: Plan, state: State, fact: f.Fact) -> list[e.Event]:
    """Return the events that follow from `fact`, already applied to `state`; none if the fact is stale."""
    if state.phase is _FINISHED:
        return []
    turn = Turn(plan, state, fact.at_ms)
    if _record(turn, fact):
        _advance(turn)
    return turn.events


def first_event(start: f.StartRequested) -> e.RunStarted:
    return e.RunStarted(
        start.run, 1, start.reuse, start.stop_after, start.source_run, start.by, start.keeps, start.again
    )


def _record(turn: Turn, fact: f.Fact) -> bool:
    state = turn.state
    if isinstance(fact, ATTEMPT_ENDED):  # by far the most frequent
        if state.running.get(fact.key) != fact.attempt:
            return False
        _attempt_ended(turn, fact)
        return True
    match fact:
        case f.StartRequested():
            if state.phase is not RunPhase.NEW:
                return False
            turn.emit(first_event(fact))
        case f.Recovered():
            if state.phase is RunPhase.NEW:
                return False
            if fact.lapsed:
                turn.emit(e.RunRecovered())
        case f.CancelRequested() | f.RunAborted():
            return _end_wanted(turn, fact)
        case f.TimerFired():
            return timer_fired(turn, fact)
        case f.WaitAnswered() | f.WaitFailed() | f.WaitRetried():
            return wait_over(turn, fact)
        case f.HandlerWaits():
            runs = state.running.get(fact.key) == fact.attempt and state.phase not in (_CANCELLING, _FAILING)
            if not runs or state.scopes[fact.key[0]].dead:  # it is stopped, or fails when it leaves
                return False
            change_waits(turn, fact)
        case f.RetryWanted():
            attempt, due_ms = state.retries.get(fact.key, (0, 0))
            if attempt != fact.attempt or due_ms <= turn.at_ms:
                return False
            turn.emit(e.RetryHastened(fact.key, attempt, turn.at_ms))
        case f.ForkMade():
            fork_made(turn, fact)
            return False  # nothing starts yet
        case _:
            assert_never(fact)
    return True


def _end_wanted(turn: Turn, fact: f.CancelRequested | f.RunAborted) -> bool:
    """Record that the run is being cancelled. A second request does so once more, without the cleanups. Returns False
    if nothing changes."""
    state = turn.state
    if state.phase is _CANCELLING:
        return False
    now = fact.now and turn.plan.has_cleanup
    if isinstance(fact, f.RunAborted):
        if state.ending is not None and not now:
            return False
        turn.emit(e.RunCancelling(fact.error.code, fact.error, now))
        return True
    if state.cancelled:
        now = now or fact.asked
        if not now:
            return False
    turn.emit(e.RunCancelling(fact.reason, now=now))
    return True


def _attempt_ended(
    turn: Turn,
    fact: f.NodeDone
    | f.NodePassed
    | f.NodeErred
    | f.NodeSuspended
    | f.HandlerLeft
    | f.RegionSizeKnown
    | f.LoopTested
    | f.AttemptLost,
) -> None:
    key, attempt = fact.key, fact.attempt
    # Nothing new may follow from an attempt in a run or a subtree that is being given up: it only drains.
    draining = turn.state.phase is _CANCELLING or turn.state.scopes[key[0]].dead
    if turn.state.tries:
        lose_steps(turn, key, attempt)
    if key in turn.state.waits and isinstance(fact, f.NodeDone | f.NodePassed):
        close_waits(turn, [key])
    match fact:
        case f.NodeDone():
            ends = fact.end_run and not draining and turn.state.phase is not _FAILING
            if ends and fact.as_new:
                turn.emit(e.RunContinuing(key))
            ended = e.NodeSucceeded(key, attempt, fact.route, False, ends, fact.cached, fact.pinned, fact.from_run)
            turn.emit(ended)
            if ends and not turn.plan.has_cleanup:
                close_waits(turn)
                _finish(turn, "succeeded")
        case f.NodePassed():
            turn.emit(e.NodeSkipped(key, "skip_if", attempt=attempt))
        case f.NodeErred():
            erred(turn, key, attempt, fact.error, fact.retry_at_ms, fact.deferred)
        case f.AttemptLost():
            lost(turn, fact)
        case f.NodeSuspended() | f.HandlerLeft():
            if draining or turn.state.phase is _FAILING:
                fail(turn, key, attempt, CANCELLED)
            elif isinstance(fact, f.HandlerLeft):
                left(turn, fact)
            else:
                suspend(turn, fact)
        case f.RegionSizeKnown():
            turn.emit(e.RegionSized(key, attempt, fact.count))
        case f.LoopTested():
            body = turn.plan.nodes[key[1]].body
            container = turn.state.containers.get((key[0], body))
            if draining or container is None:
                fail(turn, key, attempt, CANCELLED)
            elif fact.again:
                turn.emit(e.ScopesOpened((key[0], turn.plan.regions[body].start), container.opened, 1))
            elif not clean_up(turn, key):
                turn.emit(e.RegionExited(key, container.opened))
        case _:
            assert_never(fact)


# --- what follows without a further fact ---


def _advance(turn: Turn) -> None:
    state = turn.state
    if state.phase is _RUNNING:
        if state.ending is not None:
            _give_up_waits(turn)
        while _advance_containers(turn):
            pass
        _start_ready(turn)
        # A container may have failed, or a limit of the run let nothing start: cleanups do.
        while state.ending is not None and (_give_up_waits(turn) or _advance_containers(turn)):
            _start_ready(turn)
    if state.waits and state.phase in (_FAILING, _CANCELLING):
        close_waits(turn)
    if not state.running and state.phase is not _FINISHED:
        _rest(turn)


def _give_up_waits(turn: Turn) -> bool:
    """Close the waits of a run that ends by its cleanups, but those for child runs that end before. Returns True if
    there were some."""
    before = len(turn.events)
    for key in dead_waits(turn):
        stays = "child" if awaits_children(turn.plan, turn.state, key) else None
        for number in [number for number, wait in turn.state.waits[key].items() if wait.kind != stays]:
            close(turn, key, number, "cancelled")
    return len(turn.events) > before


def _advance_containers(turn: Turn) -> bool:
    """Containers and reused nodes. True when something changed: it may have consequences of its own."""
    state = turn.state
    root_cleanup = state.root_closed and owes_root_cleanup(turn.plan, state)
    if not (state.failed_ends or state.exits or state.reusing or state.opening or state.due_cleanups or root_cleanup):
        return False
    if state.phase is not _RUNNING:
        return False
    before = len(turn.events)
    if root_cleanup:
        clean_up(turn, ((), turn.plan.regions[0].entries[0]))
    for key in list(state.due_cleanups):
        clean_up(turn, key)
    for key in list(state.failed_ends):
        if key in state.failed_ends:
            _fail_end(turn, key, state.failed_ends[key])
    for key in list(state.exits):
        if key in state.exits:
            _exit(turn, key)
    for key in list(state.reusing):
        node = turn.plan.nodes[key[1]]
        route = state.reuse[key[1]]
        if node.sentinel == "start" and route != "error":
            turn.emit(e.RegionSized(key, 0, 0))
        else:
            turn.emit(e.NodeSucceeded(key, 0, route, reused=True))
    for container_key in list(state.opening):
        if container_key in state.opening:
            _open(turn, container_key)
    return len(turn.events) > before


def _exit(turn: Turn, key: NodeKey) -> None:
    path, number = key
    reused = not path and number in turn.state.reuse
    if reused and turn.state.reuse[number] == "error":
        turn.emit(e.NodeSucceeded(key, 0, "error", reused=True))
        return
    if not reused and clean_up(turn, key):
        return
    container = turn.state.containers[(path, turn.plan.nodes[number].body)]
    turn.emit(e.RegionExited(key, container.opened, reused))


def _fail_end(turn: Turn, key: NodeKey, error: e.ErrorInfo) -> None:
    """A container whose body was given up, or whose cleanup is over."""
    route = route_on_failure(turn.plan.nodes[key[1]])
    if route is None:  # it failed for its cleanup alone: what is around it catches the error
        fail(turn, key, 1, error)
    elif not clean_up(turn, key, error):
        turn.emit(e.NodeFailed(key, 1, error, route))


def _open(turn: Turn, container_key: tuple[Path, int]) -> None:
    path, body = container_key
    container = turn.state.containers[container_key]
    region = turn.plan.regions[body]
    room = (region.limit or 1) - (container.opened - container.closed)
    count = 1 if region.kind == "loop" else min(container.count - container.opened, room)
    turn.emit(e.ScopesOpened((path, region.start), container.opened, count))


def _start_ready(turn: Turn) -> None:
    state = turn.state
    while state.ready[0] and state.phase is _RUNNING:
        key = state.ready[0][0][1]
        if _must_wait(turn, key):
            break  # what is ready after it starts when the other one is done, in this very turn of the run
        if not _start(turn, key, 1):
            return
    if state.retries:
        _start_due_retries(turn)
    slots_max, only = turn.plan.settings.max_concurrency, len(turn.plan.groups) == 1
    while state.slots[0] < slots_max and state.phase is _RUNNING:
        group = 0 if only else _next_group(turn)
        if group < 0 or not (queue := state.ready[group + 1]) or not _start(turn, queue[0][1], 1):
            return


def _start(turn: Turn, key: NodeKey, attempt: int) -> bool:
    limit = turn.plan.settings.max_executions
    used_up = turn.state.executed >= limit and turn.plan.nodes[key[1]].sentinel is None
    if used_up and not turn.plan.in_cleanup(key[0]):
        message = f"the run has executed {limit:,} blocks, which is the most that the settings of its workflow permit"
        turn.emit(e.NodeFailed(key, attempt, e.ErrorInfo("limit_executions", message, hint=_MORE_EXECUTIONS)))
        return False
    turn.emit(e.NodeStarted(key, attempt))
    return True


def _start_due_retries(turn: Turn) -> None:
    state, plan = turn.state, turn.plan
    held: list[Due] = []
    while True:
        full = state.slots[0] >= plan.settings.max_concurrency
        due = state.dues.pop_retry(state, turn.at_ms, inline_only=full)
        if due is None:
            break
        _, key, attempt = due
        node = plan.nodes[key[1]]
        group = 0 if node.inline else node.policy.group
        if _must_wait(turn, key) or (group and state.slots[group] >= plan.groups[group].limit):
            held.append(due)
        else:
            turn.emit(e.NodeStarted(key, attempt))
    for due in held:
        state.dues.put_back(due, plan.nodes[due[1][1]].inline)


def _must_wait(turn: Turn, key: NodeKey) -> bool:
    """Returns True if the node would end the run while another that ends it is running: the first one decides."""
    nodes = turn.plan.nodes
    return nodes[key[1]].ends_run and any(nodes[other[1]].ends_run for other in turn.state.running)


def _next_group(turn: Turn) -> int:
    """Return the group whose first ready node has waited longest and may start; -1 if none may."""
    state, groups = turn.state, turn.plan.groups
    best, best_ticket = -1, 0
    for group in range(len(groups)):
        queue = state.ready[group + 1]
        if not queue or (group and state.slots[group] >= groups[group].limit):
            continue
        if best < 0 or queue[0][0] < best_ticket:
            best, best_ticket = group, queue[0][0]
    return best


# --- nothing runs ---


def _rest(turn: Turn) -> None:
    """Finish, park, or notice that the run is stuck."""
    state = turn.state
    match state.phase:
        case RunPhase.CANCELLING:
            _finish(turn, "failed" if state.error else "cancelled", state.error)
        case RunPhase.FAILING:
            _finish(turn, "failed", state.error)
        case RunPhase.STOPPING:
            close_waits(turn)
            _finish(turn, "succeeded")
        case RunPhase.RUNNING if state.root_closed and state.root_cleanup is not Cleanup.OPEN:
            _finish(turn, *(state.ending or ("succeeded", None)))
        case RunPhase.RUNNING if any(state.ready):
            pass  # the run may start nothing now: its process goes down
        case RunPhase.RUNNING if state.waits or state.retries:
            due_ms = state.due_ms()
            if due_ms is None or due_ms > turn.at_ms + PARK_MIN_MS:
                turn.emit(e.RunParked(due_ms))
        case RunPhase.RUNNING:
            open_nodes = sum(scope.open for scope in state.scopes.values())
            message = f"{open_nodes} nodes are undecided, but none is running, waiting or ready"
            _finish(turn, "failed", e.ErrorInfo("internal_undecided", message))
        case _:
            pass


def _finish(turn: Turn, status: e.RunEnd, error: e.ErrorInfo | None = None) -> None:
    turn.emit(e.RunFinished(status, error))
