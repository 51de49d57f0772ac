"""The event loop in which the code of a durable function runs: it knows no clock and no IO.

Only what the driver (`durable.py`) delivers makes it run. So the code does the same each time it is entered: tasks,
queues, locks and task groups of asyncio behave as they did before, because they see the same things in the same order.
Time is that of the last arrival, and a timer (`asyncio.sleep`, `asyncio.timeout`) is a durable wait.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Final, NoReturn, TypeVarTuple, Unpack
from zlib import crc32

from executor.errors import NotDeterministic
from executor.kernel.handler.base import Leaving
from executor.kernel.run.call_site import ORIGIN_DEPTH, LaneTask
from executor.kernel.run.guard import STEP, refusal, watch

Ts = TypeVarTuple("Ts")
log = logging.getLogger("weft.durable")

THROWN_MAX: Final = 100  # times that a coroutine may wait again while it is ended


class Timer(asyncio.TimerHandle):
    """A timer of the lane. `wait` is the durable wait whose end calls it."""

    wait: asyncio.Future[Any] | None = None


class Lane(asyncio.AbstractEventLoop):
    """`set_timer` begins the durable wait of a timer; `time_ms` returns the time of the last arrival; `seed` is the
    same in each entry."""

    def __init__(
        self, set_timer: Callable[[int], asyncio.Future[Any]], time_ms: Callable[[], int], seed: str = ""
    ) -> None:
        self._set_timer = set_timer
        self._time_ms = time_ms
        self._ready: deque[asyncio.Handle] = deque()
        self._tasks: list[asyncio.Task[Any]] = []
        self._numbers = 0
        self._seed = crc32(seed.encode())
        self._kept = 64  # of those: when there are more, those that are done are left out
        self._closed = False
        self.refused: NotDeterministic | None = None  # the first, which the code may have caught

    def run_idle(self) -> None:
        """Run until nothing is ready. No task of the loop around may be current meanwhile."""
        before, hooks = events._get_running_loop(), sys.get_asyncgen_hooks()
        depth = sys.get_coroutine_origin_tracking_depth()
        around = watch(self.refuse)
        events._set_running_loop(self)
        sys.set_asyncgen_hooks(None, None)
        sys.set_coroutine_origin_tracking_depth(max(depth, ORIGIN_DEPTH))
        try:
            while self._ready:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            sys.set_coroutine_origin_tracking_depth(depth)
            sys.set_asyncgen_hooks(*hooks)
            events._set_running_loop(before)
            watch(around)

    def refuse(self, error: NotDeterministic) -> None:
        self.refused = self.refused or error

    def end(self) -> None:
        """End all tasks where they are, by `Leaving`: nothing more begins. Call it as `run_idle`."""
        self._closed = True
        self._ready.clear()
        before = events._get_running_loop()
        around = watch(lambda error: log.error("in a durable function that leaves: %s", error))
        events._set_running_loop(self)
        try:
            for task in self._tasks:
                if not task.done():
                    _throw(task)
        finally:
            self._ready.clear()
            events._set_running_loop(before)
            watch(around)

    # --- what asyncio asks of a loop ---

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = Timer(when, callback, args, self, context)
        timer.wait = self._set_timer(round(when * 1000))
        timer.wait.add_done_callback(lambda wait: None if wait.cancelled() or timer.cancelled() else timer._run())
        return timer

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        wait = getattr(handle, "wait", None)
        if wait is not None and not self._closed:
            wait.cancel()

    def time(self) -> float:
        return self._time_ms() / 1000

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task = LaneTask(coro, self._numbers, self._seed, loop=self, **options)
        self._numbers += 1
        if task.number and isinstance(parent := asyncio.current_task(self), LaneTask):
            task.parent = parent
        if len(self._tasks) > self._kept and not self._closed:
            self._tasks = [one for one in self._tasks if not one.done()]
            self._kept = 2 * len(self._tasks) + 64
        self._tasks.append(task)
        return task

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def get_task_factory(self) -> None:
        return None

    def get_exception_handler(self) -> None:
        return None

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not self._closed and not isinstance(error, Leaving):
            log.error("in a durable function: %s", context.get("message"), exc_info=error)


def _throw(task: asyncio.Task[Any]) -> None:
    coroutine: Coroutine[Any, Any, Any] = task.get_coro()  # type: ignore[assignment]  # tasks of the lane have coroutines
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is dropped before its end, on purpose
    for _ in range(THROWN_MAX):
        try:
            coroutine.throw(Leaving())
        except BaseException:
            return


_REFUSED: Final = {
    "call_soon_threadsafe": f"a thread called the code back: {STEP}",
    "run_in_executor": f"it started a thread: {STEP}",
    "run_until_complete": "it started an event loop: await the coroutine instead",
    "run_forever": "it started an event loop: await the coroutine instead",
    "add_reader": f"it waits for a file or socket: {STEP}",
    "add_writer": f"it waits for a file or socket: {STEP}",
    "add_signal_handler": f"it handles signals of the process: {STEP}",
    "remove_signal_handler": f"it handles signals of the process: {STEP}",
}
_REFUSED_IO: Final = (
    "create_connection", "create_server", "create_datagram_endpoint", "create_unix_connection", "create_unix_server",
    "connect_accepted_socket", "connect_read_pipe", "connect_write_pipe", "getaddrinfo", "getnameinfo", "sendfile",
    "sock_accept", "sock_connect", "sock_recv", "sock_recv_into", "sock_recvfrom", "sock_recvfrom_into", "sock_sendall",
    "sock_sendfile", "sock_sendto", "start_tls", "subprocess_exec", "subprocess_shell",
)  # fmt: skip


def _refusing(what: str) -> Callable[..., NoReturn]:
    def refuse(self: Lane, *args: Any, **options: Any) -> NoReturn:
        for one in args:
            if asyncio.iscoroutine(one):
                one.close()
        error = refusal(what)
        self.refuse(error)
        raise error

    return refuse


for _name, _what in _REFUSED.items():
    setattr(Lane, _name, _refusing(_what))
for _name in _REFUSED_IO:
    setattr(Lane, _name, _refusing(f"it uses the network, files or other programs: {STEP}"))
