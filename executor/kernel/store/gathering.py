"""Event-loop side of a writer: queues writes and delivers results.

What is submitted in one pass of the loop goes over as one batch, and while one group is being committed the next
gathers by itself, without a timer. One hop to the thread and one back per group, never per row. Many runs make their
steps in several passes: a batch gathers while each pass adds to it, and one that is smaller than the group under way
waits for that, as its runs are the next to submit. A single step waits for nothing.

A result continues its caller in the callback that brings it (`prompt.py`), and what the caller of a single one submits
then is handed over at the end of that callback: the next step of a run costs no further pass of the loop.
"""

from __future__ import annotations

import asyncio
import math
import sys
import threading
import time
import uuid
from collections.abc import Callable
from queue import SimpleQueue
from traceback import format_tb
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from msgspec import Struct

from executor.errors import DatabaseUnavailable, WeftError, store_closed
from executor.kernel.process.prompt import Prompt
from executor.kernel.store.patience import patience_s

P = ParamSpec("P")
T = TypeVar("T")

SHARED = 64  # items that are worth a commit of their own, however many others come
QUIET_PASSES = 2  # of the event loop without another item: a step of a run may need as many
SETTLE_S = 0.005  # results are handed out for this long in one pass of the event loop
GATHER_S = 0.01  # after that a batch is handed over in any case: passes of a busy loop are long
# A writer that has its answer from the database gives an item up in time, and knows that it is not on disk. One that
# has none, from a server or a disk that does not answer, cannot: its requests are answered after this.
LATE_S = 1.25
SILENT_S = 1.0  # a database that has answered others meanwhile is slow, not silent
# While a request waits behind a backlog, threads of this process ask for the interpreter so soon. This one lets go
# of it at each statement, and with Python's 5 ms a busy event loop made 70 statements last 0.35 s. A claim of 64 runs
# has 200 pauses of this kind. Set all the time, it would cost the steps of runs a seventh of their pace.
QUICK_SWITCH_S = 0.0002


class Item(Struct, eq=False):
    """`until_s`: monotonic; after that it is not tried again. `tries`: that failed. `alone`: not in one statement with
    others."""

    future: Prompt[Any]
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


class Gathering:
    """`group_max`: items of one transaction."""

    group_max = 1024  # more only add latency (measured: no gain above 512)

    def __init__(self) -> None:
        self._id = uuid.uuid4().hex
        self._loop: asyncio.AbstractEventLoop  # of the coroutine that opens the writer
        self._closed = True
        self._gathered: list[Item] = []  # submitted, and not handed over
        self._under_way = 0  # items handed over, and not settled
        self._settling = False  # results are handed out: what is submitted meanwhile is looked at after that
        self._will_look = False
        self._seen = self._quiet = 0  # gathered at the last look; looks in a row that found no more
        self._gather_until_s = 0.0
        self._queue: SimpleQueue[list[Item] | None] = SimpleQueue()
        self._request_gathered = False
        self._request_waits = False  # in the queue, or left by the thread
        self._is_busy = False  # the thread, with more than one item
        self._answered_s = 0.0  # when the database answered last, also with an error

    def submit(
        self, write: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[T]:
        """Queue one item. The future holds what `write` returned, once that is on disk."""
        assert not kwargs, "positional arguments only"
        if self._closed:
            raise store_closed()
        future: Prompt[T] = Prompt(self._loop)
        if not (self._settling or self._will_look):
            self._look_soon()
        wait_s = patience_s()
        self._gathered.append(Item(future, write, args, math.inf if wait_s is None else time.monotonic() + wait_s))
        if wait_s is not None:
            look = self._loop.call_later(wait_s + LATE_S, self._look_at, future)
            future.add_done_callback(lambda _: look.cancel())  # else it would hold the result for as long
            self._request_gathered = True
            if self._is_busy:
                self._hand_over()
                quick_switches.want(self._id, True)
        return future

    def _look_at(self, future: Prompt[Any]) -> None:
        """Handle a request whose patience has ended."""
        if future.done():
            return
        if time.monotonic() < self._answered_s + SILENT_S:
            self._loop.call_later(SILENT_S, self._look_at, future)
            return
        message = "the database does not answer, and it is unknown whether the change is on disk"
        future.settle(None, DatabaseUnavailable(message, hint="Send the same request again."))

    def _look_soon(self) -> None:
        self._will_look = True
        self._seen = self._quiet = 0
        self._gather_until_s = self._loop.time() + GATHER_S
        self._loop.call_soon(self._look)

    def _look(self) -> None:
        """Behind the callbacks of one pass of the event loop. A single item is handed over at once, unless a larger
        group is under way, and a request always is. Several have others with them as long as more come in each pass."""
        self._will_look = False
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
            self._will_look = True
            self._loop.call_soon(self._look)
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

    def _settle(self, settled: list[tuple[Prompt[Any], Outcome]]) -> None:
        """Hand out results. A caller that awaits one continues here, and what it submits is looked at after the
        last."""
        self._settling = True
        until_s = self._loop.time() + SETTLE_S
        left = iter(settled)
        try:
            for future, (result, error) in left:
                self._under_way -= 1
                if error is not None:
                    _let_go(error)
                future.settle(result, error)
                if self._loop.time() > until_s:
                    break
        finally:
            self._settling = False
            if rest := list(left):
                self._loop.call_soon(self._settle, rest)
            if len(self._gathered) == 1 and not self._under_way:  # a single run: its next step waits for no pass
                if len(settled) > 1 or not self._commit_here():
                    self._hand_over()
            elif self._gathered and not self._will_look:
                self._look_soon()


def _let_go(error: BaseException) -> None:
    """Drop the frames of a traceback. Variables there are the items of the group, with the future that is about to hold
    the error: a cycle, and all that the caller holds would stay in memory until garbage is collected."""
    if not isinstance(error, WeftError):
        error.add_note(f"It was raised here:\n{''.join(format_tb(error.__traceback__))}")
    left: BaseException | None = error
    while left is not None:
        left.__traceback__ = None
        left = left.__cause__ or left.__context__


class QuickSwitches:
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


quick_switches = QuickSwitches()
