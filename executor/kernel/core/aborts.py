"""Gives up subtrees of a run, and ends the cleanups in them: `evolve` describes how."""

from __future__ import annotations

from collections import deque
from itertools import count

from compiler.keys import ROOT, NodeKey, Path
from compiler.plan import Plan
from executor.kernel.core.events import ErrorInfo
from executor.kernel.core.state import Abort, AbortKey, Cleanup, Container, ContainerKey, RunPhase, State, Status

# The abort of a run that ends before its root: the root has no container around it, so it counts as a branch of itself.
ROOT_ABORT: AbortKey = ((), 0, 0)


def give_up(plan: Plan, state: State, abort: AbortKey, error: ErrorInfo) -> None:
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
            if status == Status.RUNNING:
                left += key in state.running
            elif status == Status.WAITING:
                left += key in state.waits
            elif status == Status.RETRYING:
                state.retries.pop(key, None)
                left += key in state.waits
            elif status == Status.READY:
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
    """Return the open scopes of an aborted subtree, outer ones first, without its cleanups."""
    outer, region, index = abort
    branch = ROOT if abort == ROOT_ABORT else (*outer, (region, index))
    found = _open_scopes(plan, state, outer, region) if index < 0 else [branch] if branch in state.scopes else []
    for path in found:  # it grows meanwhile
        for node in plan.regions[state.scopes[path].region].nodes:
            if node.sentinel == "start":
                found += _open_scopes(plan, state, path, node.body)
    return found


def _open_scopes(plan: Plan, state: State, path: Path, body: int) -> list[Path]:
    container = state.containers.get((path, body))
    if container is None:
        return []
    first = container.opened - 1 if plan.regions[body].kind == "loop" else 0
    scopes = ((*path, (body, index)) for index in range(max(0, first), container.opened))
    return [scope for scope in scopes if scope in state.scopes]


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


def drained_one(plan: Plan, state: State, path: Path) -> None:
    """An attempt, wait or cleanup of a dead scope is over: count it in the outermost abort inside the cleanup around
    it."""
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
            if state.tries:
                forget_steps(plan, state, (path, number))
    outer, body, index = abort
    if abort == ROOT_ABORT:
        state.root_closed = True
        return
    if plan.regions[body].kind == "cleanup":
        cleanup_over(plan, state, outer, body, error)
        return
    container = state.containers[(outer, body)]
    if index < 0:
        state.failed_ends[(outer, plan.regions[body].end)] = error
    else:
        container.closed += 1
        branch_closed(plan, state, (outer, body), container)


def _owed_cleanups(plan: Plan, state: State, abort: AbortKey) -> list[NodeKey]:
    """Return the cleanups still to be run of the innermost containers of the subtree, by their end sentinels."""
    owed = [
        (path, plan.regions[node.body].end)
        for path in _subtree(plan, state, abort)
        for node in plan.regions[state.scopes[path].region].nodes
        if node.sentinel == "start" and owes_cleanup(plan, state, (path, node.body))
    ]
    depth = max((len(path) for path, _ in owed), default=0)
    return [key for key in owed if len(key[0]) == depth]


def owes_cleanup(plan: Plan, state: State, key: ContainerKey) -> bool:
    container = state.containers.get(key)
    begun = container is None or container.cleanup is not Cleanup.NOT_BEGUN
    return not begun and plan.regions[key[1]].cleanup >= 0


def owes_undo(plan: Plan, state: State, key: NodeKey) -> bool:
    """Returns True for a node that is to be undone when nothing of the run is under way any more."""
    return state.root_cleanup is Cleanup.OWED and key == plan.undone


def awaits_children(plan: Plan, state: State, key: NodeKey) -> bool:
    """Returns True for a node that is undone after the child runs for which it waits: they are cancelled with it."""
    return state.cancelled and state.phase is RunPhase.RUNNING and owes_undo(plan, state, key)


def forget_steps(plan: Plan, state: State, key: NodeKey) -> None:
    if not owes_undo(plan, state, key):
        state.tries.pop(key, None)


def owes_root_cleanup(plan: Plan, state: State) -> bool:
    region = plan.regions[0].cleanup
    due = Cleanup.NOT_BEGUN if plan.undone is None else Cleanup.OWED
    return region >= 0 and state.root_cleanup is due


def cleanup_over(plan: Plan, state: State, path: Path, region: int, error: ErrorInfo | None) -> None:
    """End a cleanup. Its own error counts if there was none before."""
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
        drained_one(plan, state, path)
    elif container.error is None:
        state.exits[key] = None
    else:
        state.failed_ends[key] = container.error


def branch_closed(plan: Plan, state: State, key: ContainerKey, container: Container) -> None:
    if container.closed == container.count:
        state.exits[(key[0], plan.regions[key[1]].end)] = None
    else:
        note_opening(plan, state, key, container)


def note_opening(plan: Plan, state: State, key: ContainerKey, container: Container) -> None:
    """Keep `opening` equal to the containers that may open a scope now."""
    limit = plan.regions[key[1]].limit or 1
    if container.opened < container.count and container.opened - container.closed < limit and not container.dead:
        state.opening[key] = None
    else:
        state.opening.pop(key, None)
