"""The preconditions of each event: `evolve`'s rules a second time, and strictly.

Doctor checks each event here before applying it, because `evolve` trusts its journal. The checks use the plan and
earlier events where they can, and not the counters of `evolve`.
"""

from __future__ import annotations

from compiler.keys import NodeKey
from compiler.plan import Plan
from executor.kernel.core.events import (
    CleanupOpened,
    CleanupStopped,
    Event,
    NodeFailed,
    NodeLog,
    NodeSkipped,
    NodeStarted,
    NodeSucceeded,
    RegionExited,
    RegionSized,
    RetryHastened,
    RetryScheduled,
    RunCancelling,
    RunParked,
    RunStarted,
    ScopesOpened,
    StepFinished,
    StepLost,
    StepStarted,
    WaitClosed,
    WaitOpened,
)
from executor.kernel.core.evolve import cleanup_of
from executor.kernel.core.state import Cleanup, RunPhase, State, Status


def complaint(plan: Plan, state: State, event: Event) -> str | None:
    """Return why `event` cannot follow in `state`, or None if it can."""
    if state.phase is RunPhase.FINISHED:
        return "it comes after run.finished"
    if isinstance(event, RunStarted):
        return None if state.phase is RunPhase.NEW else "the run has already started"
    if state.phase is RunPhase.NEW:
        return "it comes before run.started"
    match event:
        case RunParked():
            return f"{len(state.running)} attempts are running" if state.running else None
        case RunCancelling():
            again = state.phase is RunPhase.CANCELLING or (state.cancelled and not event.now)
            return "the run is already being cancelled" if again else None
        case CleanupOpened():
            return _cleaning(plan, state, event)
        case CleanupStopped():
            return None if event.key in state.cleanups else "its cleanup is not open"
        case ScopesOpened():
            return _opening(plan, state, event)
        case NodeStarted():
            return _starting(state, event)
        case NodeSucceeded():
            reused = event.reused and (event.key in state.reusing or event.key in state.exits)
            return None if reused else _ending(plan, state, event.key, event.attempt)
        case RegionSized():
            return None if event.key in state.reusing else _ending(plan, state, event.key, event.attempt)
        case RegionExited():
            return _leaving(plan, state, event)
        case NodeFailed():
            refused = any(queue and queue[0][1] == event.key for queue in state.ready)  # by a limit of the run
            aborted = event.key in state.failed_ends
            return None if refused or aborted else _ending(plan, state, event.key, event.attempt)
        case NodeSkipped(reason="pruned"):
            return (
                None
                if state.status_of(plan, event.key) in (Status.SKIPPED, None)
                else "one of its incoming connections is still open"
            )
        case NodeSkipped() | RetryScheduled():
            return _ending(plan, state, event.key, event.attempt)
        case RetryHastened():
            retry = state.retries.get(event.key)
            return (
                None if retry is not None and retry[0] == event.attempt else "this attempt is not scheduled for a retry"
            )
        case StepFinished() | StepLost():
            return _ending_step(plan, state, event)
        case WaitOpened(beside=True):
            return _opening_beside(state, event)
        case WaitOpened() | NodeLog() | StepStarted():
            return None if state.running.get(event.key) == event.attempt else "this attempt is not running"
        case WaitClosed():
            if state.wait_of(event.key, event.attempt) is None:
                return "it has no open wait"
            left = len(state.waits[event.key]) - 1
            return None if left == event.left else f"{left} other waits of it are open, not {event.left}"
        case _:  # only informs, or ends the run
            return None


def _leaving(plan: Plan, state: State, event: RegionExited) -> str | None:
    if event.key not in state.exits and event.key not in state.running:
        return "its container has not ended"
    if event.reused or cleanup_of(plan, event.key[1]) < 0:
        return None
    container = state.containers.get((event.key[0], plan.nodes[event.key[1]].body))
    return None if container is None or container.cleanup is Cleanup.OVER else "its cleanup has not run"


def _ending_step(plan: Plan, state: State, event: StepFinished | StepLost) -> str | None:
    steps = state.steps.get(event.key)
    step = None if steps is None else steps.by_n.get(event.n)
    if step is None:
        return f"step {event.n} has not begun"
    if step.finished_seq:
        return f"step {event.n} has finished before"
    waits = state.waits.get(event.key)
    if waits and step.kind == "wait" and not any(wait.step == event.n for wait in waits.values()):
        return None  # others of the node are still open
    return _ending(plan, state, event.key, event.attempt)


def _opening_beside(state: State, event: WaitOpened) -> str | None:
    waits = state.waits.get(event.key)
    if not waits:
        return "it is beside no other wait"
    if event.attempt != max(waits) + 1:
        return f"wait {max(waits) + 1} comes next"
    known = event.step is not None and all(wait.step is not None for wait in waits.values())
    return None if known else "only waits of a handler stand side by side"


def not_ready(plan: Plan, ended: dict[int, str | None], number: int) -> str | None:
    """Return why a node may not start yet: a node it depends on has no result, or no edge to it is live. `ended` maps
    the decided nodes of its scope to the handle they left by."""
    region = plan.regions[plan.region_of[number]]
    if number in region.entries:
        return None
    live = False
    for offset, node in enumerate(region.nodes):
        for edge in node.out:
            if edge.target == number:
                source = region.first + offset
                if source not in ended:
                    return f"'{node.id}' has not ended"
                live |= ended[source] == edge.handle
    return None if live else "no incoming connection is active"


def _opening(plan: Plan, state: State, event: ScopesOpened) -> str | None:
    path, start = event.key
    body = plan.nodes[start].body
    container = state.containers.get((path, body))
    if container is None:
        return "its container is not open"
    if container.opened != event.first:
        return f"scope {container.opened} comes next, not {event.first}"
    if event.count < 1:
        return "it opens no iteration or branch"
    if plan.regions[body].kind == "loop" and event.first and (path, plan.regions[body].end) not in state.running:
        return "the loop had not decided to continue"
    return None


def _cleaning(plan: Plan, state: State, event: CleanupOpened) -> str | None:
    key = event.key
    if cleanup_of(plan, key[1]) < 0:
        return "it has no cleanup"
    if event.given_up and not state.scopes[key[0]].dead:
        return "what is around its container is not given up"
    if plan.nodes[key[1]].sentinel is None:
        if state.root_cleanup is not Cleanup.NOT_BEGUN:
            return "the cleanup of the run has begun before"
        return None if state.root_closed else "something of the run has not ended"
    container = state.containers.get((key[0], plan.nodes[key[1]].body))
    if container is None:
        return "its container is not open"
    if container.cleanup is not Cleanup.NOT_BEGUN:
        return "its cleanup has begun before"
    ended = key in state.exits or key in state.running or key in state.failed_ends or key in state.due_cleanups
    return None if ended else "the body of its container has not ended"


def _starting(state: State, event: NodeStarted) -> str | None:
    key = event.key
    scope = state.scopes.get(key[0])
    if scope is None:
        return "its scope is not open"
    if scope.dead:
        return "its iteration or branch was stopped"
    if state.phase is not RunPhase.RUNNING:
        return f"the run is {state.phase.name.lower()}"
    retry = state.retries.get(key)
    if retry is not None:
        return None if retry[0] == event.attempt else f"attempt {retry[0]} comes next"
    # It need not be next in its queue: blocks that a later version of the workflow added wait there, too, after a move.
    if not any(entry[1] == key for queue in state.ready for entry in queue):
        return "it is not ready"
    return None if event.attempt == 1 else "attempt 1 comes first"


def _ending(plan: Plan, state: State, key: NodeKey, attempt: int) -> str | None:
    """Check an end: a node ends from an attempt that is under way, or from a wait that was just closed."""
    running = state.running.get(key)
    if running is not None:
        return None if running == attempt else f"attempt {running} is running, not {attempt}"
    if key in state.waits:
        return "its wait is still open"
    status = state.status_of(plan, key)
    if status is Status.WAITING:
        return None
    return "its scope is not open" if status is None else f"it is {status.name.lower()}"
