"""The only writer of State: applies events.

Theory of operation
-------------------
A scope is one opened copy of a region: the root, one iteration of a loop, one branch of a parallel. It counts, per
node, the in-edges that are still open (`waiting`) and those that resolved live (`live`). An edge resolves exactly once:
when its source is decided, live if its handle is the route the source took, else dead. When a node's `waiting` reaches
zero it is ready if anything was live, else skipped, and then its own out-edges resolve dead: the cascade, run with an
explicit stack. Nothing is ever scanned: each event costs what the out-edges it resolves cost.

`scope.open` counts undecided nodes. At zero the scope closes, whatever path got there; dead ends need no special case.
  * the root closes: `root_closed`, the run can finish;
  * a loop's scope closes: the end sentinel becomes ready, to test for another iteration (a fresh scope; nothing is
    rewound);
  * a parallel's scope closes: another branch may open; after the last one the end sentinel leaves (`exits`).

A start sentinel's edge to its end sentinel resolves live with RegionSized, but the end does not become ready by
counting: it waits for its container. All other ways (start skipped, start failed) go through counting like any edge.

Giving up a subtree (a failure caught further out): its scopes are marked dead, its ready nodes and retries are dropped,
and `Abort.left` counts the attempts and waits that have yet to end. Events of dead scopes only drain. At zero the
scopes are removed and the branch closes, or the container is put in `failed_ends` for `decide` to fail it.

A cleanup is one more scope of its container, beside those of the body: opened when the body has ended, in any way, and
before its end sentinel leaves or fails. A container that is given up with a subtree has it too: when nothing is under
way in the subtree any more, the cleanups of the innermost containers begin, then those around them (`due_cleanups`);
each open one counts in `Abort.left`. So does the end of a run, which gives up the root: `ending` keeps how it is to
end. In a plan without a cleanup, the phases FAILING, STOPPING and CANCELLING do the same with less.

evolve raises CorruptJournal-like AssertionError on an event that cannot follow: a bug of ours or a damaged file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from compiler.keys import ROOT, NodeKey, Path
from compiler.plan import Plan
from executor.kernel.core.events import (
    TELLS_ONLY,
    CleanupOpened,
    CleanupStopped,
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
    RunEnd,
    RunFinished,
    RunParked,
    RunStarted,
    ScopesOpened,
    StepFinished,
    StepLost,
    StepStarted,
    VariablesPatched,
    WaitClosed,
    WaitOpened,
)
from executor.kernel.core.state import (
    Abort,
    AbortKey,
    Cleanup,
    Container,
    ContainerKey,
    NodeSteps,
    RunPhase,
    Scope,
    State,
    Status,
    Wait,
)

# ErrorInfo.code of attempts that do not count against max_attempts: the process is gone, or stayed with another run
LOST, FORKED = "attempt_lost", "run_forked"

# A node that was pruned by an event, and the node whose edge died last: decide records them with NodeSkipped.
Pruned = list[tuple[NodeKey, NodeKey]]

# A name of this module costs a tenth of a look-up in the enum (CPython 3.11: 0.01 and 0.1 us).
_PENDING, _READY, _STARTED, _SUCCEEDED, _SKIPPED = (
    Status.PENDING,
    Status.READY,
    Status.RUNNING,
    Status.SUCCEEDED,
    Status.SKIPPED,
)
_RUNNING = RunPhase.RUNNING

# The abort of a run that ends before its root: the root has no container around it, so it counts as a branch of itself.
ROOT_ABORT: AbortKey = ((), 0, 0)
ENDED = ErrorInfo("run_ended", "the run ended before this did")

_NO_EDGE = "\0"  # a route no handle can have: every edge resolves dead


def evolve(plan: Plan, state: State, event: Event) -> Pruned:
    """Apply one event. Returns the nodes it pruned, in the order in which their edges died."""
    pruned: Pruned = []
    state.seq += 1
    state.parked = False
    _APPLY[type(event)](plan, state, event, pruned)
    if state.phase is RunPhase.STOPPING and plan.has_cleanup:
        state.phase = _RUNNING
        _end_run(plan, state, "succeeded", None, pruned)
    return pruned


def fold(plan: Plan, events: Iterable[Event]) -> State:
    """Return the state after `events`."""
    state = State.new(plan)
    for event in events:
        evolve(plan, state, event)
    return state


# --- the run --------------------------------------------------------------------------------------------------------


def _run_started(plan: Plan, state: State, event: RunStarted, pruned: Pruned) -> None:
    assert state.phase is RunPhase.NEW, "run.started must come first"
    state.run = event.run
    state.phase = RunPhase.RUNNING
    state.reuse = dict(event.reuse)
    state.stop_after = event.stop_after
    _open_scope(plan, state, ROOT, 0, pruned)


def _run_parked(plan: Plan, state: State, event: RunParked, pruned: Pruned) -> None:
    assert not state.running, "a run parks only when nothing runs"
    state.parked = True


def _run_cancelling(plan: Plan, state: State, event: RunCancelling, pruned: Pruned) -> None:
    if plan.has_cleanup and not event.now:
        state.cancelled = True
        _end_run(plan, state, "failed" if event.error else "cancelled", event.error, pruned)
        return
    state.phase = RunPhase.CANCELLING
    state.error = event.error
    if state.ending is not None:
        state.error = event.error or state.ending[1]
    state.retries.clear()


def _end_run(plan: Plan, state: State, status: RunEnd, error: ErrorInfo | None, pruned: Pruned) -> None:
    """End a run of a plan with a cleanup: give up everything but cleanups, which come first."""
    ends = state.ending is not None or state.root_closed
    state.ending = status, error
    if not ends:
        state.reusing.clear()
        _abort(plan, state, ROOT_ABORT, error or ENDED, pruned)


def _run_finished(plan: Plan, state: State, event: RunFinished, pruned: Pruned) -> None:
    assert state.ended is None, "a run finishes once"
    state.phase = RunPhase.FINISHED
    state.ended = event.status
    state.error = event.error
    state.running.clear()
    state.waits.clear()
    state.retries.clear()


# --- nodes ----------------------------------------------------------------------------------------------------------


def _node_started(plan: Plan, state: State, event: NodeStarted, pruned: Pruned) -> None:
    key = event.key
    path, number = key
    node = plan.nodes[number]
    group = -1 if node.inline else node.policy.group
    if state.retries and key in state.retries:
        del state.retries[key]
    else:
        queue = state.ready[group + 1]
        if queue and queue[0][1] == key:
            queue.popleft()
        else:  # a run that moved to another version: what was added there is ready too, and did not start
            found = [entry for entry in queue if entry[1] == key]
            assert found, "only a node that is ready starts"
            queue.remove(found[0])
        state.executed += node.sentinel is None
    scope = state.scopes[path]
    scope.status[number - plan.regions[scope.region].first] = _STARTED
    state.running[key] = event.attempt
    if group >= 0:
        state.slots[0] += 1
        if group:
            state.slots[group] += 1


def _node_succeeded(plan: Plan, state: State, event: NodeSucceeded, pruned: Pruned) -> None:
    key = event.key
    if event.reused:
        state.reusing.pop(key, None)
        state.exits.pop(key, None)
        if plan.nodes[key[1]].sentinel == "end":  # a container that had failed: its cleanup is not due again
            state.containers.pop((key[0], plan.nodes[key[1]].body), None)
    else:
        _leave(plan, state, key)
    _resolve_node(plan, state, key, _SUCCEEDED, event.route, pruned)
    if event.end_run and plan.has_cleanup:
        _end_run(plan, state, "succeeded", None, pruned)


def _region_sized(plan: Plan, state: State, event: RegionSized, pruned: Pruned) -> None:
    key = event.key
    path, start = key
    if key in state.reusing:
        del state.reusing[key]
    else:
        _leave(plan, state, key)
    scope = state.scopes[path]
    if scope.dead:
        _resolve_node(plan, state, key, _SUCCEEDED, None, pruned)
        return
    body = plan.nodes[start].body
    region = plan.regions[body]
    state.containers[(path, body)] = Container(count=event.count)
    if event.count:
        state.opening[(path, body)] = None
    else:
        state.exits[(path, region.end)] = None
    end = region.end - plan.regions[scope.region].first
    scope.waiting[end] -= 1  # the edge start -> end is live, but the end waits for its container
    scope.live[end] += 1
    _resolve_node(plan, state, key, _SUCCEEDED, None, pruned, skip_target=region.end)


def _scopes_opened(plan: Plan, state: State, event: ScopesOpened, pruned: Pruned) -> None:
    path, start = event.key
    body = plan.nodes[start].body
    region = plan.regions[body]
    container = state.containers[(path, body)]
    assert container.opened == event.first, "scopes open in order, once each"
    if region.kind == "loop" and event.first > 0:
        end = (path, region.end)
        _leave(plan, state, end)
        _set_status(plan, state, end, _PENDING)
    container.count = max(container.count, event.first + event.count)
    container.opened += event.count
    _note_opening(plan, state, (path, body), container)
    for index in range(event.first, event.first + event.count):
        _open_scope(plan, state, (*path, (body, index)), body, pruned)


def _region_exited(plan: Plan, state: State, event: RegionExited, pruned: Pruned) -> None:
    path, end = event.key
    body = plan.nodes[end].body
    state.exits.pop(event.key, None)
    if event.key in state.running:
        _leave(plan, state, event.key)
    state.containers.pop((path, body), None)
    _resolve_node(plan, state, event.key, _SUCCEEDED, "out", pruned)


def _cleanup_opened(plan: Plan, state: State, event: CleanupOpened, pruned: Pruned) -> None:
    key = event.key
    path, number = key
    state.due_cleanups.pop(key, None)
    state.exits.pop(key, None)
    state.failed_ends.pop(key, None)
    state.cleanups[key] = event.due_ms
    if plan.nodes[number].sentinel is None:
        assert state.root_closed, "the cleanup of the run comes last"
        state.root_cleanup = Cleanup.OPEN
    else:
        if key in state.running:
            _leave(plan, state, key)
            _set_status(plan, state, key, _PENDING)
        container = state.containers[(path, plan.nodes[number].body)]
        assert container.cleanup is Cleanup.NOT_BEGUN, "a cleanup runs once"
        container.cleanup = Cleanup.OPEN
        container.error = event.error
    region = cleanup_of(plan, number)
    _open_scope(plan, state, (*path, (region, 0)), region, pruned)


def _cleanup_stopped(plan: Plan, state: State, event: CleanupStopped, pruned: Pruned) -> None:
    path, number = event.key
    del state.cleanups[event.key]
    abort = (path, cleanup_of(plan, number), 0)
    if abort not in state.aborts:  # else something in it has failed, and the rest is ending
        _abort(plan, state, abort, event.error, pruned)


def cleanup_of(plan: Plan, number: int) -> int:
    """Return the cleanup region of the container with this end sentinel, or of the root; -1 if it has none."""
    node = plan.nodes[number]
    return plan.regions[0 if node.sentinel is None else node.body].cleanup


def _cleanup_over(plan: Plan, state: State, path: Path, region: int, error: ErrorInfo | None) -> None:
    """End a cleanup. What follows is what would have followed without it; its own error counts if there was none
    before."""
    key = (path, plan.regions[region].end)
    state.cleanups.pop(key, None)
    if plan.regions[0].cleanup == region:
        state.root_cleanup = Cleanup.OVER
        if error is not None and (state.ending is None or state.ending[0] == "succeeded"):
            state.ending = "failed", error
        return
    container = state.containers[(path, plan.nodes[key[1]].body)]
    container.cleanup = Cleanup.OVER
    container.error = container.error or error
    if state.scopes[path].dead:
        _drained_one(plan, state, path)
    elif container.error is None:
        state.exits[key] = None
    else:
        state.failed_ends[key] = container.error


def _node_failed(plan: Plan, state: State, event: NodeFailed, pruned: Pruned) -> None:
    key = event.key
    scope = state.scopes[key[0]]
    node = plan.nodes[key[1]]
    if key in state.running:
        _leave(plan, state, key)
    elif state.ready[0 if node.inline else node.policy.group + 1]:
        queue = state.ready[0 if node.inline else node.policy.group + 1]
        if queue[0][1] == key:  # refused before it started: a limit of the run
            queue.popleft()
    state.waits.pop(key, None)
    state.failed_ends.pop(key, None)
    if node.sentinel == "end" and not (scope.dead and _owes_cleanup(plan, state, (key[0], node.body))):
        state.containers.pop((key[0], node.body), None)
    if node.sentinel == "start" and event.route == "out" and not scope.dead:
        # on_error: continue on a container: the end sentinel, which has no container to wait for, fails and continues
        end = plan.regions[node.body].end
        local = end - plan.regions[scope.region].first
        scope.waiting[local] -= 1
        scope.live[local] += 1
        state.failed_ends[(key[0], end)] = event.error
        _resolve_node(plan, state, key, Status.FAILED, None, pruned, skip_target=end)
        return
    if scope.dead or event.route is not None:
        _resolve_node(plan, state, key, Status.FAILED, event.route, pruned)
        return
    _set_status(plan, state, key, Status.FAILED)
    if event.caught is None:
        if plan.has_cleanup and state.phase is _RUNNING:
            _end_run(plan, state, "failed", event.error, pruned)
        elif state.phase in (RunPhase.RUNNING, RunPhase.STOPPING):
            state.phase = RunPhase.FAILING
            state.error = event.error
            state.retries.clear()
        return
    kind, caught_path = event.caught
    region, index = caught_path[-1]
    _abort(plan, state, (caught_path[:-1], region, -1 if kind == "container" else index), event.error, pruned)


def _node_skipped(plan: Plan, state: State, event: NodeSkipped, pruned: Pruned) -> None:
    if event.reason == "pruned":
        return  # informs only; the arithmetic was done when the last in-edge died
    if event.reason == "skip_if":
        _leave(plan, state, event.key)
    _resolve_node(plan, state, event.key, _SKIPPED, "out", pruned)


def _retry_scheduled(plan: Plan, state: State, event: RetryScheduled, pruned: Pruned) -> None:
    _leave(plan, state, event.key)
    if event.key in state.steps:
        state.steps[event.key].last_wait = 0
    if event.error.code in (LOST, FORKED):
        state.lost[event.key] = state.lost.get(event.key, 0) + 1
        if event.together:
            state.together[event.key] = state.together.get(event.key, 0) + 1
    if event.deferred is not None:
        times, waited_ms = state.deferred.get(event.key, (0, 0))
        state.deferred[event.key] = (times + 1, waited_ms + event.pause_ms)
    if event.key in state.steps and event.error.code not in (LOST, FORKED):
        state.steps[event.key].try_again()
    _add_retry(plan, state, event.key, event.attempt + 1, event.due_ms)
    _set_status(plan, state, event.key, Status.RETRYING)


def _retry_hastened(plan: Plan, state: State, event: RetryHastened, pruned: Pruned) -> None:
    assert event.key in state.retries, "only a retry that has its time can be hastened"
    _add_retry(plan, state, event.key, event.attempt, event.due_ms)


def _add_retry(plan: Plan, state: State, key: NodeKey, attempt: int, due_ms: int) -> None:
    state.retries[key] = (attempt, due_ms)
    state.dues.add_retry(state, key, attempt, due_ms, plan.nodes[key[1]].inline)


def _wait_opened(plan: Plan, state: State, event: WaitOpened, pruned: Pruned) -> None:
    key = event.key
    if event.beside:
        waits = state.waits[key]
        steps = state.steps[key]
        steps.entries += 1
        steps.last_wait = event.attempt
    else:
        _leave(plan, state, key)
        waits = state.waits[key] = {}
    waits[event.attempt] = Wait(event.attempt, event.kind, event.due_ms, event.on_expire, event.step)
    if event.due_ms is not None:
        state.dues.add_wait(state, event.key, event.attempt, event.due_ms)
    _set_status(plan, state, event.key, Status.WAITING)


def _wait_closed(plan: Plan, state: State, event: WaitClosed, pruned: Pruned) -> None:
    waits = state.waits.get(event.key)
    assert waits is not None and event.attempt in waits, "only an open wait can close"
    del waits[event.attempt]
    if waits:
        return
    del state.waits[event.key]
    if event.outcome == "cancelled":
        _set_status(plan, state, event.key, Status.CANCELLED)
        _drained_one(plan, state, event.key[0])


def _step_started(plan: Plan, state: State, event: StepStarted, pruned: Pruned) -> None:
    steps = state.steps.get(event.key)
    if steps is None:
        steps = state.steps[event.key] = NodeSteps()
    steps.started(event, state.seq)


def _step_finished(plan: Plan, state: State, event: StepFinished, pruned: Pruned) -> None:
    steps = state.steps[event.key]
    steps.finished(event.n, event.error is not None, state.seq)
    # Finished by a wait that is over. After the last open one the handler is entered again, as soon as it may start.
    if event.key not in state.running and event.key not in state.waits:
        steps.entries += 1
        last, steps.last_wait = steps.last_wait or event.attempt, 0
        _add_retry(plan, state, event.key, last + 1, 0)
        _set_status(plan, state, event.key, Status.RETRYING)


def _step_lost(plan: Plan, state: State, event: StepLost, pruned: Pruned) -> None:
    state.steps[event.key].lose(event.n, event.again)


def _tells_only(plan: Plan, state: State, event: Event, pruned: Pruned) -> None:
    """Kept for readers and for the values; control flow does not look at it."""


# --- arithmetic -----------------------------------------------------------------------------------------------------


def _open_scope(plan: Plan, state: State, path: Path, region_index: int, pruned: Pruned) -> None:
    region = plan.regions[region_index]
    scope = Scope(
        region=region_index,
        waiting=list(region.indegree),
        live=[0] * len(region.nodes),
        status=bytearray(len(region.nodes)),
        open=len(region.nodes),
    )
    state.scopes[path] = scope
    for entry in region.entries:
        local = entry - region.first
        if scope.waiting[local]:
            scope.waiting[local] -= 1
        scope.live[local] += 1
        if not scope.waiting[local]:
            _make_ready(plan, state, scope, path, entry)


def _make_ready(plan: Plan, state: State, scope: Scope, path: Path, number: int) -> None:
    key = (path, number)
    scope.status[number - plan.regions[scope.region].first] = _READY
    if not path and number in state.reuse:
        state.reusing[key] = None
        return
    node = plan.nodes[number]
    state.ready[0 if node.inline else node.policy.group + 1].append((state.ticket, key))
    state.ticket += 1


def _resolve_node(
    plan: Plan, state: State, key: NodeKey, status: Status, route: str | None, pruned: Pruned, skip_target: int = -1
) -> None:
    """Give a node its final status, resolve its out-edges (`route` live, the rest dead; all dead if it is None) and
    cascade."""
    path, number = key
    scope = state.scopes[path]
    first = plan.regions[scope.region].first
    scope.status[number - first] = status
    if state.lost:
        state.lost.pop(key, None)
        state.together.pop(key, None)
    if state.deferred:
        state.deferred.pop(key, None)
    if state.steps:
        state.steps.pop(key, None)
    if state.stop_after == number and state.phase is _RUNNING:
        state.phase = RunPhase.STOPPING
    if scope.dead:
        _drained_one(plan, state, path)
        return
    scope.open -= 1
    waiting, live, nodes = scope.waiting, scope.live, plan.nodes
    taken: str = _NO_EDGE if route is None else route
    dying = [number]
    while dying:
        source = dying.pop()
        for edge in nodes[source].out:
            target = edge.target
            if target == skip_target:
                continue
            local = target - first
            left = waiting[local] = waiting[local] - 1
            if edge.handle == taken:
                live[local] += 1
            if left:
                continue
            if live[local]:
                _make_ready(plan, state, scope, path, target)
            else:
                scope.status[local] = _SKIPPED
                scope.open -= 1
                pruned.append(((path, target), (path, source)))
                dying.append(target)
                if state.stop_after == target and state.phase is _RUNNING:
                    state.phase = RunPhase.STOPPING
        taken = _NO_EDGE  # whatever follows a pruned node dies
        skip_target = -1
    if not scope.open:
        _close_scope(plan, state, path)


def _close_scope(plan: Plan, state: State, path: Path) -> None:
    del state.scopes[path]
    if not path:
        state.root_closed = True
        return
    outer, (body, _) = path[:-1], path[-1]
    region = plan.regions[body]
    if region.kind == "cleanup":
        _cleanup_over(plan, state, outer, body, None)
        return
    container = state.containers[(outer, body)]
    container.closed += 1
    if region.kind == "loop":
        _make_ready(plan, state, state.scopes[outer], outer, region.end)
    else:
        _branch_closed(plan, state, (outer, body), container)


def _branch_closed(plan: Plan, state: State, key: ContainerKey, container: Container) -> None:
    if container.closed == container.count:
        state.exits[(key[0], plan.regions[key[1]].end)] = None
    else:
        _note_opening(plan, state, key, container)


def _note_opening(plan: Plan, state: State, key: ContainerKey, container: Container) -> None:
    """Keep `opening` equal to the containers that may open a scope now."""
    limit = plan.regions[key[1]].limit or 1
    if container.opened < container.count and container.opened - container.closed < limit and not container.dead:
        state.opening[key] = None
    else:
        state.opening.pop(key, None)


def _set_status(plan: Plan, state: State, key: NodeKey, status: Status) -> None:
    scope = state.scopes[key[0]]
    scope.status[key[1] - plan.regions[scope.region].first] = status


def _leave(plan: Plan, state: State, key: NodeKey) -> None:
    """Free the slot of an attempt that is over. A node that waits or retries holds none."""
    attempt = state.running.pop(key, None)
    if attempt is None:
        assert key not in state.waits, "a wait must be closed before its node is decided"
        return
    node = plan.nodes[key[1]]
    if not node.inline:
        state.slots[0] -= 1
        if node.policy.group:
            state.slots[node.policy.group] -= 1


# --- giving up a subtree --------------------------------------------------------------------------------------------


def _within(path: Path, abort: AbortKey) -> bool:
    """Returns True if scope `path` lies in the aborted subtree."""
    if abort == ROOT_ABORT:
        return True
    outer, region, index = abort
    depth = len(outer)
    return (
        len(path) > depth
        and path[depth][0] == region
        and (index < 0 or path[depth][1] == index)
        and path[:depth] == outer
    )


def _subtree(plan: Plan, state: State, abort: AbortKey) -> list[Path]:
    """Return the open scopes of an aborted subtree, outer ones first, without its cleanups. Costs what they have nodes,
    however many others are open."""
    outer, region, index = abort
    branch = ROOT if abort == ROOT_ABORT else (*outer, (region, index))
    found = _open_scopes(plan, state, outer, region) if index < 0 else [branch] if branch in state.scopes else []
    for path in found:  # it grows meanwhile
        for node in plan.regions[state.scopes[path].region].nodes:
            if node.sentinel == "start":
                found += _open_scopes(plan, state, path, node.body)
    return found


def _open_scopes(plan: Plan, state: State, path: Path, body: int) -> list[Path]:
    """Return the open scopes of one container."""
    container = state.containers.get((path, body))
    if container is None:
        return []
    first = container.opened - 1 if plan.regions[body].kind == "loop" else 0
    scopes = ((*path, (body, index)) for index in range(max(0, first), container.opened))
    return [scope for scope in scopes if scope in state.scopes]


def _abort(plan: Plan, state: State, abort: AbortKey, error: ErrorInfo, pruned: Pruned) -> None:
    left, ready, holds_aborts = 0, set[NodeKey](), False
    if abort[2] < 0:
        left += _give_up_container(plan, state, abort[:2])
    for path in _subtree(plan, state, abort):
        scope = state.scopes[path]
        holds_aborts = holds_aborts or scope.dead
        scope.dead = True
        region = plan.regions[scope.region]
        for node, status, number in zip(region.nodes, scope.status, count(region.first), strict=False):
            key = (path, number)
            if status == _STARTED:
                left += key in state.running
            elif status == Status.WAITING:
                left += key in state.waits
            elif status == Status.RETRYING:
                state.retries.pop(key, None)
            elif status == _READY:
                ready.add(key)
            if node.sentinel == "start":
                left += _give_up_container(plan, state, (path, node.body))
            elif node.sentinel == "end" and state.failed_ends:
                state.failed_ends.pop(key, None)
    if ready:
        for queue_index, queue in enumerate(state.ready):
            state.ready[queue_index] = deque(entry for entry in queue if entry[1] not in ready)
    if holds_aborts:
        for inner in [other for other in state.aborts if _inside(plan, other, abort)]:
            del state.aborts[inner]
    state.aborts[abort] = Abort(left=left, error=error)
    if not left:
        _drained(plan, state, abort)


def _give_up_container(plan: Plan, state: State, key: ContainerKey) -> bool:
    """Give up a container. Returns True if its cleanup is open; the cleanup continues."""
    container = state.containers.get(key)
    if container is None:
        return False
    container.dead = True
    state.opening.pop(key, None)
    end = (key[0], plan.regions[key[1]].end)
    state.exits.pop(end, None)
    state.due_cleanups.pop(end, None)
    return container.cleanup is Cleanup.OPEN


def _inside(plan: Plan, inner: AbortKey, outer: AbortKey) -> bool:
    """Returns True if the abort `inner` lies in `outer`. An abort inside a cleanup is left to that cleanup."""
    path = (*inner[0], (inner[1], inner[2]))
    below = path if outer == ROOT_ABORT else path[len(outer[0]) + 1 :]
    return inner != outer and _within(path, outer) and not plan.in_cleanup(below)


def _drained_one(plan: Plan, state: State, path: Path) -> None:
    """An attempt, wait or cleanup of a dead scope is over. It counts in the outermost abort around it that is not
    outside a cleanup around it."""
    if not state.aborts:
        return
    around = 0
    if plan.has_cleanup:
        cleanups = [depth for depth, (region, _) in enumerate(path) if plan.regions[region].kind == "cleanup"]
        around = cleanups[-1] if cleanups else 0
        if not cleanups and (root := state.aborts.get(ROOT_ABORT)) is not None:
            root.left -= 1
            if not root.left:
                _drained(plan, state, ROOT_ABORT)
            return
    for depth in range(around, len(path)):
        region, index = path[depth]
        for abort in ((path[:depth], region, index), (path[:depth], region, -1)):
            entry = state.aborts.get(abort)
            if entry is not None:
                entry.left -= 1
                if not entry.left:
                    _drained(plan, state, abort)
                return


def _drained(plan: Plan, state: State, abort: AbortKey) -> None:
    """Nothing is under way in the subtree any more: remove it, then close the branch or let decide fail the
    container. Before that come the cleanups in it, those of the innermost containers first."""
    if plan.has_cleanup and (due := _owed_cleanups(plan, state, abort)):
        state.aborts[abort].left = len(due)
        state.due_cleanups.update(dict.fromkeys(due))
        return
    error = state.aborts.pop(abort).error
    for path in _subtree(plan, state, abort):
        region = plan.regions[state.scopes.pop(path).region]
        for number, node in enumerate(region.nodes, region.first):
            if node.sentinel == "start":
                state.containers.pop((path, node.body), None)
            if state.lost:
                state.lost.pop((path, number), None)
                state.together.pop((path, number), None)
            if state.deferred:
                state.deferred.pop((path, number), None)
            if state.steps:
                state.steps.pop((path, number), None)
    outer, body, index = abort
    if abort == ROOT_ABORT:
        state.root_closed = True
        return
    if plan.regions[body].kind == "cleanup":
        _cleanup_over(plan, state, outer, body, error)
        return
    container = state.containers[(outer, body)]
    if index < 0:
        state.failed_ends[(outer, plan.regions[body].end)] = error
    else:
        container.closed += 1
        _branch_closed(plan, state, (outer, body), container)


def _owed_cleanups(plan: Plan, state: State, abort: AbortKey) -> list[NodeKey]:
    """Return the cleanups still to be run of the innermost containers of the subtree, by their end sentinels."""
    owed = [
        (path, plan.regions[node.body].end)
        for path in _subtree(plan, state, abort)
        for node in plan.regions[state.scopes[path].region].nodes
        if node.sentinel == "start" and _owes_cleanup(plan, state, (path, node.body))
    ]
    depth = max((len(path) for path, _ in owed), default=0)
    return [key for key in owed if len(key[0]) == depth]


def _owes_cleanup(plan: Plan, state: State, key: ContainerKey) -> bool:
    container = state.containers.get(key)
    begun = container is None or container.cleanup is not Cleanup.NOT_BEGUN
    return not begun and plan.regions[key[1]].cleanup >= 0


_APPLY: dict[type, Callable[[Plan, State, Any, Pruned], None]] = {
    RunStarted: _run_started,
    RunParked: _run_parked,
    RunCancelling: _run_cancelling,
    RunFinished: _run_finished,
    NodeStarted: _node_started,
    NodeSucceeded: _node_succeeded,
    RegionSized: _region_sized,
    ScopesOpened: _scopes_opened,
    RegionExited: _region_exited,
    CleanupOpened: _cleanup_opened,
    CleanupStopped: _cleanup_stopped,
    NodeFailed: _node_failed,
    NodeSkipped: _node_skipped,
    RetryScheduled: _retry_scheduled,
    RetryHastened: _retry_hastened,
    WaitOpened: _wait_opened,
    WaitClosed: _wait_closed,
    StepStarted: _step_started,
    StepFinished: _step_finished,
    StepLost: _step_lost,
    VariablesPatched: _tells_only,
    **dict.fromkeys(TELLS_ONLY, _tells_only),
}
