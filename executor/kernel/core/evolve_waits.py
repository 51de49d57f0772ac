"""Applies the events of retries, waits and steps; part of `evolve`."""

from __future__ import annotations

from compiler.keys import NodeKey
from compiler.plan import Plan
from executor.kernel.core import events as e
from executor.kernel.core.aborts import drained_one
from executor.kernel.core.events import FORKED, LOST
from executor.kernel.core.scopes import leave, set_status
from executor.kernel.core.state import State, Status, Wait


def retry_scheduled(plan: Plan, state: State, event: e.RetryScheduled) -> None:
    key = event.key
    leave(plan, state, key)
    tries = state.tries_of(key)
    tries.last_wait = 0
    if event.error.code in (LOST, FORKED):
        tries.lost += 1
        tries.together += event.together
    else:
        tries.try_again()
    if event.deferred is not None:
        tries.deferred += 1
        tries.waited_ms += event.pause_ms
    _add_retry(plan, state, key, event.attempt + 1, event.due_ms)
    set_status(plan, state, key, Status.RETRYING)


def retry_hastened(plan: Plan, state: State, event: e.RetryHastened) -> None:
    assert event.key in state.retries, "only a retry that has its time can be hastened"
    _add_retry(plan, state, event.key, event.attempt, event.due_ms)


def _add_retry(plan: Plan, state: State, key: NodeKey, attempt: int, due_ms: int) -> None:
    state.retries[key] = (attempt, due_ms)
    state.dues.add_retry(state, key, attempt, due_ms, plan.nodes[key[1]].inline)


def wait_opened(plan: Plan, state: State, event: e.WaitOpened) -> None:
    key = event.key
    if event.beside:
        waits = state.waits[key]
        tries = state.tries[key]
        tries.entries += 1
        tries.last_wait = event.attempt
    else:
        leave(plan, state, key)
        waits = state.waits[key] = {}
    waits[event.attempt] = Wait(event.attempt, event.kind, event.due_ms, event.on_expire, event.step)
    if event.due_ms is not None:
        state.dues.add_wait(state, key, event.attempt, event.due_ms)
    set_status(plan, state, key, Status.WAITING)


def wait_closed(plan: Plan, state: State, event: e.WaitClosed) -> None:
    waits = state.waits.get(event.key)
    assert waits is not None and event.attempt in waits, "only an open wait can close"
    del waits[event.attempt]
    if waits:
        return
    del state.waits[event.key]
    if event.outcome == "cancelled":
        set_status(plan, state, event.key, Status.CANCELLED)
        drained_one(plan, state, event.key[0])


def step_started(plan: Plan, state: State, event: e.StepStarted) -> None:
    state.tries_of(event.key).started(event, state.seq)


def step_finished(plan: Plan, state: State, event: e.StepFinished) -> None:
    tries = state.tries[event.key]
    tries.finished(event.n, event.error is not None, state.seq)
    # Finished by a wait that is over. After the last open one the handler is entered again, as soon as it may start.
    if event.key not in state.running and event.key not in state.waits:
        tries.entries += 1
        last, tries.last_wait = tries.last_wait or event.attempt, 0
        _add_retry(plan, state, event.key, last + 1, 0)
        set_status(plan, state, event.key, Status.RETRYING)


def step_lost(plan: Plan, state: State, event: e.StepLost) -> None:
    state.tries[event.key].lose(event.n, event.again)
