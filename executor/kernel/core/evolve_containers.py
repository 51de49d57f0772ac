"""Applies the events of containers and cleanups; part of `evolve`."""

from __future__ import annotations

from compiler.plan import Plan
from executor.kernel.core import events as e
from executor.kernel.core.aborts import give_up, note_opening
from executor.kernel.core.scopes import Pruned, leave, open_scope, resolve_node, set_status
from executor.kernel.core.state import Cleanup, Container, State, Status, Tries


def region_sized(plan: Plan, state: State, event: e.RegionSized) -> Pruned:
    key = event.key
    path, start = key
    if key in state.reusing:
        del state.reusing[key]
    else:
        leave(plan, state, key)
    scope = state.scopes[path]
    if scope.dead:
        return resolve_node(plan, state, key, Status.SUCCEEDED, None)
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
    return resolve_node(plan, state, key, Status.SUCCEEDED, None, skip_target=region.end)


def scopes_opened(plan: Plan, state: State, event: e.ScopesOpened) -> None:
    path, start = event.key
    body = plan.nodes[start].body
    region = plan.regions[body]
    container = state.containers[(path, body)]
    assert container.opened == event.first, "scopes open in order, once each"
    if region.kind == "loop" and event.first > 0:
        end = (path, region.end)
        leave(plan, state, end)
        set_status(plan, state, end, Status.PENDING)
    container.count = max(container.count, event.first + event.count)
    container.opened += event.count
    note_opening(plan, state, (path, body), container)
    for index in range(event.first, event.first + event.count):
        open_scope(plan, state, (*path, (body, index)), body)


def region_exited(plan: Plan, state: State, event: e.RegionExited) -> Pruned:
    path, end = event.key
    body = plan.nodes[end].body
    state.exits.pop(event.key, None)
    if event.key in state.running:
        leave(plan, state, event.key)
    state.containers.pop((path, body), None)
    return resolve_node(plan, state, event.key, Status.SUCCEEDED, "out")


def cleanup_opened(plan: Plan, state: State, event: e.CleanupOpened) -> None:
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
            leave(plan, state, key)
            set_status(plan, state, key, Status.PENDING)
        container = state.containers[(path, plan.nodes[number].body)]
        assert container.cleanup is Cleanup.NOT_BEGUN, "a cleanup runs once"
        container.cleanup = Cleanup.OPEN
        container.error = event.error
    region = cleanup_of(plan, number)
    inside = (*path, (region, 0))
    open_scope(plan, state, inside, region)
    if (undone := plan.undone) is not None and plan.nodes[number].sentinel is None:
        tries = state.tries.pop(undone, None) or Tries()
        state.tries[inside, plan.regions[region].first] = tries.taken_over(state.seq)


def cleanup_stopped(plan: Plan, state: State, event: e.CleanupStopped) -> None:
    path, number = event.key
    del state.cleanups[event.key]
    abort = (path, cleanup_of(plan, number), 0)
    if abort not in state.aborts:  # else something in it has failed, and the rest is ending
        give_up(plan, state, abort, event.error)


def cleanup_of(plan: Plan, number: int) -> int:
    """Return the cleanup region of the container with this end sentinel, or of the root; -1 if it has none."""
    node = plan.nodes[number]
    return plan.regions[0 if node.sentinel is None else node.body].cleanup
