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

An event that cannot follow raises AssertionError: it is a bug of ours or a damaged file.

This file has the events of runs and nodes. `scopes` counts edges, `aborts` gives subtrees up, `evolve_containers` and
`evolve_waits` have the other events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from compiler.keys import ROOT
from compiler.plan import Plan
from executor.kernel.core import events as e
from executor.kernel.core.aborts import ROOT_ABORT, give_up, owes_cleanup, owes_undo
from executor.kernel.core.evolve_containers import (
    cleanup_opened,
    cleanup_stopped,
    region_exited,
    region_sized,
    scopes_opened,
)
from executor.kernel.core.evolve_waits import (
    node_left,
    retry_hastened,
    retry_scheduled,
    step_finished,
    step_lost,
    step_retrying,
    step_started,
    wait_closed,
    wait_opened,
)
from executor.kernel.core.scopes import Pruned, leave, open_scope, resolve_node, set_status
from executor.kernel.core.state import UNDER_WAY, Cleanup, RunPhase, State, Status

# A name of this module costs a tenth of a look-up in the enum (CPython 3.11: 0.01 and 0.1 us).
_STARTED, _SUCCEEDED, _SKIPPED = Status.RUNNING, Status.SUCCEEDED, Status.SKIPPED
_RUNNING = RunPhase.RUNNING

ENDED = e.ErrorInfo("run_ended", "the run ended before this did")


def evolve(plan: Plan, state: State, event: e.Event) -> Pruned:
    """Apply one event. Returns the nodes it pruned, in the order in which their edges died."""
    state.seq += 1
    state.parked = False
    pruned = _APPLY[type(event)](plan, state, event)
    if state.phase is RunPhase.STOPPING and plan.has_cleanup:
        state.phase = _RUNNING
        _end_run(plan, state, "succeeded", None)
    return pruned or ()


def fold(plan: Plan, events: Iterable[e.Event]) -> State:
    state = State.new(plan)
    for event in events:
        evolve(plan, state, event)
    return state


class Turn:
    """One call of `decide`: its time and its events so far. Each event is applied when it is made."""

    __slots__ = ("at_ms", "events", "plan", "state")

    def __init__(self, plan: Plan, state: State, at_ms: int) -> None:
        self.plan = plan
        self.state = state
        self.at_ms = at_ms
        self.events: list[e.Event] = []

    def emit(self, event: e.Event) -> None:
        """Apply and record an event, and a NodeSkipped for each node that it prunes."""
        pruned = evolve(self.plan, self.state, event)
        self.events.append(event)
        for key, because in pruned:
            skipped = e.NodeSkipped(key, "pruned", because)
            evolve(self.plan, self.state, skipped)
            self.events.append(skipped)


# --- the run --------------------------------------------------------------------------------------------------------


def _run_started(plan: Plan, state: State, event: e.RunStarted) -> None:
    assert state.phase is RunPhase.NEW, "run.started must come first"
    state.run = event.run
    state.phase = RunPhase.RUNNING
    state.reuse = dict(event.reuse)
    state.stop_after = event.stop_after
    open_scope(plan, state, ROOT, 0)


def _run_parked(plan: Plan, state: State, event: e.RunParked) -> None:
    assert not state.running, "a run parks only when nothing runs"
    state.parked = True


def _run_cancelling(plan: Plan, state: State, event: e.RunCancelling) -> None:
    if plan.has_cleanup and not event.now:
        state.cancelled = True
        _end_run(plan, state, "failed" if event.error else "cancelled", event.error)
        return
    state.phase = RunPhase.CANCELLING
    state.error = event.error
    if state.ending is not None:
        state.error = event.error or state.ending[1]
    state.retries.clear()


def _end_run(plan: Plan, state: State, status: e.RunEnd, error: e.ErrorInfo | None) -> None:
    """End a run of a plan with a cleanup: give up everything but cleanups, which come first."""
    ends = state.ending is not None or state.root_closed
    state.ending = status, error
    if not ends:
        if (undone := plan.undone) is not None and state.status_of(plan, undone) in UNDER_WAY:
            state.root_cleanup = Cleanup.OWED
        state.reusing.clear()
        give_up(plan, state, ROOT_ABORT, error or ENDED)


def _run_finished(plan: Plan, state: State, event: e.RunFinished) -> None:
    assert state.ended is None, "a run finishes once"
    state.phase = RunPhase.FINISHED
    state.ended = event.status
    state.error = event.error
    state.running.clear()
    state.waits.clear()
    state.retries.clear()


# --- nodes ----------------------------------------------------------------------------------------------------------


def _node_started(plan: Plan, state: State, event: e.NodeStarted) -> None:
    key = event.key
    path, number = key
    node = plan.nodes[number]
    group = -1 if node.inline else node.policy.group
    if state.retries and key in state.retries:
        del state.retries[key]
        tries = state.tries[key]
        tries.news_seq, tries.paused = 0, False
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


def _node_succeeded(plan: Plan, state: State, event: e.NodeSucceeded) -> Pruned:
    key = event.key
    if event.reused:
        state.reusing.pop(key, None)
        state.exits.pop(key, None)
        if plan.nodes[key[1]].sentinel == "end":  # a container that had failed: its cleanup is not due again
            state.containers.pop((key[0], plan.nodes[key[1]].body), None)
    else:
        leave(plan, state, key)
    if plan.has_cleanup and owes_undo(plan, state, key):
        state.root_cleanup = Cleanup.NOT_BEGUN  # it has ended all the same
    pruned = resolve_node(plan, state, key, _SUCCEEDED, event.route)
    if event.end_run and plan.has_cleanup:
        _end_run(plan, state, "succeeded", None)
    return pruned


def _node_failed(plan: Plan, state: State, event: e.NodeFailed) -> Pruned | None:
    key = event.key
    scope = state.scopes[key[0]]
    node = plan.nodes[key[1]]
    if key in state.running:
        leave(plan, state, key)
    elif state.ready[0 if node.inline else node.policy.group + 1]:
        queue = state.ready[0 if node.inline else node.policy.group + 1]
        if queue[0][1] == key:  # refused before it started: a limit of the run
            queue.popleft()
    state.waits.pop(key, None)
    state.failed_ends.pop(key, None)
    if node.sentinel == "end" and not (scope.dead and owes_cleanup(plan, state, (key[0], node.body))):
        state.containers.pop((key[0], node.body), None)
    if node.sentinel == "start" and event.route == "out" and not scope.dead:
        # on_error: continue on a container: the end sentinel, which has no container to wait for, fails and continues
        end = plan.regions[node.body].end
        local = end - plan.regions[scope.region].first
        scope.waiting[local] -= 1
        scope.live[local] += 1
        state.failed_ends[(key[0], end)] = event.error
        return resolve_node(plan, state, key, Status.FAILED, None, skip_target=end)
    if scope.dead or event.route is not None:
        return resolve_node(plan, state, key, Status.FAILED, event.route)
    set_status(plan, state, key, Status.FAILED)
    if event.caught is None:
        if plan.has_cleanup and state.phase is _RUNNING:
            _end_run(plan, state, "failed", event.error)
        elif state.phase in (RunPhase.RUNNING, RunPhase.STOPPING):
            state.phase = RunPhase.FAILING
            state.error = event.error
            state.retries.clear()
        return None
    kind, caught_path = event.caught
    region, index = caught_path[-1]
    give_up(plan, state, (caught_path[:-1], region, -1 if kind == "container" else index), event.error)
    return None


def _node_skipped(plan: Plan, state: State, event: e.NodeSkipped) -> Pruned | None:
    if event.reason == "pruned":
        return None  # informs only; the arithmetic was done when the last in-edge died
    if event.reason == "skip_if":
        leave(plan, state, event.key)
    return resolve_node(plan, state, event.key, _SKIPPED, "out")


def _tells_only(plan: Plan, state: State, event: e.Event) -> None:
    """Kept for readers and for the values; control flow does not look at it."""


_APPLY: dict[type, Callable[[Plan, State, Any], Pruned | None]] = {
    e.RunStarted: _run_started,
    e.RunParked: _run_parked,
    e.RunCancelling: _run_cancelling,
    e.RunFinished: _run_finished,
    e.NodeStarted: _node_started,
    e.NodeSucceeded: _node_succeeded,
    e.RegionSized: region_sized,
    e.ScopesOpened: scopes_opened,
    e.RegionExited: region_exited,
    e.CleanupOpened: cleanup_opened,
    e.CleanupStopped: cleanup_stopped,
    e.NodeFailed: _node_failed,
    e.NodeSkipped: _node_skipped,
    e.RetryScheduled: retry_scheduled,
    e.RetryHastened: retry_hastened,
    e.WaitOpened: wait_opened,
    e.WaitClosed: wait_closed,
    e.StepStarted: step_started,
    e.StepFinished: step_finished,
    e.StepLost: step_lost,
    e.StepRetrying: step_retrying,
    e.NodeLeft: node_left,
    e.VariablesPatched: _tells_only,
    **dict.fromkeys(e.TELLS_ONLY, _tells_only),
}
