"""Applies the events of retries, waits and steps; part of `evolve`."""

from __future__ import annotations

from compiler.keys import NodeKey
from compiler.plan import Plan
from executor.kernel.core import events as e
from executor.kernel.core.aborts import drained_one, owes_undo
from executor.kernel.core.events import CODE, FORKED, LOST, STOPPED
from executor.kernel.core.scopes import leave, set_status
from executor.kernel.core.state import NEVER, State, Status, Tries, Wait


def retry_scheduled(plan: Plan, state: State, event: e.RetryScheduled) -> None:
    key = event.key
    tries = state.tries_of(key)
    if key in state.running or not tries.each:  # else a person was asked about it, and other waits may be open
        leave(plan, state, key)
    tries.last_wait = max(tries.last_wait, event.attempt) if tries.each else 0
    if event.error.code in (LOST, FORKED):
        tries.lost += 1
        tries.together += event.together
    elif event.error.code == CODE:
        tries.entries += 1
    else:
        tries.try_again()
    if event.deferred is not None:
        tries.deferred += 1
        tries.waited_ms += event.pause_ms
    _add_retry(plan, state, key, max(tries.last_wait, event.attempt) + 1, event.due_ms)
    set_status(plan, state, key, Status.RETRYING)


def retry_hastened(plan: Plan, state: State, event: e.RetryHastened) -> None:
    assert event.key in state.retries, "only a retry that has its time can be hastened"
    state.tries[event.key].hasten(event.due_ms)
    _add_retry(plan, state, event.key, event.attempt, event.due_ms)


def _add_retry(plan: Plan, state: State, key: NodeKey, attempt: int, due_ms: int) -> None:
    state.retries[key] = (attempt, due_ms)
    state.dues.add_retry(state, key, attempt, due_ms, plan.nodes[key[1]].inline)


def wait_opened(plan: Plan, state: State, event: e.WaitOpened) -> None:
    key = event.key
    if event.each:
        waits = state.waits.setdefault(key, {})
        tries = state.tries_of(key)
        tries.each = True
        tries.entries += event.attempt > state.running[key]
        tries.last_wait = max(tries.last_wait, event.attempt)
    elif event.beside:
        waits = state.waits[key]
        tries = state.tries[key]
        tries.entries += 1
        tries.last_wait = event.attempt
    else:
        leave(plan, state, key)
        waits = state.waits.setdefault(key, {})  # others may be open, after `node.left`
        if (left := state.tries.get(key)) is not None and left.each:
            left.last_wait = max(left.last_wait, event.attempt)
    waits[event.attempt] = Wait(event.attempt, event.kind, event.due_ms, event.on_expire, event.step, event.reason)
    if event.due_ms is not None:
        state.dues.add_wait(state, key, event.attempt, event.due_ms)
    if not event.each:
        set_status(plan, state, key, Status.WAITING)


def node_left(plan: Plan, state: State, event: e.NodeLeft) -> None:
    key = event.key
    leave(plan, state, key)
    tries = state.tries_of(key)
    tries.each, tries.left_seq = True, state.seq
    tries.progressed()
    tries.entries += 1
    tries.last_wait = max(tries.last_wait, event.attempt)
    due_ms = 0 if event.again else event.due_ms
    if due_ms is None:
        set_status(plan, state, key, Status.WAITING)
        return
    tries.paused = not event.again
    _add_retry(plan, state, key, tries.last_wait + 1, due_ms)
    set_status(plan, state, key, Status.RETRYING)


def wait_closed(plan: Plan, state: State, event: e.WaitClosed) -> None:
    waits = state.waits.get(event.key)
    assert waits is not None and event.attempt in waits, "only an open wait can close"
    del waits[event.attempt]
    if waits:
        return
    del state.waits[event.key]
    given_up = event.outcome == "cancelled" or owes_undo(plan, state, event.key)
    if given_up and event.key not in state.running:
        set_status(plan, state, event.key, Status.CANCELLED)
        drained_one(plan, state, event.key[0])


def step_started(plan: Plan, state: State, event: e.StepStarted) -> None:
    state.tries_of(event.key).started(event, state.seq)


def step_retrying(plan: Plan, state: State, event: e.StepRetrying) -> None:
    state.tries[event.key].retrying(event)


def step_finished(plan: Plan, state: State, event: e.StepFinished) -> None:
    tries = state.tries[event.key]
    owed = owes_undo(plan, state, event.key)
    if owed and event.error is not None and event.error.code in STOPPED:
        del tries.by_n[event.n]  # the code that undoes it is cancelled there
        return
    tries.finished(event.n, event.error is not None, state.seq)
    if owed:
        return
    if tries.each:
        if _is_by_wait(state, event):
            _enter(plan, state, event.key, tries, state.seq)
        return
    # Finished by a wait that is over. After the last open one the handler is entered again, as soon as it may start.
    if event.key not in state.running and event.key not in state.waits:
        tries.entries += 1
        last, tries.last_wait = tries.last_wait or event.attempt, 0
        _add_retry(plan, state, event.key, last + 1, 0)
        set_status(plan, state, event.key, Status.RETRYING)


def step_lost(plan: Plan, state: State, event: e.StepLost) -> None:
    tries = state.tries[event.key]
    tries.lose(event.n, event.again)
    if tries.each and event.again and _is_by_wait(state, event):
        _enter(plan, state, event.key, tries, NEVER)  # the attempt that runs has it as lost


def _is_by_wait(state: State, event: e.StepFinished | e.StepLost) -> bool:
    """Returns True if the end of a wait ended the step: waits never have the number of the attempt that runs."""
    return state.running.get(event.key) != event.attempt


def _enter(plan: Plan, state: State, key: NodeKey, tries: Tries, seq: int) -> None:
    """Enter the handler again, as soon as it may start; one that runs, when it has left and has not received `seq`. Not
    while the node itself waits, such as for what became of a lost attempt."""
    if key in state.running:
        tries.news_seq = max(tries.news_seq, seq)
    elif not any(wait.step is None for wait in state.waits.get(key, {}).values()):
        attempt, _ = state.retries.get(key, (0, 0))
        if not attempt or tries.paused:
            tries.paused = False
            _add_retry(plan, state, key, attempt or tries.last_wait + 1, 0)
            set_status(plan, state, key, Status.RETRYING)
