"""Explains the status of a node, from the same counters that decide readiness."""

from __future__ import annotations

from compiler.keys import NodeKey, format_key
from compiler.plan import Plan
from executor.kernel.core.state import Cleanup, RunPhase, State, Status, Wait


def explain(plan: Plan, state: State, key: NodeKey) -> tuple[str, tuple[str, ...]]:
    """(state in one word, the conditions that are not met, in words). An empty list: nothing holds it back."""
    path, number = key
    node = plan.nodes[number]
    status = state.status_of(plan, key)
    if status is None:
        return _not_open(plan, state, key)
    match status:
        case Status.PENDING if key in state.cleanups:
            return "pending", ("its cleanup is running",)
        case Status.PENDING if node.sentinel == "end" and (path, node.body) in state.containers:
            return "pending", _container(plan, state, key)
        case Status.PENDING:
            return "pending", _pending(plan, state, key)
        case Status.READY:
            return "ready", _ready(plan, state, key)
        case Status.RUNNING:
            return "running", (f"attempt {state.running[key]} is running", *_retrying(state, key), *_losses(state, key))
        case Status.WAITING:
            waits = state.waits[key].values()
            word = "needs_attention" if any(wait.kind == "attention" for wait in waits) else "waiting"
            return word, (*(_waiting(wait) for wait in waits), *_losses(state, key))
        case Status.RETRYING:
            attempt, due_ms = state.retries[key]
            starts = _retrying(state, key) or (f"attempt {attempt} starts at {due_ms} ms",)
            waits = state.waits.get(key, {}).values()
            return "retrying", (*starts, *(_waiting(wait) for wait in waits), *_losses(state, key))
        case _:
            return status.name.lower(), ()


def _waiting(wait: Wait) -> str:
    verb = "due" if wait.kind == "timer" else "expires"
    until = "" if wait.due_ms is None else f"; {verb} at {wait.due_ms} ms"
    what = "code that fits the run" if wait.reason else _ANSWER[wait.kind]
    return f"waits for {what}{until}"


def _retrying(state: State, key: NodeKey) -> tuple[str, ...]:
    tries = state.tries.get(key)
    steps = {} if tries is None else {n: step for n, step in tries.by_n.items() if step.due_ms is not None}
    return tuple(
        f"step {n} ({step.name}) has failed {_times(step.times)} and begins again "
        + (f"at {step.due_ms} ms" if step.due_ms else "at once")
        for n, step in steps.items()
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _losses(state: State, key: NodeKey) -> tuple[str, ...]:
    tries = state.tries.get(key)
    # Lost with its process, or under way in the run that this one was forked from.
    ended = _earlier(tries.lost, "ended without a result") if tries is not None else ()
    return (*ended, *_earlier(tries.deferred, "was postponed and does not count")) if tries is not None else ()


def _earlier(times: int, what: str) -> tuple[str, ...]:
    return (f"{times} earlier attempt{'s' if times > 1 else ''} {what}",) if times else ()


_ANSWER = {
    "approval": "a decision",
    "form": "a person to fill in the form",
    "timer": "its timer",
    "signal": "a signal",
    "webhook": "a callback",
    "child": "a child run to end",
    "attention": "a decision about its lost attempt",
}


def _not_open(plan: Plan, state: State, key: NodeKey) -> tuple[str, tuple[str, ...]]:
    path = key[0]
    in_cleanup = plan.in_cleanup(path) and state.phase is not RunPhase.FINISHED
    if (state.root_closed or state.phase is RunPhase.FINISHED) and not in_cleanup:
        return "closed", ("the run has ended",)
    for depth in range(1, len(path) + 1):
        region, index = path[depth - 1]
        if plan.regions[region].kind == "cleanup":
            if path[:depth] in state.scopes:
                continue
            return _cleanup_not_open(plan, state, (path[: depth - 1], plan.regions[region].end))
        container = state.containers.get((path[: depth - 1], region))
        name = plan.regions[region].id
        if container is None:
            start = (path[: depth - 1], plan.regions[region].start)
            return "not opened", (f"'{format_key(plan, start)}' has not started or has ended",)
        if index >= container.opened:
            word = "iteration" if plan.regions[region].kind == "loop" else "branch"
            return "not opened", (f"{word} {index} of '{name}' is not open yet ({container.opened} opened so far)",)
    return "closed", ("its iteration or branch has ended",)


def _cleanup_not_open(plan: Plan, state: State, key: NodeKey) -> tuple[str, tuple[str, ...]]:
    node = plan.nodes[key[1]]
    if node.sentinel is None:
        if state.root_cleanup is Cleanup.OVER:
            return "closed", ("its cleanup has ended",)
        when = "it runs when the run ends" if plan.undone is None else "it runs if the run is cancelled"
        return "not opened", (when,)
    container = state.containers.get((key[0], node.body))
    if container is not None and container.cleanup is Cleanup.NOT_BEGUN:
        return "not opened", (f"it runs when '{node.block}' ends",)
    if container is None and state.status_of(plan, key) is Status.PENDING:
        return "not opened", (f"'{node.block}' has not started",)
    return "closed", ("its cleanup has ended",)


def _pending(plan: Plan, state: State, key: NodeKey) -> tuple[str, ...]:
    """Return the sources whose edges are still open. Looks at one node's neighbours, on demand only."""
    if state.phase is RunPhase.FINISHED:
        return ("the run has ended",)
    path, number = key
    scope = state.scopes[path]
    first = plan.regions[scope.region].first
    reasons = []
    for source in plan.sources[number]:
        status = Status(scope.status[source - first])
        if status < Status.SUCCEEDED:
            reasons.append(f"waits for '{plan.nodes[source].id}' ({status.name.lower()})")
    return tuple(reasons)


def _container(plan: Plan, state: State, key: NodeKey) -> tuple[str, ...]:
    path, number = key
    body = plan.nodes[number].body
    container = state.containers[(path, body)]
    word = "iterations" if plan.regions[body].kind == "loop" else "branches"
    return (f"{container.closed} of {container.count} {word} done, {container.opened - container.closed} open",)


def _ready(plan: Plan, state: State, key: NodeKey) -> tuple[str, ...]:
    if state.phase is not RunPhase.RUNNING:
        return (f"the run is {state.phase.name.lower()}: no new blocks start",)
    group = plan.nodes[key[1]].policy.group
    if group and state.slots[group] >= plan.groups[group].limit:
        return (f"group '{plan.groups[group].name}' is full ({plan.groups[group].limit} running)",)
    if state.slots[0] >= plan.settings.max_concurrency:
        return (f"max_concurrency is reached ({plan.settings.max_concurrency} running)",)
    return ("it starts next",)
