"""State of one run: what the journal folds to. Only `evolve.py` writes it.

Everything here is a plain value, bounded by what is open: a closed scope leaves no trace, so a loop of a million
iterations has the state of one. Steps belong to the node key and not to an attempt: an attempt that follows finds
what the ones before it finished, by the number of the call (`n`), and does not do it again.

Due times are heaps beside the dicts that hold what is open, so the first of thousands of retries is found without a
look at all: an entry that is over, or has another time by now, is passed over when it comes first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heapify, heappop, heappush
from sys import intern
from types import GenericAlias
from typing import Any, Final, get_args, get_origin, get_type_hints

from msgspec import Struct

from compiler.keys import NodeKey, Path
from compiler.plan import Plan
from executor.kernel.core.events import (
    ErrorInfo,
    Reason,
    RunEnd,
    StepEffect,
    StepKind,
    StepOnLost,
    StepRetrying,
    StepStarted,
    WaitKind,
)

Due = tuple[int, NodeKey, int]  # due_ms, the node, its attempt

COMPACT_MIN = 64


class Dues:
    """The due times of one run. Retries of inline nodes are apart: they need no slot."""

    __slots__ = ("_inline", "_retries", "_waits")

    def __init__(self) -> None:
        self._inline: list[Due] = []
        self._retries: list[Due] = []
        self._waits: list[Due] = []

    def add_retry(self, state: State, key: NodeKey, attempt: int, due_ms: int, inline: bool) -> None:
        heap = self._inline if inline else self._retries
        heappush(heap, (due_ms, key, attempt))
        if len(heap) > COMPACT_MIN and len(heap) > 2 * len(state.retries):
            _compact(heap, lambda due: _is_retry(state, due))

    def add_wait(self, state: State, key: NodeKey, attempt: int, due_ms: int) -> None:
        heappush(self._waits, (due_ms, key, attempt))
        if len(self._waits) > COMPACT_MIN and len(self._waits) > 2 * len(state.waits):
            _compact(self._waits, lambda due: _is_wait(state, due))

    def first_ms(self, state: State) -> int | None:
        firsts = [
            heap[0][0]
            for heap, is_open in ((self._inline, _is_retry), (self._retries, _is_retry), (self._waits, _is_wait))
            if _trim(state, heap, is_open)
        ]
        return min(firsts, default=None)

    def pop_retry(self, state: State, at_ms: int, inline_only: bool) -> Due | None:
        """Remove and return the first retry, if it is due: it is to start, or to be put back."""
        found: list[Due] | None = None
        for heap in (self._inline,) if inline_only else (self._inline, self._retries):
            if _trim(state, heap, _is_retry) and heap[0][0] <= at_ms and (found is None or heap[0] < found[0]):
                found = heap
        return None if found is None else heappop(found)

    def put_back(self, due: Due, inline: bool) -> None:
        heappush(self._inline if inline else self._retries, due)


def _is_retry(state: State, due: Due) -> bool:
    return state.retries.get(due[1]) == (due[2], due[0])


def _is_wait(state: State, due: Due) -> bool:
    waits = state.waits.get(due[1])
    wait = None if waits is None else waits.get(due[2])
    return wait is not None and wait.due_ms == due[0]


def _trim(state: State, heap: list[Due], is_open: Callable[[State, Due], bool]) -> bool:
    """Drop entries that are over from the front. Returns True if an open one comes first now."""
    while heap and not is_open(state, heap[0]):
        heappop(heap)
    return bool(heap)


def _compact(heap: list[Due], is_open: Callable[[Due], bool]) -> None:
    heap[:] = [due for due in heap if is_open(due)]
    heapify(heap)


NEVER: Final = 1 << 62  # as the number of an event that an attempt cannot receive


class Step(Struct, array_like=True, gc=False):
    """`lost`: nothing is known of its end, and it must not be done again unasked. Seq: number of the event; 0: not
    yet. `times`: how often it has failed; with `due_ms` it is not under way, and begins again then."""

    kind: StepKind
    name: str
    input_hash: str
    effect: StepEffect
    started_seq: int
    finished_seq: int = 0
    failed: bool = False
    lost: bool = False
    on_lost: StepOnLost = ""
    times: int = 0
    due_ms: int | None = None

    @property
    def under_way(self) -> bool:
        return not self.finished_seq and not self.lost and self.due_ms is None

    @property
    def when_lost(self) -> StepOnLost:
        return self.on_lost or ("ask" if self.effect == "write" else "retry")


class Tries(Struct, array_like=True):
    """The traces of the attempts of a node that is not decided: its steps, and how many attempts do not count as
    failed ones. `last_wait` is the last number of the waits that are open side by side, or 0; with `each`, the last
    number that was taken.

    `each`: the handler receives the end of each wait while it runs, or is entered again for it (`node.left`)."""

    by_n: dict[int, Step] = {}
    last_wait: int = 0
    entries: int = 0  # the handler waited
    lost: int = 0  # it is unknown how they ended
    together: int = 0  # those of them that were lost with other runs
    deferred: int = 0  # they had to wait
    waited_ms: int = 0  # for that
    each: bool = False
    left_seq: int = 0  # of the last `node.left`
    news_seq: int = 0  # of the last end of a wait since the handler was entered, or NEVER
    paused: bool = False  # the next attempt has a time that the handler chose: the end of a wait comes before it
    taken_seq: int = 0  # of `cleanup.opened`: the steps that began before it are those of the node that this one undoes

    @property
    def uncounted(self) -> int:
        return self.entries + self.lost + self.deferred

    def started(self, event: StepStarted, seq: int) -> None:
        times = before.times if (before := self.by_n.get(event.n)) is not None else 0
        name = intern(
            event.name
        )  # most steps of a node have one of few: read from the disk, each would be another text
        self.by_n[event.n] = Step(
            event.kind, name, event.input_hash, event.effect, seq, on_lost=event.on_lost, times=times
        )

    def retrying(self, event: StepRetrying) -> None:
        step = self.by_n[event.n]
        step.times, step.due_ms = event.times, event.due_ms

    def finished(self, n: int, failed: bool, seq: int) -> None:
        self.progressed()
        step = self.by_n[n]
        step.finished_seq, step.failed, step.lost, step.due_ms = seq, failed, False, None

    def lose(self, n: int, again: bool) -> None:
        """`again`: it may be done as if it had not begun, but for how often it has failed."""
        step = self.by_n[n]
        if again and step.times:
            step.lost, step.due_ms = False, 0
        elif again:
            del self.by_n[n]
        else:
            step.lost = True

    def progressed(self) -> None:
        """Let losses before this not count any more: the next attempt does not repeat what was lost then."""
        self.entries += self.lost
        self.lost = self.together = 0

    def hasten(self, due_ms: int) -> None:
        for step in self.by_n.values():
            if step.due_ms is not None:
                step.due_ms = min(step.due_ms, due_ms)

    def taken_over(self, seq: int) -> Tries:
        """Return what the node that undoes this one knows of it, from event `seq` on."""
        return Tries({n: step for n, step in self.by_n.items() if step.finished_seq or step.lost}, taken_seq=seq)

    def try_again(self) -> None:
        """Let failed steps be done again after which no step began: a handler that continued after a failure depends on
        it. So does one that left since. With `each` ends of waits stay, as it may not have them, and steps to undo."""
        since = max([self.left_seq, *(step.started_seq for step in self.by_n.values())])
        stays = "wait" if self.each else ""
        self.by_n = {
            n: step
            for n, step in self.by_n.items()
            if not step.failed or step.finished_seq <= since or step.started_seq < self.taken_seq or step.kind == stays
        }


ContainerKey = tuple[Path, int]  # path of the scope that holds the container, index of its body region
AbortKey = tuple[Path, int, int]  # (path, region, index of the branch); index -1: every scope of the container


class Status(IntEnum):
    """The status of one node of one scope. Precondition in brackets."""

    PENDING = 0  # some in-edge is open
    READY = 1  # [every in-edge resolved, one live] queued
    RUNNING = 2  # [READY or RETRYING] an attempt is under way
    WAITING = 3  # [RUNNING] a durable pause is open, and no attempt has a due time
    RETRYING = 4  # [RUNNING or WAITING] the next attempt has a due time
    SUCCEEDED = 5  # [RUNNING or WAITING]
    FAILED = 6  # [any of the above]
    SKIPPED = 7  # [PENDING: every in-edge dead] or [RUNNING: passed over]
    CANCELLED = 8  # [WAITING] the pause was closed because it is not needed any more


UNDER_WAY = frozenset({Status.RUNNING, Status.WAITING, Status.RETRYING})
DECIDED = frozenset({Status.SUCCEEDED, Status.FAILED, Status.SKIPPED, Status.CANCELLED})


class RunPhase(IntEnum):
    NEW = 0
    RUNNING = 1
    STOPPING = 2  # stop_after was reached: drain, then succeed
    FAILING = 3  # an error was not caught: drain, then fail
    CANCELLING = 4
    FINISHED = 5


class Scope(Struct, array_like=True):
    """One open iteration or branch (or the root). Lists are indexed by node number minus the region's first. `open`
    counts nodes that are not decided; `dead`: aborted, only draining."""

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
    OWED = 3  # that of a root which undoes a node: the run has ended while the node was under way


class Container(Struct, array_like=True):
    """A loop or parallel between its start and its end sentinel. `error`: what it fails with after its cleanup."""

    count: int
    opened: int = 0
    closed: int = 0
    dead: bool = False
    cleanup: Cleanup = Cleanup.NOT_BEGUN
    error: ErrorInfo | None = None


class Wait(Struct, array_like=True):
    """`attempt`: its number. It is that of the attempt that opened it, or of no other if that opened several."""

    attempt: int
    kind: WaitKind
    due_ms: int | None
    on_expire: str
    step: int | None = None
    reason: Reason = ""


class Abort(Struct, array_like=True):
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
    tries: dict[NodeKey, Tries] = field(default_factory=dict)  # of nodes that are not decided
    opening: dict[ContainerKey, None] = field(default_factory=dict)  # may open more scopes now
    exits: dict[NodeKey, None] = field(default_factory=dict)  # end sentinels that leave without a test
    failed_ends: dict[NodeKey, ErrorInfo] = field(default_factory=dict)  # containers whose abort has drained
    aborts: dict[AbortKey, Abort] = field(default_factory=dict)
    reuse: dict[int, str | None] = field(default_factory=dict)
    reusing: dict[NodeKey, None] = field(default_factory=dict)
    stop_after: int | None = None
    executed: int = 0
    root_closed: bool = False
    error: ErrorInfo | None = None
    ended: RunEnd | None = None
    # Only plans with a cleanup use these:
    ending: tuple[RunEnd, ErrorInfo | None] | None = None  # how the run ends, once its cleanups are over
    cancelled: bool = False  # a cancel was recorded
    due_cleanups: dict[NodeKey, None] = field(default_factory=dict)  # of containers that are given up; may begin now
    cleanups: dict[NodeKey, int] = field(default_factory=dict)  # those that are open, and when they are to be stopped
    root_cleanup: Cleanup = Cleanup.NOT_BEGUN
    dues: Dues = field(default_factory=Dues, compare=False, repr=False)  # follows from `retries` and `waits`

    @classmethod
    def new(cls, plan: Plan) -> State:
        groups = len(plan.groups)
        return cls(ready=[deque() for _ in range(groups + 1)], slots=[0] * groups)

    def tries_of(self, key: NodeKey) -> Tries:
        tries = self.tries.get(key)
        if tries is None:
            tries = self.tries[key] = Tries()
        return tries

    def open_waits(self) -> Iterator[tuple[NodeKey, Wait]]:
        """Return the open waits; those of one node are in the order in which they opened."""
        return ((key, wait) for key, waits in self.waits.items() for wait in waits.values())

    def wait_of(self, key: NodeKey, attempt: int) -> Wait | None:
        return None if (waits := self.waits.get(key)) is None else waits.get(attempt)

    @property
    def is_cancelled(self) -> bool:
        """Returns True after a cancel, or an end by the run's limits."""
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


# --- the state as rows that can be stored ---
# Everything that a later event or decision depends on is there, and in the order in which it is: in places dicts are
# read in their order (who waits longest). What follows from the rest (`State.dues`) is made again. A row is one entry
# of a field, so that a caller can stop between rows; fields without entries are one row.

_TYPES = get_type_hints(State)
_DICTS = tuple(name for name, type in _TYPES.items() if get_origin(type) is dict)
_PLAIN = tuple(name for name in _TYPES if name not in (*_DICTS, "ready", "dues"))

# The type of the rows of each kind.
STATE_ROWS: dict[str, Any] = {
    "state": GenericAlias(tuple, tuple(_TYPES[name] for name in _PLAIN)),
    "ready": tuple[int, int, NodeKey],
    **{name: GenericAlias(tuple, get_args(_TYPES[name])) for name in _DICTS},
}


def rows_of_state(state: State) -> Iterator[tuple[str, Iterable[Any]]]:
    """(kind, rows), each kind once. The state may not change before the last row has been taken."""
    yield "state", [tuple(getattr(state, name) for name in _PLAIN)]
    yield "ready", ((n, *entry) for n, queue in enumerate(state.ready) for entry in queue)
    for name in _DICTS:
        yield name, getattr(state, name).items()


def add_state_rows(plan: Plan, state: State, kind: str, rows: Sequence[Any]) -> None:
    """Add saved rows to `State.new(plan)`; a kind may come in several parts."""
    match kind:
        case "state":
            for name, value in zip(_PLAIN, rows[0], strict=True):
                setattr(state, name, value)
            return
        case "ready":
            for n, ticket, key in rows:
                state.ready[n].append((ticket, key))
            return
        case "waits":
            for key, waits in rows:
                for attempt, wait in waits.items():
                    if wait.due_ms is not None:
                        state.dues.add_wait(state, key, attempt, wait.due_ms)
        case "retries":
            for key, (attempt, due_ms) in rows:
                state.dues.add_retry(state, key, attempt, due_ms, plan.nodes[key[1]].inline)
    getattr(state, kind).update(rows)
