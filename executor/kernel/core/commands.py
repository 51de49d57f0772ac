"""Commands: what goes out. They follow from events (`commands_of`) or, after a crash, from the state
(`outstanding`)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from compiler.keys import NodeKey
from compiler.plan import Plan
from executor.kernel.core import events as e
from executor.kernel.core.aborts import owes_undo
from executor.kernel.core.state import RunPhase, State


class RunNode(Struct, frozen=True, gc=False):
    key: NodeKey
    attempt: int


class CancelNode(Struct, frozen=True, gc=False):
    """Stop the handler of this attempt; its outcome still comes back as a fact. `drains`: what it has begun outside may
    end first."""

    key: NodeKey
    drains: bool = False


class SetTimer(Struct, frozen=True, gc=False):
    """Deliver TimerFired(key, attempt) at `due_ms`."""

    key: NodeKey
    attempt: int
    due_ms: int


class Park(Struct, frozen=True, gc=False):
    due_ms: int | None


class Finish(Struct, frozen=True, gc=False):
    status: e.RunEnd


Command = RunNode | CancelNode | SetTimer | Park | Finish


def commands_of(plan: Plan, state: State, events: Iterable[e.Event]) -> list[Command]:
    """Return what to do once these events are committed. `state` is the state after them."""
    out: list[Command] = []
    for event in events:
        kind = type(event)
        if kind is e.NodeSucceeded or kind is e.ScopesOpened:  # most have one of these types: checked first
            if kind is e.NodeSucceeded and event.end_run:  # type: ignore[union-attr]  # `kind` is its type
                out += [CancelNode(key) for key in state.running if state.scopes[key[0]].dead]
            continue
        if kind is e.NodeStarted:
            out.append(RunNode(event.key, event.attempt))  # type: ignore[union-attr]  # `kind` is its type
            continue
        match event:
            case e.RetryScheduled() if event.key in state.retries:
                out.append(SetTimer(event.key, state.retries[event.key][0], event.due_ms))
            case e.RetryHastened() if event.key in state.retries:
                out.append(SetTimer(event.key, event.attempt, event.due_ms))
            case e.NodeLeft() if event.due_ms is not None and event.key in state.retries:
                out.append(SetTimer(event.key, state.retries[event.key][0], event.due_ms))
            case e.WaitOpened() if event.due_ms is not None:
                out.append(SetTimer(event.key, event.attempt, event.due_ms))
            case e.RunCancelling():
                everything = state.phase is not RunPhase.RUNNING
                out += [
                    CancelNode(key, not everything and owes_undo(plan, state, key))
                    for key in state.running
                    if everything or state.scopes[key[0]].dead
                ]
            case e.CleanupOpened() if event.key in state.cleanups:
                out.append(SetTimer(event.key, 0, event.due_ms))
            case e.CleanupStopped():
                out += [CancelNode(key) for key in state.running if state.scopes[key[0]].dead]
            case e.NodeFailed() if event.route is None and plan.settings.on_failure == "cancel":
                everything = event.caught is None and state.phase is RunPhase.FAILING
                if everything or state.aborts:  # else no scope is dead
                    out += [CancelNode(key) for key in state.running if everything or state.scopes[key[0]].dead]
            case e.RunParked():
                out.append(Park(event.due_ms))
            case e.RunFinished():
                out.append(Finish(event.status))
            case _:
                pass
    return out


def outstanding(plan: Plan, state: State) -> list[Command]:
    """Return, after a crash, the attempts without an end and the timers to set."""
    out: list[Command] = [RunNode(key, attempt) for key, attempt in state.running.items()]
    out += [SetTimer(key, attempt, due_ms) for key, (attempt, due_ms) in state.retries.items()]
    out += [SetTimer(key, 0, due_ms) for key, due_ms in state.cleanups.items()]
    out += [SetTimer(key, wait.attempt, wait.due_ms) for key, wait in state.open_waits() if wait.due_ms is not None]
    return out
