"""The one writer of a database in this process: a thread that commits everything waiting as one group.

A sync to disk costs more than all else, so those who wait share it. What is submitted in one pass of the event loop
goes over as one batch, and while one group is being committed the next gathers by itself, without a timer: one hop to
the thread and one back per group, never per row. Many runs make their steps in several passes: a batch gathers while
each pass adds to it, and one that is smaller than the group under way waits for that, as its runs are the next to
submit. A single step waits for nothing.

An item is a function of a topic (`topics/runs.py`, `topics/waits.py`, ...) and its arguments. It runs inside the
group's transaction and raises a WeftError only before its first write, so one that is refused needs no savepoint. Any
other error rolls the group back, and each item is then tried by itself: only the culprit fails.

A caller may be cancelled at any time: its item is committed all the same, and the result is dropped.

An item with a bound on its waiting (`patience.py`) is a request's. A client waits for it, while the steps of runs
may be thousands: requests have groups of their own then, and in between a few steps at a time are committed.

A group that another process was in the way of is tried again and again, with what has come meanwhile. An item is given
up after as many tries as `Retry` has, or once it has waited as long as its caller wants to, so that none waits for the
turn of others.

What a database has of its own is in `sqlite/writer.py` and `postgres/writer.py`: how a group is committed, and how to
know whether it was.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from traceback import format_tb
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from msgspec import Struct, field

from executor.errors import (
    DatabaseReplaced,
    DatabaseUnavailable,
    DatabaseWriteFailed,
    StoreError,
    WeftError,
    store_closed,
)
from executor.kernel.process.observe import Histogram
from executor.kernel.process.repeated import OUTAGE
from executor.kernel.store.patience import patience_s

log = logging.getLogger("weft.store")

P = ParamSpec("P")
T = TypeVar("T")

SHARED = 64  # items that are worth a commit of their own, however many others come
QUIET_PASSES = 2  # of the event loop without another item: a step of a run may need as many
GATHER_S = 0.01  # after that a batch is handed over in any case: passes of a busy loop are long
# A writer that has its answer from the database gives an item up in time, and knows that it is not on disk. One that
# has none, from a server or a disk that does not answer, cannot: its requests are answered after this.
LATE_S = 1.25
SILENT_S = 1.0  # a database that has answered others meanwhile is slow, not silent


# The bounds of the histogram of one commit: from a fast disk to one that stalls.
COMMIT_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Stats(Struct):
    """Counters since the start. `items` were committed in `commits` groups, the largest had `group_max`; `retries`
    counts groups written again because the database was busy. `seconds` that the groups took."""

    items: int = 0
    commits: int = 0
    group_max: int = 0
    retries: int = 0
    seconds: Histogram = field(default_factory=lambda: Histogram(COMMIT_SECONDS))


class Item(Struct, eq=False):
    """`until_s`: monotonic; after that it is not tried again. `tries`: that failed. `alone`: not in one statement with
    others."""

    future: asyncio.Future[Any]
    write: Callable[..., Any]
    args: tuple[Any, ...]
    until_s: float = math.inf
    tries: int = 0
    alone: bool = False

    @property
    def is_request(self) -> bool:
        return self.until_s < math.inf


class Outcome(NamedTuple):
    result: Any
    error: BaseException | None = None


Settled = tuple[Item, Outcome]
Commit = Callable[[list[Item]], "Sequence[Outcome | None]"]


class Retry(Struct, frozen=True):
    """When another process is in the way: the whole transaction again, after base * 2^n, capped, +- jitter. With half
    a second for each try (SQLiteStore) that is 38 seconds, and a caller's patience is looked at twice a second."""

    attempts: int = 50
    base_ms: int = 50
    cap_ms: int = 250
    jitter: float = 0.25

    def delay_s(self, attempt: int, chance: float) -> float:
        """Before retry `attempt` (1, 2, ...); `chance` is in 0..1."""
        return float(min(self.base_ms * 2 ** (attempt - 1), self.cap_ms) * (1 + self.jitter * (2 * chance - 1)) / 1000)


class GroupWriter(ABC):
    """`group_max`: items of one transaction. Any coroutine of the loop that opened it may `submit`."""

    group_max = 1024  # more only add latency (measured: no gain above 512)
    too_late = "the database could not be written in time"

    def __init__(self, retry: Retry, stats: Stats) -> None:
        self._id = uuid.uuid4().hex
        self._retry = retry
        self._stats = stats
        self._loop: asyncio.AbstractEventLoop  # of the coroutine that opens the writer
        self._closed = True
        # On the event loop.
        self._gathered: list[Item] = []  # submitted, and not handed over
        self._under_way = 0  # items handed over, and not settled
        self._will_poll = False
        self._seen = self._quiet = 0  # gathered at the last poll; polls in a row that found no more
        self._gather_until_s = 0.0
        self._request_gathered = False
        # Used by the event loop and by the thread.
        self._queue: SimpleQueue[list[Item] | None] = SimpleQueue()
        self._request_waits = False  # in the queue, or left by the thread
        self._is_busy = False  # the thread, with more than one item
        self._answered_s = 0.0  # when the database answered last, also with an error
        self._at_work = threading.Lock()  # held while the database is used
        self._no_retries = False
        # On the thread.
        self._thread: threading.Thread | None = None
        self._waiting: list[Item] = []  # taken from the queue, and not settled
        self._others_turn = False  # requests had the last group, and others were left

    async def open(self) -> None:
        """Raises SchemaTooNew, ForeignDatabase, DatabaseUnavailable, DatabaseWriteFailed."""
        assert self._thread is None, "already open"
        self._loop = asyncio.get_running_loop()
        self._queue = SimpleQueue()
        opened: asyncio.Future[None] = self._loop.create_future()
        self._under_way = 1
        self._thread = threading.Thread(target=self._main, args=(opened,), name="weft-writer", daemon=True)
        self._thread.start()
        self._closed = self._no_retries = False
        try:
            await asyncio.shield(opened)
        except BaseException:
            await self.close()
            if opened.done():
                opened.exception()  # a cancelled caller does not ask for it, and asyncio must not report it as lost
            raise

    def stop_retrying(self) -> None:
        self._no_retries = True

    async def close(self) -> None:
        """Commit what is waiting and end the thread."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._closed = self._no_retries = True
        self._hand_over()
        self._queue.put(None)
        await asyncio.shield(asyncio.to_thread(thread.join))

    # --- on the event loop

    def submit(
        self, write: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[T]:
        """Queue one item. The future holds what `write` returned, once that is on disk."""
        assert not kwargs, "positional arguments only"
        if self._closed:
            raise store_closed()
        future: asyncio.Future[T] = self._loop.create_future()
        if not self._will_poll:
            self._poll_soon()
        wait_s = patience_s()
        self._gathered.append(Item(future, write, args, math.inf if wait_s is None else time.monotonic() + wait_s))
        if wait_s is not None:
            late = self._loop.call_later(wait_s + LATE_S, self._answer_late, future)
            future.add_done_callback(lambda _: late.cancel())  # else it would hold the result for as long
            self._request_gathered = True
            if self._is_busy:
                self._hand_over()
        return future

    def _answer_late(self, future: asyncio.Future[Any]) -> None:
        if future.done():
            return
        if time.monotonic() < self._answered_s + SILENT_S:
            self._loop.call_later(SILENT_S, self._answer_late, future)
            return
        message = "the database does not answer, and it is unknown whether the change is on disk"
        future.set_exception(DatabaseUnavailable(message, hint="Send the same request again."))

    def _poll_soon(self) -> None:
        self._will_poll = True
        self._seen = self._quiet = 0
        self._gather_until_s = self._loop.time() + GATHER_S
        self._loop.call_soon(self._poll)

    def _poll(self) -> None:
        """After the callbacks of one pass of the event loop. A single item is handed over at once, unless a larger
        group is under way, and a request always is. Several have others with them as long as more come in each pass."""
        self._will_poll = False
        count = len(self._gathered)
        if not count:
            return
        self._quiet = 0 if count > self._seen else self._quiet + 1
        self._seen = count
        if count == 1 and not self._under_way and self._commit_here():
            return
        if self._request_gathered or count >= SHARED:
            self._hand_over()
        elif count > 1 and self._quiet < QUIET_PASSES and self._loop.time() < self._gather_until_s:
            self._will_poll = True
            self._loop.call_soon(self._poll)
        elif count >= self._under_way:
            self._hand_over()
        # Else it is handed over with what comes, at the latest when the group under way is settled.

    def _commit_here(self) -> bool:
        """Commit the only item there is, in this thread. False: it is handed over."""
        return False

    def _hand_over(self) -> None:
        """One batch to the thread: each hand-over wakes it, and costs both sides the interpreter's lock."""
        items, self._gathered = self._gathered, []
        asked, self._request_gathered = self._request_gathered, False
        self._under_way += len(items)
        self._put(items)
        if asked:
            self._request_waits = True  # after it was put there, so that the thread cannot miss it

    def _put(self, items: list[Item]) -> None:
        if len(items) == 1:  # the step of a single run
            self._queue.put(items)
        else:
            for start in range(0, len(items), self.group_max):
                self._queue.put(items[start : start + self.group_max])

    def _resolve(self, settled: list[tuple[asyncio.Future[Any], Outcome]]) -> None:
        """Hand out results. A caller that awaits one continues in the next pass."""
        self._under_way -= len(settled)
        for future, (result, error) in settled:
            if error is not None:
                _let_go(error)
            if future.done():  # its caller was cancelled, or has the error of a silent database
                continue
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)
        if self._gathered and not self._will_poll:
            self._poll_soon()

    # --- to the thread

    def _wake(self) -> None:
        self._queue.put([])

    # --- what each database has of its own; on the writer's thread

    @abstractmethod
    def _prepare(self) -> Exception | None:
        """Open, migrate, register this writer. Returns what went wrong."""

    @abstractmethod
    def _commit(self, items: list[Item]) -> Sequence[Outcome | None]:
        """Commit the items, or the first of them if a request waits, in one transaction. An item whose outcome is None
        is not on disk, and is for the next group. Raises an error of the database, or what an item raised: then nothing
        is on disk. DatabaseUnavailable from a failed look at an uncertain commit is the one case in which the outcome
        is unknown."""

    @abstractmethod
    def _in_our_words(self, error: Exception) -> Exception:
        """Return the database's error as one of weft. DatabaseWriteFailed is worth another try: nothing is on disk."""

    @abstractmethod
    def _drop(self) -> None:
        """The connection, whatever state it is in."""

    @abstractmethod
    def _leave(self) -> None:
        """Called after the last group."""

    def _pause(self, idle: bool) -> None:  # noqa: B027  (PostgreSQL has nothing to do)
        """Called after each group, and when there was none (`idle`)."""

    def _idle_s(self) -> float | None:
        """Return how long to wait for items before `_pause`."""
        return None

    # --- everything below runs on the writer's thread

    def _main(self, opened: asyncio.Future[None]) -> None:
        failure = self._prepare()
        self._deliver([(opened, Outcome(None, failure))])
        try:
            if failure is None:
                self._serve()
                self._leave()
        finally:
            self._drop()
            self._refuse_waiting()

    def _serve(self) -> None:
        more = True
        while more or self._waiting:
            more = self._receive() and more
            self._pause(idle=not self._serve_next())

    def _serve_next(self) -> bool:
        """Returns False if there is no group. Nothing of one is held then: the thread may wait for hours."""
        group = self._next_group()
        self._is_busy = len(group) > 1
        if group:
            self._serve_group(group, self._commit)
        return bool(group)

    def _serve_group(self, group: list[Item], commit: Commit) -> None:
        with self._at_work:
            settled, again = self._try(group, commit)
        if again:
            late, self._waiting = self._late([*again, *self._waiting])
            settled += late
        self._deliver([(item.future, outcome) for item, outcome in settled])
        if again:
            self._back_off(min(item.tries for item in again))

    def _receive(self) -> bool:
        """Move the queue into `_waiting`. Returns after a while, or after `_wake`; False once closed."""
        self._request_waits = False
        patience_s = 0.0 if self._waiting else self._idle_s()
        try:
            while (batch := self._queue.get(timeout=patience_s)) is not None:
                if not batch:
                    return True
                self._waiting += batch
                patience_s = 0.0
        except Empty:
            return True
        return False

    def _next_group(self) -> list[Item]:
        """Take requests, and then others, in turns as long as there are both, whatever is under way."""
        size, first = self.group_max, self._waiting
        others_turn, self._others_turn = self._others_turn, False
        requests = [item for item in first if item.is_request]
        if 0 < len(requests) < len(first):
            others = [item for item in first if not item.is_request]
            if others_turn:
                first = others + requests
                self._request_waits = True
            else:
                size, first = min(size, len(requests)), requests + others
                self._others_turn = True
        group, self._waiting = first[:size], first[size:]
        return group

    def _try(self, items: list[Item], commit: Commit) -> tuple[list[Settled], list[Item]]:
        """Commit the items once. Returns what is settled, and what is worth another try. Never raises."""
        began_s, stats = time.perf_counter(), self._stats
        commits = stats.commits
        try:
            outcomes = commit(items)
        except Exception as error:
            failure = self._in_our_words(error)
        else:
            self._answered_s = time.monotonic()
            if stats.commits > commits:
                stats.seconds.observe(time.perf_counter() - began_s)
            left = [item for item, outcome in zip(items, outcomes, strict=False) if outcome is None]
            self._waiting[:0] = left + items[len(outcomes) :]
            return [(item, outcome) for item, outcome in zip(items, outcomes, strict=False) if outcome is not None], []
        if isinstance(failure, DatabaseUnavailable | DatabaseWriteFailed):
            return self._failed_to_write(items, failure)
        if len(items) == 1:
            return [(items[0], Outcome(None, failure))], []
        settled, again = [], []
        for item in items:
            of_one, again_of_one = self._try([item], self._commit)
            settled += of_one
            again += again_of_one
        return settled, again

    def _failed_to_write(self, items: list[Item], failure: StoreError) -> tuple[list[Settled], list[Item]]:
        for item in items:
            item.tries += 1
        worth_it = isinstance(failure, DatabaseWriteFailed) and not self._no_retries
        again = [item for item in items if worth_it and item.tries <= self._retry.attempts]
        lost = [item for item in items if not worth_it or item.tries > self._retry.attempts]
        if not again and not isinstance(failure, DatabaseReplaced):
            self._drop()
        return self._give_up(lost, failure), again

    def _late(self, items: list[Item]) -> tuple[list[Settled], list[Item]]:
        """Give up those that have waited for as long as they want to. Returns what is settled, and the others."""
        now_s = time.monotonic()
        late = [item for item in items if item.until_s <= now_s]
        failure = DatabaseWriteFailed(self.too_late)
        return self._give_up(late, failure), [item for item in items if item.until_s > now_s]

    def _give_up(self, items: list[Item], failure: StoreError) -> list[Settled]:
        if items:
            OUTAGE.log(log, failure, "writing failed", len(items))
        # one exception each: a traceback belongs to one waiter
        return [(item, Outcome(None, type(failure)(failure.message, hint=failure.hint))) for item in items]

    def _back_off(self, retry: int) -> None:
        self._stats.retries += 1
        time.sleep(self._retry.delay_s(retry, random.random()))

    def _refuse_waiting(self) -> None:
        """The thread ends: callers that still wait get an error. After a clean `close` there are none."""
        self._closed = True
        waiting = self._waiting
        with suppress(Empty):
            while True:
                waiting += self._queue.get_nowait() or ()
        for item in waiting:
            self._deliver([(item.future, Outcome(None, store_closed()))])

    def _deliver(self, settled: list[tuple[asyncio.Future[Any], Outcome]]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._resolve, settled)
        except RuntimeError:  # the loop is closed: no caller is left
            log.debug("%d results arrived after the event loop had ended", len(settled))


def _let_go(error: BaseException) -> None:
    """Drop the frames of a traceback. Variables there are the items of the group, with the future that is about to hold
    the error: a cycle, and all that the caller holds would stay in memory until garbage is collected."""
    if not isinstance(error, WeftError):
        error.add_note(f"It was raised here:\n{''.join(format_tb(error.__traceback__))}")
    left: BaseException | None = error
    while left is not None:
        left.__traceback__ = None
        left = left.__cause__ or left.__context__
