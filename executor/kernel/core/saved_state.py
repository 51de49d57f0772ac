"""The state of a run as rows that can be stored, and the state from these rows.

Everything that a later event or decision depends on is there, and in the order in which it is: in places dicts are read
in their order (who waits longest). What follows from the rest (`State.dues`) is made again.

Rows are small, so that a caller can stop between them: a state has as many as the run has scopes, open nodes and waits.
Types of rows are given by kind, so that keys come back as tuples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from typing import Any

from compiler.keys import NodeKey, Path
from compiler.plan import Plan
from executor.kernel.core.events import ErrorInfo, RunEnd, StepEffect, StepKind, WaitKind
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
    Step,
    Wait,
)

_Ending = tuple[RunEnd, ErrorInfo | None]
_Head = tuple[str, int, int, bool, int, list[int], int | None, int, bool, ErrorInfo | None, RunEnd | None]

# The type of the rows of each kind.
STATE_ROWS: dict[str, Any] = {
    "state": _Head,
    "scope": tuple[Path, int, list[int], list[int], bytes, int, bool],
    "container": tuple[ContainerKey, int, int, int, bool, int, ErrorInfo | None],
    "ready": tuple[int, int, NodeKey],
    "running": tuple[NodeKey, int],
    "wait": tuple[NodeKey, int, WaitKind, int | None, str, int | None],
    "retry": tuple[NodeKey, int, int],
    "lost": tuple[NodeKey, int],
    "together": tuple[NodeKey, int],
    "deferred": tuple[NodeKey, int, int],
    "opening": ContainerKey,
    "exit": NodeKey,
    "failed_end": tuple[NodeKey, ErrorInfo],
    "abort": tuple[AbortKey, int, ErrorInfo],
    "reuse": tuple[int, str | None],
    "reusing": NodeKey,
    "due_cleanup": NodeKey,
    "cleanup": tuple[NodeKey, int],
    "ending": tuple[_Ending | None, bool, int],
    "entries": tuple[NodeKey, int, int],
    "step": tuple[NodeKey, int, tuple[StepKind, str, str, StepEffect, int, int, bool, bool]],
}


def rows_of_state(state: State) -> Iterator[tuple[str, Iterable[Any]]]:
    """(kind, rows), each kind once. The state may not change before the last row has been taken."""
    head: _Head = (
        state.run,
        state.seq,
        int(state.phase),
        state.parked,
        state.ticket,
        state.slots,
        state.stop_after,
        state.executed,
        state.root_closed,
        state.error,
        state.ended,
    )
    yield "state", [head]
    yield (
        "scope",
        ((path, s.region, s.waiting, s.live, bytes(s.status), s.open, s.dead) for path, s in state.scopes.items()),
    )
    yield (
        "container",
        ((key, c.count, c.opened, c.closed, c.dead, int(c.cleanup), c.error) for key, c in state.containers.items()),
    )
    yield "ready", ((n, *entry) for n, queue in enumerate(state.ready) for entry in queue)
    yield "running", state.running.items()
    yield "wait", ((key, w.attempt, w.kind, w.due_ms, w.on_expire, w.step) for key, w in state.open_waits())
    yield "retry", ((key, *retry) for key, retry in state.retries.items())
    yield "lost", state.lost.items()
    yield "together", state.together.items()
    yield "deferred", ((key, *deferred) for key, deferred in state.deferred.items())
    yield "opening", state.opening
    yield "exit", state.exits
    yield "failed_end", state.failed_ends.items()
    yield "abort", ((key, a.left, a.error) for key, a in state.aborts.items())
    yield "reuse", state.reuse.items()
    yield "reusing", state.reusing
    yield "due_cleanup", state.due_cleanups
    yield "cleanup", state.cleanups.items()
    yield "ending", [(state.ending, state.cancelled, int(state.root_cleanup))]
    yield "entries", ((key, s.entries, s.last_wait) for key, s in state.steps.items())
    yield "step", ((key, n, astuple(step)) for key, steps in state.steps.items() for n, step in steps.by_n.items())


def add_state_rows(plan: Plan, state: State, kind: str, rows: Sequence[Any]) -> None:
    """Add saved rows to `State.new(plan)`; a kind may come in several parts."""
    match kind:
        case "state":
            (head,) = rows
            state.run, state.seq, phase, state.parked, state.ticket, slots = head[:6]
            state.stop_after, state.executed, state.root_closed, state.error, state.ended = head[6:]
            state.phase = RunPhase(phase)
            state.slots[:] = slots
        case "scope":
            for path, region, waiting, live, status, open, dead in rows:
                state.scopes[path] = Scope(region, waiting, live, bytearray(status), open, dead)
        case "container":
            for key, count, opened, closed, dead, cleanup, error in rows:
                state.containers[key] = Container(count, opened, closed, dead, Cleanup(cleanup), error)
        case "ready":
            for n, ticket, key in rows:
                state.ready[n].append((ticket, key))
        case "wait":
            for key, attempt, wait_kind, due_ms, on_expire, step in rows:
                state.waits.setdefault(key, {})[attempt] = Wait(attempt, wait_kind, due_ms, on_expire, step)
                if due_ms is not None:
                    state.dues.add_wait(state, key, attempt, due_ms)
        case "retry":
            for key, attempt, due_ms in rows:
                state.retries[key] = (attempt, due_ms)
                state.dues.add_retry(state, key, attempt, due_ms, plan.nodes[key[1]].inline)
        case "deferred":
            state.deferred.update((key, (times, waited_ms)) for key, times, waited_ms in rows)
        case "abort":
            state.aborts.update((key, Abort(left, error)) for key, left, error in rows)
        case "running":
            state.running.update(rows)
        case "lost":
            state.lost.update(rows)
        case "together":
            state.together.update(rows)
        case "failed_end":
            state.failed_ends.update(rows)
        case "reuse":
            state.reuse.update(rows)
        case "opening":
            state.opening.update(dict.fromkeys(rows))
        case "exit":
            state.exits.update(dict.fromkeys(rows))
        case "reusing":
            state.reusing.update(dict.fromkeys(rows))
        case "due_cleanup":
            state.due_cleanups.update(dict.fromkeys(rows))
        case "cleanup":
            state.cleanups.update(rows)
        case "ending":
            ((state.ending, state.cancelled, root_cleanup),) = rows
            state.root_cleanup = Cleanup(root_cleanup)
        case "entries":
            state.steps.update((key, NodeSteps(entries=entries, last_wait=last)) for key, entries, last in rows)
        case "step":
            for key, n, fields in rows:
                state.steps[key].by_n[n] = Step(*fields)
