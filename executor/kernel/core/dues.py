"""Orders what comes due in a run by time, so the first of thousands of retries is found without a look at all. Also
decides how long a retry waits.

Heaps beside the dicts of the state, which hold what is open: an entry that is over, or has another time by now, is
passed over when it comes first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush
from typing import Protocol

from compiler.keys import NodeKey
from compiler.plan import Retry

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
