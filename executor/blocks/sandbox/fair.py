"""A queue that serves its owners in turn, so that one with many jobs does not keep the others waiting."""

from __future__ import annotations

import threading
from collections import Counter, deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Between threads. Owners that have jobs take turns; of one owner at most `most` jobs are out at the same time, and
    its own jobs keep their order. Costs the same however many jobs and owners there are."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._jobs: dict[str, deque[T]] = {}  # by owner: those with a job that may be taken; the next one first
        self._held_back: dict[str, deque[T]] = {}  # by owner: those with as many jobs out as allowed
        self._out: Counter[str] = Counter()
        self._closed = False

    def put(self, owner: str, job: T) -> None:
        with self._changed:
            queues = self._jobs if self._out[owner] < self._most else self._held_back
            queues.setdefault(owner, deque()).append(job)
            self._changed.notify()

    def take(self) -> tuple[str, T] | None:
        """Wait for the next job and return it with its owner; call `done` with that. Returns None if the queue is
        closed and empty."""
        with self._changed:
            while not self._jobs:
                if self._closed and not self._held_back:
                    return None
                self._changed.wait()
            owner = next(iter(self._jobs))
            queue = self._jobs.pop(owner)
            job = queue.popleft()
            self._out[owner] += 1
            if queue:  # after all others
                (self._jobs if self._out[owner] < self._most else self._held_back)[owner] = queue
            return owner, job

    def done(self, owner: str) -> None:
        with self._changed:
            self._out[owner] -= 1
            if not self._out[owner]:
                del self._out[owner]
            queue = self._held_back.pop(owner, None)
            if queue is not None:
                self._jobs[owner] = queue
                self._changed.notify()
            elif self._closed:
                self._changed.notify_all()

    def close(self) -> None:
        """Close the queue. Queued jobs are still handed out; then `take` returns None to all."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
