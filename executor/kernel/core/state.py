"""State of one run: what the journal folds to. Only `evolve.py` writes it.

Everything here is a plain value, bounded by what is open: a closed scope leaves no trace, so a loop of a million
iterations has the state of one. Steps belong to the node key and not to an attempt: an attempt that follows finds
what the ones before it finished, by the number of the call (`n`), and does not do it again.

Due times are heaps beside the dicts that hold what is open, so the first of thousands of retries is found without a
look at all: an entry that is over, or has another time by now, is passed over when it comes first.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

import msgspec

from compiler.keys import NodeKey, Path
from compiler.plan import Plan, Retry
from executor.kernel.core.events import ErrorInfo, RunEnd, StepEffect, StepKind, StepStarted, WaitKind

Due = tuple[int, NodeKey, int]  # due_ms, the node, its attempt

COMPACT_MIN = 64

# An attempt that does not count may be repeated so often, and wait so long in all; then it counts like any other.
DEFERRED_MAX = 100
DEFERRED_TOTAL_MS = 24 * 3600 * 1000
# "Come back in 0 seconds" is no reason to ask again and again without a pause.
DEFERRED_PAUSE_MIN_MS = 1_000


class Waiting(Protocol):
    attempt: int
    due_ms: int | None


class Open(Protocol):
    """The open retries and waits in the state of a run: next attempt and time of each retry; the waits by their
    numbers."""

    @property
    def retries(self) -> Mapping[NodeKey, tuple[int, int]]: ...

    @property
    def waits(self) -> Mapping[NodeKey, Mapping[int, Waiting]]: ...


class Dues:
    """The due times of one run. Retries of inline nodes are apart: they need no slot."""

    __slots__ = ("_inline", "_retries", "_waits")

    def __init__(self) -> None:
        self._inline: list[Due] | None = None  # until there is one; most runs have none
        self._retries: list[Due] | None = None
        self._waits: list[Due] | None = None

    def add_retry(self, state: Open, key: NodeKey, attempt: int, due_ms: int, inline: bool) -> None:
        heap = self._retry_heap(inline)
        heappush(heap, (due_ms, key, attempt))
        if len(heap) > COMPACT_MIN and len(heap) > 2 * len(state.retries):
            _compact(heap, lambda due: _is_retry(state, due))

    def add_wait(self, state: Open, key: NodeKey, attempt: int, due_ms: int) -> None:
        if self._waits is None:
            self._waits = []
        heappush(self._waits, (due_ms, key, attempt))
        if len(self._waits) > COMPACT_MIN and len(self._waits) > 2 * len(state.waits):
            _compact(self._waits, lambda due: _is_wait(state, due))

    def first_ms(self, state: Open) -> int | None:
        """Return the earliest time of all."""
        firsts = [
            heap[0][0]
            for heap, is_open in ((self._inline, _is_retry), (self._retries, _is_retry), (self._waits, _is_wait))
            if heap is not None and _trim(state, heap, is_open)
        ]
        return min(firsts, default=None)

    def pop_retry(self, state: Open, at_ms: int, inline_only: bool) -> Due | None:
        """Remove and return the first retry, if it is due: it is to start, or to be put back."""
        found: list[Due] | None = None
        for heap in (self._inline,) if inline_only else (self._inline, self._retries):
            if (
                heap is not None
                and _trim(state, heap, _is_retry)
                and heap[0][0] <= at_ms
                and (found is None or heap[0] < found[0])
            ):
                found = heap
        return None if found is None else heappop(found)

    def put_back(self, due: Due, inline: bool) -> None:
        heappush(self._retry_heap(inline), due)

    def _retry_heap(self, inline: bool) -> list[Due]:
        if inline:
            self._inline = heap = self._inline or []
        else:
            self._retries = heap = self._retries or []
        return heap


def _is_retry(state: Open, due: Due) -> bool:
    return state.retries.get(due[1]) == (due[2], due[0])


def _is_wait(state: Open, due: Due) -> bool:
    waits = state.waits.get(due[1])
    wait = None if waits is None else waits.get(due[2])
    return wait is not None and wait.due_ms == due[0]


def _trim(state: Open, heap: list[Due], is_open: Callable[[Open, Due], bool]) -> bool:
    """Drop entries that are over from the front. Returns True if an open one comes first now."""
    while heap and not is_open(state, heap[0]):
        heappop(heap)
    return bool(heap)


def _compact(heap: list[Due], is_open: Callable[[Due], bool]) -> None:
    heap[:] = [due for due in heap if is_open(due)]
    heapify(heap)


def deferred_pause_ms(asked_ms: int | None, back_off_ms: int, times: int, waited_ms: int) -> int | None:
    """Return the pause in ms before an attempt that does not count as a failed one, or None if it counts. `asked_ms` is
    the pause that the other side asked for; `times` and `waited_ms` are what the node has had already."""
    pause_ms = back_off_ms if asked_ms is None else max(asked_ms, DEFERRED_PAUSE_MIN_MS)
    return None if times >= DEFERRED_MAX or waited_ms + pause_ms > DEFERRED_TOTAL_MS else pause_ms


def delay_ms(retry: Retry, run: str, key: NodeKey, attempt: int) -> int:
    """Milliseconds to wait after attempt number `attempt` (1 is the first) has failed. Jitter comes from a hash, so
    that a replay computes the same times."""
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
    """Return a number in [0, 1) that depends only on its arguments."""
    digest = hashlib.blake2b(repr((run, key, attempt)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


@dataclass(slots=True)
class Step:
    """`failed`: it finished with an error. `lost`: nothing is known of its end, and it must not be done again unasked.
    Seq: number of the event; 0: not yet."""

    kind: StepKind
    name: str
    input_hash: str
    effect: StepEffect
    started_seq: int
    finished_seq: int = 0
    failed: bool = False
    lost: bool = False

    @property
    def under_way(self) -> bool:
        return not self.finished_seq and not self.lost


@dataclass(slots=True)
class NodeSteps:
    """The steps of one node key that is not decided. `entries` is the number of attempts that do not count as failed
    ones, because the handler waited. `last_wait` is the last number of the waits that are open side by side, or 0."""

    by_n: dict[int, Step] = field(default_factory=dict)
    entries: int = 0
    last_wait: int = 0

    def started(self, event: StepStarted, seq: int) -> None:
        self.by_n[event.n] = Step(event.kind, event.name, event.input_hash, event.effect, seq)

    def finished(self, n: int, failed: bool, seq: int) -> None:
        step = self.by_n[n]
        step.finished_seq, step.failed, step.lost = seq, failed, False

    def lose(self, n: int, again: bool) -> None:
        """`again`: it may be done as if it had not begun."""
        if again:
            del self.by_n[n]
        else:
            self.by_n[n].lost = True

    def try_again(self) -> None:
        """The node is tried again after an error: a failed step is done again if no step began after it had failed. A
        handler that continued after a failure depends on it."""
        last_start = max((step.started_seq for step in self.by_n.values()), default=0)
        self.by_n = {n: s for n, s in self.by_n.items() if not (s.failed and s.finished_seq > last_start)}


Steps = dict[NodeKey, NodeSteps]


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
    together: dict[NodeKey, int] = field(default_factory=dict)  # those of them that were lost with other runs
    # Attempts that do not count because they had to wait: how many, and milliseconds of waiting.
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
    # Only plans with a cleanup use these:
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
