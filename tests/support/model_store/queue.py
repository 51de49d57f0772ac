"""Which runs a claim takes, by the rule "fair claims"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from math import ceil
from typing import Any, Protocol

from msgspec.structs import replace

from executor.kernel.store.run_rows import Placement, RunRow


class Run(Protocol):
    placement: Placement
    row: RunRow


def find_claimable(due: Sequence[Any], limit: int, pools: Mapping[str, str], since: Callable[[Any], int]) -> list[Any]:
    """`due`: what may be claimed of these pools. `since`: from when on a run is free."""
    lapsed = [run for run in due if run.row.lease_owner is not None]
    lapsed = sorted(lapsed, key=lambda run: (since(run), run.row.id))[:limit]
    room = limit - min(len(lapsed), ceil(limit / 2))
    free: list[Any] = []
    for left, (pool, after) in zip(range(len(pools), 0, -1), pools.items(), strict=True):
        of_pool = [run for run in due if run.row.lease_owner is None and run.placement.pool == pool]
        free += _in_turn(of_pool, ceil((room - len(free)) / left), after)
    return [*lapsed[: limit - len(free)], *free]


def _in_turn(runs: Sequence[Run], limit: int, after: str) -> list[Run]:
    if limit <= 0 or not runs:
        return []
    keys = sorted({_key(run) for run in runs}, key=str.encode)
    keys = [key for key in keys if key > after] + [key for key in keys if key <= after]
    keys = keys[:limit]
    each = ceil(limit / len(keys))
    queues = []
    for key in keys:
        queue = [run for run in runs if _key(run) == key]
        queue.sort(key=lambda run: (-run.placement.priority, run.row.next_run_at_ms or 0, run.row.id))
        queues.append(queue[:each])
    turns = [run for turn in zip_longest(*queues) for run in turn if run is not None]
    return turns[:limit]


def _key(run: Run) -> str:
    return run.placement.fair or run.row.workflow


class ModelLimits:
    """Rule "limits of runs". `blocked`: the limit that each run waits for."""

    def __init__(self) -> None:
        self.blocked: dict[str, str] = {}
        self._slots: set[tuple[str, str]] = set()  # key, run
        self._waiting: list[Any] = []
        self._started: set[str] = set()  # runs whose rates had their turn
        self._next_ms: dict[str, float] = {}

    def held(self, key: str) -> int:
        return sum(of == key for of, _ in self._slots)

    def admit(self, run: Any, cancelled: bool, now_ms: int) -> bool:
        limits = {} if cancelled else dict(run.placement.limits)
        for key, at_most in limits.items():
            if (key, run.row.id) not in self._slots and self.held(key) >= at_most:
                self.blocked[run.row.id] = key
                self._waiting.append(run)
                self.free(run.row.id)
                self._offer(run)
                return False
        if not cancelled and run.row.id not in self._started and run.placement.rates:
            self._started.add(run.row.id)
            due_ms = max(self._reserve(key, per_s, now_ms) for key, per_s in run.placement.rates)
            if due_ms >= now_ms + 1:
                run.row = replace(run.row, next_run_at_ms=ceil(due_ms))
                self._offer(run)
                return False
        self._slots |= {(key, run.row.id) for key in limits}
        if cancelled:
            self._slots = {held for held in self._slots if held[1] != run.row.id}
            self._offer(run)
        return True

    def free(self, run_id: str) -> None:
        """It has ended, or was released."""
        freed = [key for key, holder in self._slots if holder == run_id]
        self._slots -= {(key, run_id) for key in freed}
        for key in freed:
            self._unblock(key, 1)

    def cancel(self, run_id: str) -> None:
        self.blocked.pop(run_id, None)

    def _offer(self, run: Any) -> None:
        for key, at_most in run.placement.limits:
            self._unblock(key, at_most - self.held(key))

    def _unblock(self, key: str, places: int) -> None:
        waiting = [run for run in self._waiting if self.blocked.get(run.row.id) == key]
        waiting.sort(key=lambda run: (-run.placement.priority, run.row.next_run_at_ms or 0, run.row.id))
        for run in waiting[: max(0, places)]:
            del self.blocked[run.row.id]
        self._waiting = [run for run in self._waiting if run.row.id in self.blocked]

    def _reserve(self, key: str, per_s: float, now_ms: int) -> float:
        at_ms = max(now_ms, self._next_ms.get(key, 0))
        self._next_ms[key] = at_ms + 1000 / per_s
        return at_ms
