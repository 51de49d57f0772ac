"""The one writer of a database in this process: a thread that takes everything waiting and commits it as one group.

A sync to disk costs more than all else, so those who wait share it. How items come here, and their results back:
`gathering.py`.

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
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from msgspec import Struct

from executor.errors import DatabaseReplaced, DatabaseUnavailable, DatabaseWriteFailed, StoreError, store_closed
from executor.kernel.process.prompt import Prompt
from executor.kernel.process.repeated import OUTAGE
from executor.kernel.store.gathering import Gathering, Item, Outcome, Settled, quick_switches
from executor.kernel.store.stats import Stats

log = logging.getLogger("weft.store")


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


class GroupWriter(Gathering, ABC):
    """Between `open` and `close` any coroutine of the loop that opened it may `submit`."""

    too_late = "the database could not be written in time"

    def __init__(self, retry: Retry, stats: Stats) -> None:
        super().__init__()
        self._retry = retry
        self._stats = stats
        self._at_work = threading.Lock()  # held while the database is used
        self._waiting: list[Item] = []  # taken from the queue, and not settled
        self._others_turn = False  # requests had the last group, and others were left
        self._thread: threading.Thread | None = None
        self._no_retries = False

    async def open(self) -> None:
        """Open the database and bring its schema up to date. Raises SchemaTooNew, ForeignDatabase,
        DatabaseUnavailable, DatabaseWriteFailed."""
        assert self._thread is None, "already open"
        self._loop = asyncio.get_running_loop()
        self._queue = SimpleQueue()
        opened: Prompt[None] = Prompt(self._loop)
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
        """See Store.stop_retrying."""
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

    def _wake(self) -> None:
        """There is something to do besides items."""
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
        """Behind the last group."""

    def _clear_up(self) -> None:
        """Before each group."""

    def _pause(self, idle: bool) -> None:
        """Behind each group, and when there was none (`idle`)."""

    def _idle_s(self) -> float | None:
        """Return how long to wait for items before `_pause`."""
        return None

    # --- everything below runs on the writer's thread

    def _main(self, opened: Prompt[None]) -> None:
        failure = self._prepare()
        self._deliver([(opened, Outcome(None, failure))])
        try:
            if failure is None:
                self._serve()
                self._leave()
        finally:
            quick_switches.want(self._id, False)
            self._drop()
            self._refuse_waiting()

    def _serve(self) -> None:
        more = True
        while more or self._waiting:
            more = self._take() and more
            self._clear_up()
            self._pause(idle=not self._serve_next())

    def _serve_next(self) -> bool:
        """The next group. False: there is none. What was in it is not held when this returns: the thread may wait for
        hours, and with what was refused it would hold a whole run."""
        group = self._next_group()
        self._is_busy = len(group) > 1
        if not group:
            return False
        with self._at_work:
            settled, again = self._try(group)
        if again:
            late, self._waiting = self._late([*again, *self._waiting])
            settled += late
        self._deliver([(item.future, outcome) for item, outcome in settled])
        if again:
            self._back_off(min(item.tries for item in again))
        return True

    def _take(self) -> bool:
        """Everything from the queue into `_waiting`; nothing when it was quiet for a while, or after `_wake`. False
        once closed."""
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
        """Out of `_waiting`: requests, and then others, in turns as long as there are both. Whatever group is under way
        when a request comes, the next one is that of requests."""
        size, first = self.group_max, self._waiting
        others_turn, self._others_turn = self._others_turn, False
        requests = [item for item in first if item.is_request]
        if not requests:
            quick_switches.want(self._id, False)
        elif len(requests) < len(first):
            others = [item for item in first if not item.is_request]
            if others_turn:
                first = others + requests
                self._request_waits = True
            else:
                size, first = min(size, len(requests)), requests + others
                self._others_turn = True
        group, self._waiting = first[:size], first[size:]
        return group

    def _try(self, items: list[Item]) -> tuple[list[Settled], list[Item]]:
        """Commit the items once: what is settled, and what is worth another try. Those that were left out go back to
        `_waiting`. Never raises."""
        began_s, stats = time.perf_counter(), self._stats
        commits = stats.commits
        try:
            outcomes = self._commit(items)
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
            of_one, again_of_one = self._try([item])
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

    def _deliver(self, settled: list[tuple[Prompt[Any], Outcome]]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle, settled)
        except RuntimeError:  # the loop is closed: no caller is left
            log.debug("%d results arrived after the event loop had ended", len(settled))
