"""Decides what follows from attempts that wait, fail or are lost, and from containers that are given up; part of
`decide`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from msgspec.structs import replace

from compiler.keys import NodeKey, Path
from compiler.plan import Node, Retry
from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.aborts import awaits_children
from executor.kernel.core.evolve import Turn
from executor.kernel.core.evolve_containers import cleanup_of
from executor.kernel.core.state import Cleanup, RunPhase, Tries, Wait

# A block that takes its process down with it must not do so for ever: after so many losses a person is asked.
LOST_ATTEMPTS_MAX = 10
# Losses that other runs had part in, such as a machine that runs out of memory, count for this limit alone.
LOST_TOGETHER_MAX = 100


# An attempt that does not count may be repeated so often, and wait so long in all; then it counts like any other.
DEFERRED_MAX = 100
DEFERRED_TOTAL_MS = 24 * 3600 * 1000
# "Come back in 0 seconds" is no reason to ask again and again without a pause.
DEFERRED_PAUSE_MIN_MS = 1_000

_RUNNING, _STOPPING = RunPhase.RUNNING, RunPhase.STOPPING

CANCELLED = e.ErrorInfo("cancelled", "the result is no longer needed")
WAITS_FOR_NOTHING = e.ErrorInfo("waits_for_nothing", "the block left, and waits for nothing that can end")
CODE_ERROR = e.ErrorInfo(e.CODE, "the code that was here did not fit the run", retryable=True)
LOST_ERROR = e.ErrorInfo(e.LOST, "the process that ran this attempt has ended", retryable=True)
STEP_LOST = e.ErrorInfo("step_lost", "the process that did this step has ended, and it is unknown whether it was done")


def erred(
    turn: Turn,
    key: NodeKey,
    attempt: int,
    error: e.ErrorInfo,
    retry_at_ms: int | None = None,
    deferred: e.Deferred | None = None,
) -> None:
    retry = turn.plan.nodes[key[1]].policy.retry
    tries = turn.state.tries.get(key) or Tries()
    counted = attempt - tries.uncounted
    if deferred == "asked" and retry.max_attempts == 1:
        deferred = None  # retries are switched off: an answer is an answer
    if deferred is not None and may_go_on(turn, key):
        asked_ms = None if retry_at_ms is None else retry_at_ms - turn.at_ms
        back_off_ms = delay_ms(retry, turn.state.run, key, counted + tries.deferred)
        pause_ms = deferred_pause_ms(asked_ms, back_off_ms, tries.deferred, tries.waited_ms)
        if pause_ms is not None:
            turn.emit(e.RetryScheduled(key, attempt, turn.at_ms + pause_ms, error, deferred, pause_ms))
            return
    if _is_tried_again(turn, key, attempt, error):
        due_ms = turn.at_ms + delay_ms(retry, turn.state.run, key, counted)
        if retry_at_ms is not None:
            due_ms = max(turn.at_ms, retry_at_ms)
        turn.emit(e.RetryScheduled(key, attempt, due_ms, error))
    else:
        fail(turn, key, attempt, error)


def _is_tried_again(turn: Turn, key: NodeKey, attempt: int, error: e.ErrorInfo) -> bool:
    counted = attempt - (turn.state.tries.get(key) or Tries()).uncounted
    most = turn.plan.nodes[key[1]].policy.retry.max_attempts
    return error.retryable and counted < most and may_go_on(turn, key)


def deferred_pause_ms(asked_ms: int | None, back_off_ms: int, times: int, waited_ms: int) -> int | None:
    """Return the pause before an attempt that does not count as a failed one, or None if it counts."""
    pause_ms = back_off_ms if asked_ms is None else max(asked_ms, DEFERRED_PAUSE_MIN_MS)
    return None if times >= DEFERRED_MAX or waited_ms + pause_ms > DEFERRED_TOTAL_MS else pause_ms


def delay_ms(retry: Retry, run: str, key: NodeKey, attempt: int) -> int:
    """Return the pause after attempt number `attempt` has failed. Jitter is a hash: a replay computes the same
    times."""
    steps = attempt - 1
    match retry.backoff:
        case "fixed":
            base = float(retry.initial_ms)
        case "linear":
            base = retry.initial_ms * (1.0 + steps)
        case "exponential":
            # 64 doublings overflow nothing and are far over every cap
            base = retry.initial_ms * retry.factor ** min(steps, 64)
    base = min(base, float(retry.max_ms))
    spread = retry.jitter * (2.0 * _unit(run, key, attempt) - 1.0)
    return max(0, int(base * (1.0 + spread)))


def _unit(run: str, key: NodeKey, attempt: int) -> float:
    digest = hashlib.blake2b(repr((run, key, attempt)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def lost(turn: Turn, fact: f.AttemptLost) -> None:
    key, attempt, together = fact.key, fact.attempt, fact.together
    on_lost = turn.plan.nodes[key[1]].policy.on_lost
    if fact.reason or (fact.ask and on_lost == "retry"):
        on_lost = "ask"
    dead = turn.state.phase not in (_RUNNING, _STOPPING) or turn.state.scopes[key[0]].dead
    if dead or on_lost == "fail":
        fail(turn, key, attempt, LOST_ERROR)
    elif on_lost == "retry" and may_go_on(turn, key) and _may_be_lost_again(turn, key, together):
        turn.emit(e.RetryScheduled(key, attempt, turn.at_ms, LOST_ERROR, together=together))
    else:
        turn.emit(e.WaitOpened(key, attempt, "attention", reason=fact.reason))


def lose_steps(turn: Turn, key: NodeKey, attempt: int, again: bool = False) -> None:
    """Record the loss of unfinished steps. One that changed something outside is not done again, unless `again` is set
    or the step says otherwise: the handler that comes to it waits for a person."""
    tries = turn.state.tries.get(key)
    if tries is not None:
        for n, step in list(tries.by_n.items()):
            if not step.under_way or step.kind == "wait":  # a wait stays open, whatever becomes of an attempt
                continue
            if not again and step.when_lost == "fail":
                turn.emit(e.StepFinished(key, attempt, n, error=STEP_LOST))
            else:
                turn.emit(e.StepLost(key, attempt, n, again or step.when_lost == "retry"))


def _may_be_lost_again(turn: Turn, key: NodeKey, together: bool) -> bool:
    tries = turn.state.tries.get(key) or Tries()
    return tries.lost < LOST_TOGETHER_MAX and (together or tries.lost - tries.together < LOST_ATTEMPTS_MAX)


def may_go_on(turn: Turn, key: NodeKey) -> bool:
    return turn.state.phase is _RUNNING and not turn.state.scopes[key[0]].dead


def fail(turn: Turn, key: NodeKey, attempt: int, error: e.ErrorInfo) -> None:
    """No attempt is left: the node's error edges, on_error continue, an enclosing catcher, or the run."""
    node = turn.plan.nodes[key[1]]
    if not error.block:
        error = replace(error, block=node.block)
    if key in turn.state.waits:
        if attempt == turn.state.running.get(key) and awaits_children(turn.plan, turn.state, key):
            turn.emit(e.NodeLeft(key, attempt))
            return
        close_waits(turn, [key])
    if turn.state.scopes[key[0]].dead:
        turn.emit(e.NodeFailed(key, attempt, error))
        return
    if node.sentinel == "end" and clean_up(turn, key, error):
        return
    route = route_on_failure(node)
    caught = None if route else _catcher(turn, key[0])
    turn.emit(e.NodeFailed(key, attempt, error, route, caught))
    if caught and turn.state.waits:
        path = caught[1]
        whole = caught[0] == "container"
        depth = len(path)
        close_waits(
            turn,
            [
                other
                for other in turn.state.waits
                if turn.state.scopes[other[0]].dead
                and len(other[0]) >= depth
                and other[0][: depth - 1] == path[:-1]
                and (other[0][depth - 1] == path[-1] or (whole and other[0][depth - 1][0] == path[-1][0]))
            ],
        )


def _catcher(turn: Turn, path: Path) -> e.Caught | None:
    for depth in range(len(path), 0, -1):
        region = turn.plan.regions[path[depth - 1][0]]
        if region.kind == "cleanup":
            return "cleanup", path[:depth]
        if region.kind == "parallel" and region.on_branch_error != "fail":
            return "branch", path[:depth]
        if region.cleanup >= 0 or route_on_failure(turn.plan.nodes[region.end]):
            return "container", path[:depth]
    return None


def route_on_failure(node: Node) -> str | None:
    """Return the handle by which a failed node continues, or None."""
    if any(edge.handle == "error" for edge in node.out):
        return "error"
    return "out" if node.policy.on_error == "continue" else None


def close(turn: Turn, key: NodeKey, attempt: int, outcome: e.WaitOutcome, by: str | None = None) -> None:
    turn.emit(e.WaitClosed(key, attempt, outcome, by, len(turn.state.waits[key]) - 1))


def close_waits(turn: Turn, keys: Iterable[NodeKey] | None = None) -> None:
    for key in list(turn.state.waits if keys is None else keys):
        for attempt in list(turn.state.waits[key]):
            close(turn, key, attempt, "cancelled")


def dead_waits(turn: Turn) -> list[NodeKey]:
    return [key for key in turn.state.waits if turn.state.scopes[key[0]].dead]


def clean_up(turn: Turn, key: NodeKey, error: e.ErrorInfo | None = None) -> bool:
    """Begin the cleanup of the container with this end sentinel, or of the root. Returns False if there is none to
    begin."""
    region = cleanup_of(turn.plan, key[1])
    if region < 0 or turn.state.phase is not _RUNNING:
        return False
    body = turn.plan.nodes[key[1]].body
    container = turn.state.containers.get((key[0], body)) if body >= 0 else None
    if body >= 0 and (container is None or container.cleanup is not Cleanup.NOT_BEGUN):
        return False
    given_up = body >= 0 and turn.state.scopes[key[0]].dead
    turn.emit(e.CleanupOpened(key, turn.at_ms + turn.plan.settings.cleanup_timeout_ms, error, given_up))
    return True


def stop_cleanup(turn: Turn, key: NodeKey) -> bool:
    due_ms = turn.state.cleanups.get(key)
    if due_ms is None or due_ms > turn.at_ms:
        return False
    seconds = turn.plan.settings.cleanup_timeout_ms / 1000
    message = f"the cleanup took longer than {seconds:g} s (settings.cleanup_timeout_s)"
    turn.emit(e.CleanupStopped(key, e.ErrorInfo("cleanup_timeout", message, block=turn.plan.nodes[key[1]].block)))
    close_waits(turn, dead_waits(turn))
    return True


# --- waits ---

_AWAITED = {"signal": "signal", "webhook": "callback"}  # by kind of wait; else an answer


def suspend(turn: Turn, fact: f.NodeSuspended) -> None:
    key, attempt = fact.key, fact.attempt
    if fact.step is not None and _is_each(turn, key):  # its other waits may be open
        first = f.WaitBeside(fact.step, fact.kind, fact.due_ms, fact.on_expire)
        left(turn, f.HandlerLeft(fact.at_ms, key, attempt, (first, *fact.beside)))
        return
    for step in (fact.step, *(wait.step for wait in fact.beside)):
        if step is not None and not step.lost:
            turn.emit(_wait_started(key, attempt, step))
    n = None if fact.step is None else fact.step.n
    turn.emit(e.WaitOpened(key, attempt, fact.kind, fact.due_ms, fact.on_expire, n))
    for number, wait in enumerate(fact.beside, attempt + 1):
        turn.emit(e.WaitOpened(key, number, wait.kind, wait.due_ms, wait.on_expire, wait.step.n, beside=True))


def _wait_started(key: NodeKey, attempt: int, step: f.WaitStep) -> e.StepStarted:
    place = step.line, step.task, step.above, step.group
    return e.StepStarted(key, attempt, step.n, "wait", step.name, step.input_hash, "none", *place)


def left(turn: Turn, fact: f.HandlerLeft) -> None:
    key, attempt = fact.key, fact.attempt
    change_waits(turn, fact)
    tries = turn.state.tries.get(key)
    again = tries is not None and tries.news_seq > fact.received_seq
    if key in turn.state.waits or again or fact.due_ms is not None:
        turn.emit(e.NodeLeft(key, attempt, again, fact.due_ms))
    else:
        fail(turn, key, attempt, WAITS_FOR_NOTHING)


def change_waits(turn: Turn, fact: f.HandlerLeft | f.HandlerWaits) -> None:
    """Open waits and close others. The first that opens when the attempt ends may have its number: while it runs, an
    end with that number is one of its own steps."""
    key, attempt = fact.key, fact.attempt
    for wait in fact.opens:
        if not wait.step.lost:
            turn.emit(_wait_started(key, attempt, wait.step))
    tries = turn.state.tries.get(key) or Tries()
    runs = isinstance(fact, f.HandlerWaits) or tries.last_wait > attempt
    for number, wait in enumerate(fact.opens, max(tries.last_wait, attempt) + 1 if runs else attempt):
        turn.emit(e.WaitOpened(key, number, wait.kind, wait.due_ms, wait.on_expire, wait.step.n, each=True))
    for number, open in list(turn.state.waits.get(key, {}).items()):
        if open.step in fact.drops:
            close(turn, key, number, "cancelled")


def _is_each(turn: Turn, key: NodeKey) -> bool:
    tries = turn.state.tries.get(key)
    return tries is not None and tries.each


def wait_over(turn: Turn, fact: f.WaitAnswered | f.WaitFailed | f.WaitRetried) -> bool:
    key, attempt = fact.key, fact.attempt
    wait = turn.state.wait_of(key, attempt)
    if wait is None or (isinstance(fact, f.WaitRetried) and wait.kind != "attention"):
        return False
    again = isinstance(fact, f.WaitFailed) and _is_tried_again(turn, key, attempt, fact.error)
    if wait.step is None and not (again or isinstance(fact, f.WaitRetried)):
        _close_others(turn, key, attempt)
    close(turn, key, attempt, "answered", fact.by)
    match fact:
        case f.WaitAnswered() if wait.step is not None:
            turn.emit(e.StepFinished(key, attempt, wait.step))
        case f.WaitFailed() if wait.step is not None:
            turn.emit(e.StepFinished(key, attempt, wait.step, error=fact.error))
        case f.WaitAnswered():
            turn.emit(e.NodeSucceeded(key, attempt, fact.route))
        case f.WaitFailed():
            erred(turn, key, attempt, fact.error)
        case f.WaitRetried():
            if wait.step is not None:
                turn.emit(e.StepLost(key, attempt, wait.step, True))
            if wait.step is None or not _is_each(turn, key):
                turn.emit(e.RetryScheduled(key, attempt, turn.at_ms, CODE_ERROR if wait.reason else LOST_ERROR))
    return True


def _close_others(turn: Turn, key: NodeKey, number: int) -> None:
    """Close the other waits of a node before the one that decides it: that one is then the last."""
    for other in list(turn.state.waits[key]):
        if other != number:
            close(turn, key, other, "cancelled")


def timer_fired(turn: Turn, fact: f.TimerFired) -> bool:
    key = fact.key
    if not fact.attempt:
        return stop_cleanup(turn, key)
    retry = turn.state.retries.get(key)
    if retry is not None and retry[0] == fact.attempt:
        return retry[1] <= turn.at_ms  # `advance` starts what is due
    wait = turn.state.wait_of(key, fact.attempt)
    if wait is None or wait.due_ms is None or wait.due_ms > turn.at_ms:
        return False
    if wait.step is None:
        _close_others(turn, key, wait.attempt)
    close(turn, key, wait.attempt, "fired" if wait.kind == "timer" else "expired")
    if wait.step is not None:
        turn.emit(e.StepFinished(key, wait.attempt, wait.step, error=fact.error or _expiry_error(wait)))
        return True
    if fact.error is not None:
        fail(turn, key, wait.attempt, fact.error)
        return True
    if wait.kind == "timer":
        turn.emit(e.NodeSucceeded(key, wait.attempt))
        return True
    match wait.on_expire:
        case "fail":
            fail(turn, key, wait.attempt, _expired(wait))
        case "skip":
            turn.emit(e.NodeSkipped(key, "expired", attempt=wait.attempt))
        case "continue":
            turn.emit(e.NodeSucceeded(key, wait.attempt))
        case action:
            turn.emit(e.NodeSucceeded(key, wait.attempt, route_of_action(turn.plan.nodes[key[1]], action)))
    return True


def fork_made(turn: Turn, fact: f.ForkMade) -> None:
    turn.emit(e.RunForked(fact.source, fact.seq))
    error = e.ErrorInfo(e.FORKED, "the run was forked while this attempt was running", retryable=True)
    for key, attempt in list(turn.state.running.items()):
        if turn.state.scopes[key[0]].dead:  # it was only draining, and is not needed here either
            fail(turn, key, attempt, CANCELLED)
        else:
            lose_steps(turn, key, attempt, again=True)
            turn.emit(e.RetryScheduled(key, attempt, turn.at_ms, error))
    close_waits(turn, dead_waits(turn))
    for key in list(turn.state.waits):
        _leave_children(turn, key, error)


def _leave_children(turn: Turn, key: NodeKey, error: e.ErrorInfo) -> None:
    """Start other child runs here: those that this node waits for are those of the other run."""
    tries = turn.state.tries.get(key)
    last = 0 if tries is None else tries.last_wait
    for attempt, wait in list(turn.state.waits[key].items()):
        if wait.kind == "child":
            close(turn, key, attempt, "answered")
            if wait.step is not None:
                turn.emit(e.StepLost(key, attempt, wait.step, True))
            last = max(last, attempt)
    if key not in turn.state.waits and key not in turn.state.retries:
        turn.emit(e.RetryScheduled(key, last, turn.at_ms, error))


def _expired(wait: Wait) -> e.ErrorInfo:
    return e.ErrorInfo("wait_expired", f"no {_AWAITED.get(wait.kind, 'answer')} arrived in time")


def _expiry_error(wait: Wait) -> e.ErrorInfo | None:
    """Return the error of an expired wait that is a step, or None."""
    return _expired(wait) if wait.kind != "timer" and wait.on_expire == "fail" else None


def route_of_action(node: Node, action: str | None) -> str:
    """Return the handle an answer follows: the action's own if it is wired, else `out`."""
    return action if action is not None and any(edge.handle == action for edge in node.out) else "out"
