"""The one writer of a SQLite file: a thread that takes everything waiting and commits it as one group.

A sync to disk costs more than all else, so those who wait share it: what is submitted in one turn of the event loop
goes over as one batch, and while one group is being committed the next gathers by itself, without a timer. One hop to
the thread and one back per group, never per row.

An item is a function of a topic (`runs.py`, `waits.py`, ...) and its arguments. It runs inside the group's transaction
and raises a WeftError only before its first write, so a fenced append needs no savepoint. Any other error rolls the
group back, and each item is then tried by itself: only the culprit fails. An item reads and writes through `tx.db`;
appends that have only events are collected, and written before anything else is looked at (`Tx`).

A result continues its caller in the callback that brings it (`prompt.py`), and what the callers of a group submit then
is handed over at the end of that callback: the next step of a run costs no further pass of the loop.

A caller may be cancelled at any time: its item is committed all the same, and the result is dropped.

An item with a bound on its waiting (`patience.py`) is a request's. A client waits for it, while the steps of runs
may be thousands: requests have groups of their own then, and in between a few steps at a time are committed.

While another process holds the lock a group is tried again and again, with what has come meanwhile. An item is given up
after as many tries as `Retry` has, or once it has waited as long as its caller wants to (`patience.py`), so that none
waits for the turn of others.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import sqlite3
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from msgspec import Struct

from executor.errors import (
    Conflict,
    DatabaseDamaged,
    DatabaseFull,
    DatabaseReplaced,
    DatabaseUnavailable,
    DatabaseWriteFailed,
    Fenced,
    StoreError,
    WeftError,
)
from executor.repeated import Repeated
from executor.store.migrate import migrate, packaged_migrations
from executor.store.patience import patience_s
from executor.store.sqlite.batches import BATCH_IS_THERE
from executor.store.sqlite.connection import CommitUncertain, Database, Stale, Tx, full_hint, is_full
from executor.store.sqlite.prompt import Prompt

log = logging.getLogger("weft.store")

P = ParamSpec("P")
T = TypeVar("T")

GROUP_MAX = 1024  # items of one transaction; more only add latency (measured: no gain above 512)
GROUP_ROWS_MIN = 128  # rows that a request may have to wait for; fewer would spend the time on syncs
# While a request waits behind a backlog, threads of this process ask for the interpreter so soon. This one lets go
# of it at each statement, and with Python's 5 ms a busy event loop made 70 statements last 0.35 s. Set all the time,
# it would cost the steps of runs a seventh of their pace.
QUICK_SWITCH_S = 0.0005
IDLE_S = 0.05  # this long without work, then checkpoint
CHECKPOINT_COMMITS = 512  # about 8 MiB of WAL for small events, written over again and again
CHECKPOINT_ROWS = 8192
LOOK_EVERY_S = 0.005  # whether the file is still the one that was opened

# The writer's own row says which of its groups without events was committed last.
ADD_WRITER = "INSERT INTO writers (id, last_group) VALUES (?, 0) ON CONFLICT DO NOTHING"
MARK_GROUP = "UPDATE writers SET last_group = ? WHERE id = ?"
LAST_GROUP = "SELECT last_group FROM writers WHERE id = ?"
DELETE_WRITER = "DELETE FROM writers WHERE id = ?"
# Rows of processes that were killed; a thousand starts is more than ever write at once.
FORGET_OLD_WRITERS = "DELETE FROM writers WHERE rowid < (SELECT max(rowid) FROM writers) - 1000"
PING_WRITE = "UPDATE writers SET last_group = last_group WHERE rowid = (SELECT max(rowid) FROM writers)"

RESTORE_HINT = "Stop the server and run `weft restore` with a backup; it keeps the damaged file next to the new one."
NO_DATABASE_HINT = f"If it is another program's file, name weft's with --db or WEFT_DB. If it is weft's: {RESTORE_HINT}"
UNAVAILABLE = (
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOMEM,
)


class Retry(Struct, frozen=True):
    """When another process holds the lock: the whole transaction again, after base * 2^n, capped, +- jitter. With half
    a second for each try (SQLiteStore) that is 38 seconds, and a caller's patience is looked at twice a second."""

    attempts: int = 50
    base_ms: int = 50
    cap_ms: int = 250
    jitter: float = 0.25

    def delay_s(self, attempt: int, chance: float) -> float:
        """Before retry `attempt` (1, 2, ...); `chance` is in 0..1."""
        return float(min(self.base_ms * 2 ** (attempt - 1), self.cap_ms) * (1 + self.jitter * (2 * chance - 1)) / 1000)


class Stats(Struct):
    """Counters since the start. `items` were committed in `commits` groups, the largest had `group_max`; `rows` are
    rows inserted, updated or deleted; `retries` counts groups written again because the database was busy."""

    items: int = 0
    commits: int = 0
    group_max: int = 0
    rows: int = 0
    retries: int = 0
    checkpoints: int = 0


class Item(Struct, eq=False):
    """`until_s`: monotonic; after that it is not tried again. `tries`: that failed."""

    future: Prompt[Any]
    write: Callable[..., Any]
    args: tuple[Any, ...]
    until_s: float = math.inf
    tries: int = 0

    @property
    def is_request(self) -> bool:
        return self.until_s < math.inf


class Outcome(NamedTuple):
    result: Any
    error: BaseException | None = None


Settled = tuple[Item, Outcome]


class Writer:
    """Between `open` and `close` any coroutine of the loop that opened it may `submit`."""

    def __init__(self, database: Database, retry: Retry, stats: Stats) -> None:
        self._database = database
        self._retry = retry
        self._stats = stats
        self._gathered: list[Item] = []  # submitted in this turn of the event loop
        self._settling = False  # results are handed out: what is submitted meanwhile is handed over at its end
        self._queue: SimpleQueue[list[Item] | None] = SimpleQueue()
        self._waiting: list[Item] = []  # taken from the queue, and not settled
        self._request_waits = False  # in the queue, or left in `_waiting`
        self._others_turn = True
        self._is_busy = False  # with more than one item
        self._thread: threading.Thread | None = None
        self._closed = True
        self._no_retries = False
        self._id = uuid.uuid4().hex
        self._group = 0
        self._failed = Repeated()
        self._look_again_s = 0.0
        self._commits = 0  # since the last checkpoint
        self._rows = 0

    async def open(self) -> None:
        """Open the file and bring its schema up to date. Raises SchemaTooNew, DatabaseUnavailable,
        DatabaseWriteFailed."""
        assert self._thread is None, "already open"
        self._loop = asyncio.get_running_loop()
        self._queue = SimpleQueue()
        opened: Prompt[None] = Prompt(self._loop)
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

    def submit(self, write: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Queue one item. The future holds what `write` returned, once that is on disk."""
        assert not kwargs, "positional arguments only"
        if self._closed:
            raise StoreError("the store is closed", code="store_closed")
        future: Prompt[T] = Prompt(self._loop)
        if not self._gathered and not self._settling:
            self._loop.call_soon(self._hand_over)
        wait_s = patience_s()
        self._gathered.append(Item(future, write, args, math.inf if wait_s is None else time.monotonic() + wait_s))
        if wait_s is not None and self._is_busy:
            self._hand_over()
            _quick_switches.want(self._id, True)
        return future

    def _hand_over(self) -> None:
        """One batch to the thread: each hand-over wakes it, and costs both sides the interpreter's lock."""
        items, self._gathered = self._gathered, []
        if len(items) == 1:  # the step of a single run
            self._queue.put(items)
        else:
            for start in range(0, len(items), GROUP_MAX):
                self._queue.put(items[start : start + GROUP_MAX])
        if any(item.is_request for item in items):
            self._request_waits = True  # after it was put there, so that the thread cannot miss it

    def _settle(self, settled: list[tuple[Prompt[Any], Outcome]]) -> None:
        """Hand out results. Who awaits one continues here, and what that submits is handed over at the end."""
        self._settling = True
        left = iter(settled)
        try:
            for future, (result, error) in left:
                future.settle(result, error)
        finally:
            self._settling = False
            if rest := list(left):  # the program is being interrupted
                self._loop.call_soon(self._settle, rest)
            if self._gathered:
                self._hand_over()

    # --- everything below runs on the writer's thread

    def _main(self, opened: Prompt[None]) -> None:
        failure = self._prepare()
        self._deliver([(opened, Outcome(None, failure))])
        try:
            if failure is None:
                self._serve()
                self._leave()
        finally:
            _quick_switches.want(self._id, False)
            self._database.drop()
            self._refuse_waiting()

    def _serve(self) -> None:
        more = True
        while more or self._waiting:
            more = self._take() and more
            group = self._next_group()
            self._is_busy = len(group) > 1
            if group:
                settled, again = self._try(group)
                if again:
                    late, self._waiting = self._late([*again, *self._waiting])
                    settled += late
                self._deliver([(item.future, outcome) for item, outcome in settled])
                if again:
                    self._back_off(min(item.tries for item in again))
            if self._commits and (not group or self._commits >= CHECKPOINT_COMMITS or self._rows >= CHECKPOINT_ROWS):
                self._checkpoint()

    def _take(self) -> bool:
        """Everything from the queue into `_waiting`; nothing when it was quiet for a while. False once closed."""
        self._request_waits = False
        try:
            while (batch := self._queue.get(timeout=self._patience_s())) is not None:
                self._waiting += batch
        except Empty:
            return True
        return False

    def _next_group(self) -> list[Item]:
        """Out of `_waiting`: requests and other items in turns, as long as there are both."""
        size, first = GROUP_MAX, self._waiting
        requests = [item for item in first if item.is_request]
        if not requests:
            _quick_switches.want(self._id, False)
        elif len(requests) < len(first):
            others = [item for item in first if not item.is_request]
            self._others_turn = not self._others_turn
            if self._others_turn:
                first = others + requests
                self._request_waits = True
            else:
                size, first = len(requests), requests + others
        group, self._waiting = first[:size], first[size:]
        return group

    def _patience_s(self) -> float | None:
        """How long to wait for a batch: not at all with something to do, else until it is time to checkpoint."""
        if self._waiting:
            return 0.0
        return IDLE_S if self._commits else None

    def _try(self, items: list[Item]) -> tuple[list[Settled], list[Item]]:
        """Commit the items once: what is settled, and what is worth another try. Those that were left out for a request
        go back to `_waiting`. Never raises."""
        try:
            outcomes = self._commit(items)
        except Exception as error:
            failure = as_weft_error(error, path=self._database.path)
        else:
            self._waiting[:0] = items[len(outcomes) :]
            return list(zip(items, outcomes, strict=False)), []
        if not isinstance(failure, DatabaseUnavailable | DatabaseWriteFailed):
            if len(items) == 1:
                return [(items[0], Outcome(None, failure))], []
            settled, again = [], []
            for item in items:
                of_one, again_of_one = self._try([item])
                settled += of_one
                again += again_of_one
            return settled, again
        for item in items:
            item.tries += 1
        worth_it = isinstance(failure, DatabaseWriteFailed) and not self._no_retries
        again = [item for item in items if worth_it and item.tries <= self._retry.attempts]
        lost = [item for item in items if not worth_it or item.tries > self._retry.attempts]
        if not again and not isinstance(failure, DatabaseReplaced):
            self._database.drop()
        return self._give_up(lost, failure), again

    def _late(self, items: list[Item]) -> tuple[list[Settled], list[Item]]:
        """Give up those that have waited for as long as they want to. Returns what is settled, and the others."""
        now_s = time.monotonic()
        late = [item for item in items if item.until_s <= now_s]
        failure = DatabaseWriteFailed("another process holds the write lock of the database")
        return self._give_up(late, failure), [item for item in items if item.until_s > now_s]

    def _give_up(self, items: list[Item], failure: StoreError) -> list[Settled]:
        if items and (count := self._failed.due(failure.code, len(items))):
            log.error("%d writes failed: %s", count, failure)
        # one exception each: a traceback belongs to one waiter
        return [(item, Outcome(None, type(failure)(failure.message, hint=failure.hint))) for item in items]

    def _commit(self, items: list[Item]) -> list[Outcome]:
        """One transaction of the items; of the first of them when a request waits. Raises sqlite3.Error, or what an
        item raised: then nothing is on disk. DatabaseUnavailable from a failed look at an uncertain commit is the one
        case in which the outcome is unknown."""
        self._look_at_file()
        self._group += 1
        outcomes: list[Outcome] = []
        changes = 0
        try:
            with self._database.tx("group") as tx:
                for item in items:
                    self._database.fault(f"write.{item.write.__name__.lstrip('_')}")
                    try:
                        outcomes.append(Outcome(item.write(tx, *item.args)))
                    except WeftError as error:
                        outcomes.append(Outcome(None, error))
                    if self._request_waits and tx.changes >= GROUP_ROWS_MIN:
                        break
                changes = tx.changes
                if changes and tx.proof is None:
                    tx.db.execute(MARK_GROUP, (self._group, self._id))
        except CommitUncertain as uncertain:
            if not self._is_on_disk(tx):
                raise as_weft_error(uncertain, again=True, path=self._database.path) from uncertain
        stats = self._stats
        stats.items += len(outcomes)
        if changes:
            stats.commits += 1
            stats.rows += changes
            stats.group_max = max(stats.group_max, len(outcomes))
            self._commits += 1
            self._rows += changes
        return outcomes

    def _look_at_file(self) -> None:
        """Not for each of many small groups: a look takes 8 us. Raises DatabaseReplaced."""
        now_s = time.monotonic()
        if now_s >= self._look_again_s:
            self._database.check_file()
            self._look_again_s = now_s + LOOK_EVERY_S

    def _is_on_disk(self, tx: Tx) -> bool:
        """After a COMMIT that raised: look with a fresh connection. A group is there as a whole, so one of its events
        proves it; only a group without events needs the mark, which would cost every append a page."""
        self._database.drop()
        try:
            if tx.proof is not None:
                return bool(self._database.db.execute(BATCH_IS_THERE, tx.proof).fetchall())
            return self._database.db.execute(LAST_GROUP, (self._id,)).fetchall() == [(self._group,)]
        except sqlite3.Error as error:
            raise DatabaseUnavailable(f"a commit failed, and it is unknown whether it is on disk: {error}") from error

    def _back_off(self, retry: int) -> None:
        self._stats.retries += 1
        time.sleep(self._retry.delay_s(retry, random.random()))

    def _checkpoint(self) -> None:
        self._commits = self._rows = 0
        self._stats.checkpoints += 1
        self._database.checkpoint()

    def _prepare(self) -> Exception | None:
        """Open, migrate, register this writer. Returns what went wrong."""
        retries = 0
        while True:
            try:
                migrate(self._database, packaged_migrations())
                with self._database.tx("register") as tx:
                    tx.db.execute(ADD_WRITER, (self._id,))
                    tx.db.execute(FORGET_OLD_WRITERS)
                return None
            except Exception as error:
                self._database.drop()
                failure = as_weft_error(error, path=self._database.path)
                if not isinstance(failure, DatabaseWriteFailed) or retries == self._retry.attempts or self._no_retries:
                    return failure
                retries += 1
                self._back_off(retries)

    def _leave(self) -> None:
        try:
            with self._database.tx("unregister") as tx:
                tx.db.execute(DELETE_WRITER, (self._id,))
            self._database.checkpoint()
        except (sqlite3.Error, CommitUncertain, DatabaseUnavailable) as error:
            log.warning("the writer could not clean up: %s", error)

    def _refuse_waiting(self) -> None:
        """The thread ends: callers that still wait get an error. After a clean `close` there are none."""
        self._closed = True
        waiting = self._waiting
        with suppress(Empty):
            while True:
                waiting += self._queue.get_nowait() or ()
        for item in waiting:
            self._deliver([(item.future, Outcome(None, StoreError("the store is closed", code="store_closed")))])

    def _deliver(self, settled: list[tuple[Prompt[Any], Outcome]]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle, settled)
        except RuntimeError:  # the loop is closed: no caller is left
            log.debug("%d results arrived after the event loop had ended", len(settled))


def ping(tx: Tx) -> None:
    tx.db.execute(PING_WRITE)


class _QuickSwitches:
    """The interval is one of the process, which may have several writers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted_by: set[str] = set()
        self._usual_s = 0.0

    def want(self, writer: str, wanted: bool) -> None:
        if wanted == (writer in self._wanted_by):
            return
        with self._lock:
            if not self._wanted_by:
                self._usual_s = sys.getswitchinterval()
            if wanted:
                self._wanted_by.add(writer)
            else:
                self._wanted_by.discard(writer)
            sys.setswitchinterval(min(QUICK_SWITCH_S, self._usual_s) if self._wanted_by else self._usual_s)


_quick_switches = _QuickSwitches()


def as_weft_error(error: Exception, again: bool = False, path: str = "") -> Exception:
    """What SQLite said, in our words; errors of our own, and bugs, stay as they are. DatabaseWriteFailed is worth
    another try; `again` makes an I/O error one: it hit a COMMIT that is known not to be on disk."""
    if isinstance(error, Stale):
        return Fenced(f"run {error.run}: the epoch or the seq of an append is no longer current", run=error.run)
    if isinstance(error, CommitUncertain) and isinstance(error.__cause__, sqlite3.Error):
        error = error.__cause__
    if not isinstance(error, sqlite3.Error):
        return error
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the rest is the extended code
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or (again and code == sqlite3.SQLITE_IOERR):
        return DatabaseWriteFailed(f"the write failed after all retries: {error}")
    if code == sqlite3.SQLITE_CONSTRAINT:
        return Conflict(f"the database rejected a row: {error}")
    if code == sqlite3.SQLITE_FULL or (code in UNAVAILABLE and path and is_full(path)):
        return DatabaseFull(f"the disk is full: {error}", hint=full_hint(path))
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        unknown = "not a database" in str(error)
        hint = NO_DATABASE_HINT if unknown else RESTORE_HINT
        return DatabaseDamaged(f"the file is damaged or is not a database: {error}", hint=hint)
    if code in UNAVAILABLE:
        return DatabaseUnavailable(f"the database cannot be used: {error}")
    return error
