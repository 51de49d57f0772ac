"""State of one run: what the journal folds to. Only `evolve.py` writes it.

Everything here is a plain value, bounded by what is open: a closed scope leaves no trace, so a loop of a million
iterations has the state of one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field
from enum import IntEnum
from typing import Any

import msgspec

from compiler.keys import NodeKey, Path
from compiler.plan import Plan
from executor.kernel.core.dues import Dues
from executor.kernel.core.events import ErrorInfo, RunEnd, WaitKind
from executor.kernel.core.steps import NodeSteps, Steps

ContainerKey = tuple[Path, int]  # path of the scope that holds the container, index of its body region
AbortKey = tuple[Path, int, int]  # (path, region, index of the branch); index -1: every scope of the container


class Status(IntEnum):
    """The status of one node of one scope. Precondition in brackets."""

    PENDING = 0  # some in-edge is open
    READY = 1  # [every in-edge resolved, one live] queued
    RUNNING = 2  # [READY or RETRYING] an attempt is under way
    WAITING = 3  # [RUNNING] a durable pause is open
    RETRYING = 4  # [RUNNING] the next attempt has a due time
    SUCCEEDED = 5  # [RUNNING or WAITING]
    FAILED = 6  # [any of the above]
    SKIPPED = 7  # [PENDING: every in-edge dead] or [RUNNING: passed over]
    CANCELLED = 8  # [WAITING] the pause was closed because it is not needed any more


DECIDED = frozenset({Status.SUCCEEDED, Status.FAILED, Status.SKIPPED, Status.CANCELLED})


class RunPhase(IntEnum):
    NEW = 0
    RUNNING = 1
    STOPPING = 2  # stop_after was reached: drain, then succeed
    FAILING = 3  # an error was not caught: drain, then fail
    CANCELLING = 4
    FINISHED = 5


@dataclass(slots=True)
class Scope:
    """One open iteration or branch (or the root). Lists are indexed by node number minus the region's first.

    `open` counts nodes that are not decided; at zero the scope closes. `dead`: aborted, only draining."""

    region: int
    waiting: list[int]
    live: list[int]
    status: bytearray
    open: int
    dead: bool = False


class Cleanup(IntEnum):
    """The cleanup of one container, or of the root."""

    NOT_BEGUN = 0  # or there is none
    OPEN = 1
    OVER = 2


@dataclass(slots=True)
class Container:
    """A loop or parallel between its start and its end sentinel. `error`: what it fails with after its cleanup."""

    count: int
    opened: int = 0
    closed: int = 0
    dead: bool = False
    cleanup: Cleanup = Cleanup.NOT_BEGUN
    error: ErrorInfo | None = None


@dataclass(slots=True)
class Wait:
    """`attempt`: its number. It is that of the attempt that opened it, or of no other if that opened several."""

    attempt: int
    kind: WaitKind
    due_ms: int | None
    on_expire: str
    step: int | None = None


@dataclass(slots=True)
class Abort:
    """A subtree that is being given up: `left` attempts, waits and cleanups in it are still open."""

    left: int
    error: ErrorInfo


@dataclass(slots=True)
class State:
    """`ready[0]` holds inline nodes, `ready[1 + g]` the nodes of group g, as (ticket, key); tickets keep FIFO order."""

    run: str = ""
    seq: int = 0
    phase: RunPhase = RunPhase.NEW
    parked: bool = False
    scopes: dict[Path, Scope] = field(default_factory=dict)
    containers: dict[ContainerKey, Container] = field(default_factory=dict)
    ready: list[deque[tuple[int, NodeKey]]] = field(default_factory=list)
    ticket: int = 0
    running: dict[NodeKey, int] = field(default_factory=dict)
    slots: list[int] = field(default_factory=list)  # running non-inline nodes: [0] all, [g] those of group g
    waits: dict[NodeKey, dict[int, Wait]] = field(default_factory=dict)  # those that are open, by `Wait.attempt`
    retries: dict[NodeKey, tuple[int, int]] = field(default_factory=dict)  # next attempt, due_ms
    lost: dict[NodeKey, int] = field(default_factory=dict)  # attempts that do not count: it is unknown how they ended
    # Attempts that do not count because they had to wait: how many, and milliseconds of waiting.
    together: dict[NodeKey, int] = field(default_factory=dict)  # those of them that were lost with other runs
    deferred: dict[NodeKey, tuple[int, int]] = field(default_factory=dict)
    opening: dict[ContainerKey, None] = field(default_factory=dict)  # may open more scopes now
    exits: dict[NodeKey, None] = field(default_factory=dict)  # end sentinels that leave without a test
    failed_ends: dict[NodeKey, ErrorInfo] = field(default_factory=dict)  # containers whose abort has drained
    aborts: dict[AbortKey, Abort] = field(default_factory=dict)
    reuse: dict[int, str | None] = field(default_factory=dict)
    reusing: dict[NodeKey, None] = field(default_factory=dict)
    stop_after: int | None = None
    executed: int = 0
    root_closed: bool = False
    steps: Steps = field(default_factory=dict)  # of nodes that are not decided
    error: ErrorInfo | None = None
    ended: RunEnd | None = None
    # Of plans with a cleanup:
    ending: tuple[RunEnd, ErrorInfo | None] | None = None  # how the run ends, once its cleanups are over
    cancelled: bool = False  # a cancel was recorded
    due_cleanups: dict[NodeKey, None] = field(default_factory=dict)  # of containers that are given up; may begin now
    cleanups: dict[NodeKey, int] = field(default_factory=dict)  # those that are open, and when they are to be stopped
    root_cleanup: Cleanup = Cleanup.NOT_BEGUN
    dues: Dues = field(default_factory=Dues, compare=False, repr=False)  # follows from `retries` and `waits`

    @classmethod
    def new(cls, plan: Plan) -> State:
        """Return the state before the first event."""
        groups = len(plan.groups)
        return cls(ready=[deque() for _ in range(groups + 1)], slots=[0] * groups)

    def open_waits(self) -> Iterator[tuple[NodeKey, Wait]]:
        """Return the open waits; those of one node are in the order in which they opened."""
        return ((key, wait) for key, waits in self.waits.items() for wait in waits.values())

    def wait_of(self, key: NodeKey, attempt: int) -> Wait | None:
        """Return the open wait with this number, or None."""
        return None if (waits := self.waits.get(key)) is None else waits.get(attempt)

    @property
    def is_cancelled(self) -> bool:
        """Returns True after a cancel, or an end by the run's limits. Another cancel changes nothing, unless a person
        asks for it."""
        return self.cancelled or self.phase is RunPhase.CANCELLING

    def due_ms(self) -> int | None:
        """Earliest time at which a retry or a wait comes due, or a cleanup is stopped."""
        first_ms = self.dues.first_ms(self)
        if self.cleanups:
            stop_ms = min(self.cleanups.values())
            return stop_ms if first_ms is None else min(first_ms, stop_ms)
        return first_ms

    def status_of(self, plan: Plan, key: NodeKey) -> Status | None:
        """Return the status of a node, or None if the scope of `key` is not open (not yet, or no longer)."""
        scope = self.scopes.get(key[0])
        if scope is None:
            return None
        return Status(scope.status[key[1] - plan.regions[scope.region].first])


def _steps_in_order(steps: NodeSteps) -> list[tuple[int, tuple[Any, ...]]]:
    return sorted((n, astuple(step)) for n, step in steps.by_n.items())


_encoder = msgspec.msgpack.Encoder(order="deterministic")


def encode(state: State) -> bytes:
    """Canonical bytes: two states are equal when these are. Dict order is part of what is compared only where it
    decides something (ready queues); everything else is sorted."""
    fields = {
        "run": state.run,
        "seq": state.seq,
        "phase": int(state.phase),
        "parked": state.parked,
        "scopes": sorted(
            (path, s.region, s.waiting, s.live, bytes(s.status), s.open, s.dead) for path, s in state.scopes.items()
        ),
        "containers": sorted(
            (key, c.count, c.opened, c.closed, c.dead, int(c.cleanup), "" if c.error is None else c.error.code)
            for key, c in state.containers.items()
        ),
        "ready": [list(queue) for queue in state.ready],
        "ticket": state.ticket,
        "running": sorted(state.running.items()),
        "slots": state.slots,
        "waits": sorted(
            (key, w.attempt, w.kind, w.due_ms or 0, w.on_expire, w.step or 0) for key, w in state.open_waits()
        ),
        "retries": sorted(state.retries.items()),
        "lost": sorted(state.lost.items()),
        "together": sorted(state.together.items()),
        "deferred": sorted(state.deferred.items()),
        "opening": sorted(state.opening),
        "exits": sorted(state.exits),
        "failed_ends": sorted((key, error.code, error.message) for key, error in state.failed_ends.items()),
        "aborts": sorted((key, a.left, a.error.code) for key, a in state.aborts.items()),
        "reuse": sorted((node, route or "") for node, route in state.reuse.items()),
        "reusing": sorted(state.reusing),
        "stop_after": state.stop_after,
        "executed": state.executed,
        "root_closed": state.root_closed,
        "steps": sorted(
            (key, s.entries, *([s.last_wait] if s.last_wait else ()), _steps_in_order(s))
            for key, s in state.steps.items()
        ),
        "error": state.error,
        "ended": state.ended,
        "ending": state.ending,
        "cancelled": state.cancelled,
        "due_cleanups": sorted(state.due_cleanups),
        "cleanups": sorted(state.cleanups.items()),
        "root_cleanup": int(state.root_cleanup),
    }
    return _encoder.encode(fields)
