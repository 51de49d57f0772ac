"""Opens and closes scopes, and resolves the edges in them: `evolve` describes how."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.keys import NodeKey, Path
from compiler.plan import Plan
from executor.kernel.core.aborts import branch_closed, cleanup_over, drained_one, forget_steps
from executor.kernel.core.state import RunPhase, Scope, State, Status

# Nodes that an event pruned, each with the node whose edge died last: decide records them with NodeSkipped.
Pruned = Sequence[tuple[NodeKey, NodeKey]]

_READY, _SKIPPED = Status.READY, Status.SKIPPED
_RUNNING = RunPhase.RUNNING
_NO_EDGE = "\0"  # a route no handle can have: every edge resolves dead


def open_scope(plan: Plan, state: State, path: Path, region_index: int) -> None:
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
            make_ready(plan, state, scope, path, entry)


def make_ready(plan: Plan, state: State, scope: Scope, path: Path, number: int) -> None:
    key = (path, number)
    scope.status[number - plan.regions[scope.region].first] = _READY
    if not path and number in state.reuse:
        state.reusing[key] = None
        return
    node = plan.nodes[number]
    state.ready[0 if node.inline else node.policy.group + 1].append((state.ticket, key))
    state.ticket += 1


def resolve_node(
    plan: Plan, state: State, key: NodeKey, status: Status, route: str | None, skip_target: int = -1
) -> Pruned:
    """Give a node its final status, resolve its out-edges (`route` live, the rest dead; all dead if it is None) and
    cascade. Returns the nodes that it pruned, in the order in which their edges died."""
    path, number = key
    scope = state.scopes[path]
    first = plan.regions[scope.region].first
    scope.status[number - first] = status
    if state.tries:
        forget_steps(plan, state, key)
    if state.stop_after == number and state.phase is _RUNNING:
        state.phase = RunPhase.STOPPING
    if scope.dead:
        drained_one(plan, state, path)
        return ()
    pruned: list[tuple[NodeKey, NodeKey]] = []
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
                make_ready(plan, state, scope, path, target)
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
    return pruned


def _close_scope(plan: Plan, state: State, path: Path) -> None:
    del state.scopes[path]
    if not path:
        state.root_closed = True
        return
    outer, (body, _) = path[:-1], path[-1]
    region = plan.regions[body]
    if region.kind == "cleanup":
        cleanup_over(plan, state, outer, body, None)
        return
    container = state.containers[(outer, body)]
    container.closed += 1
    if region.kind == "loop":
        make_ready(plan, state, state.scopes[outer], outer, region.end)
    else:
        branch_closed(plan, state, (outer, body), container)


def set_status(plan: Plan, state: State, key: NodeKey, status: Status) -> None:
    scope = state.scopes[key[0]]
    scope.status[key[1] - plan.regions[scope.region].first] = status


def leave(plan: Plan, state: State, key: NodeKey) -> None:
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
