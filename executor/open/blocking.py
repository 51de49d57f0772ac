"""Calls into an event loop that runs in a thread of its own, for programs without asyncio: the parts of `SyncEngine`.

A coroutine becomes a function that blocks, an asynchronous generator one that iterates. What a call raises, its caller
gets. An interrupted caller (Ctrl-C) cancels the call and waits for its end."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401 - its pools end after what is registered below
import os
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, suppress
from functools import wraps
from inspect import iscoroutinefunction, unwrap
from typing import Any, Final, Generic, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

T = TypeVar("T")
TOPICS: Final = (
    "runs", "events", "workflows", "drafts", "waits", "signals", "callbacks", "functions", "lifecycle", "history",
    "backtests", "schedules", "webhooks", "secrets", "connections", "knowledge", "usage", "upkeep",
)  # fmt: skip
OF_THE_ENGINE: Final = frozenset({"start", "stop"})  # it calls these itself
END: Final = object()
OTHERWISE: Final = "write `async with weft.open(...)` there, or call it in a thread (asyncio.to_thread)"


class Blocking(Generic[T]):
    """`inside` is what `opened` gives, open in the loop of a thread until `close`, until nothing refers to this object,
    or until the program ends."""

    def __init__(self, opened: AbstractAsyncContextManager[T]) -> None:
        _refuse_in_a_loop()
        started: Future[tuple[BlockingPortal, T]] = Future()
        ended: Future[None] = Future()
        thread = threading.Thread(target=_main, args=(opened, started, ended), name="weft", daemon=True)
        thread.start()
        try:
            self._portal, self.inside = started.result()
        except BaseException:
            started.cancel()  # an interrupt: what is opened by then is closed
            raise
        self._pid = os.getpid()
        self.close = weakref.finalize(self, _close, self._portal, ended, thread, self._pid)
        self.close.atexit = False  # that is too late: no thread can be started then
        _OPEN.add(self)

    def method(self, function: Callable[..., Any]) -> Callable[..., Any] | None:
        """Return the same for callers that block, or None if it is neither a coroutine function nor a stream."""
        is_stream = str(getattr(function, "__annotations__", {}).get("return", "")).startswith("Async")
        if not is_stream and not iscoroutinefunction(unwrap(function)):
            return None

        @wraps(function)
        def blocking(*args: Any, **kwargs: Any) -> Any:
            return (self.iterate if is_stream else self.call)(function, *args, **kwargs)

        return blocking

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call it in the loop, and return what comes of it. Raises RuntimeError: the engine is not for this thread."""
        _refuse_in_a_loop()
        if os.getpid() != self._pid:
            raise RuntimeError("this engine was opened before this process was forked: open one in each process")
        if not self.close.alive:
            raise RuntimeError("this engine is closed")
        ended = threading.Event()

        async def called() -> Any:
            try:
                return await function(*args, **kwargs)
            finally:
                ended.set()

        future = self._portal.start_task_soon(called)
        try:
            return future.result()
        except CancelledError:
            raise RuntimeError("this engine was closed during the call") from None
        except BaseException:
            future.cancel()
            ended.wait()  # the next call must not meet it
            raise

    def iterate(
        self, function: Callable[..., AsyncGenerator[Any, None]], *args: Any, **kwargs: Any
    ) -> Generator[Any, None, None]:
        """Iterate over what it yields, one call for each."""
        events = function(*args, **kwargs)
        try:
            while (event := self.call(anext, events, END)) is not END:
                yield event
        finally:
            if self.close.alive:
                self.call(events.aclose)


def _main(
    opened: AbstractAsyncContextManager[T], started: Future[tuple[BlockingPortal, T]], ended: Future[None]
) -> None:
    """The thread: open, serve calls, close."""
    try:
        anyio.run(_serve, opened, started)
    except BaseException as error:
        (ended if started.done() else started).set_exception(error)
    else:
        ended.set_result(None)


async def _serve(opened: AbstractAsyncContextManager[T], started: Future[tuple[BlockingPortal, T]]) -> None:
    async with opened as inside, BlockingPortal() as portal:
        await asyncio.to_thread(int)  # that thread stays, for closing at the end of a program: 3.12 starts none then
        if started.set_running_or_notify_cancel():
            started.set_result((portal, inside))
            await portal.sleep_until_stopped()


def _close(portal: BlockingPortal, ended: Future[None], thread: threading.Thread, pid: int) -> None:
    if os.getpid() != pid:
        return  # the thread is in the other process

    def close() -> None:
        portal.call(portal.stop, True)
        thread.join()
        ended.result()

    if _in_a_loop():  # the last reference is gone there: it must not wait, and may be that of the engine itself
        threading.Thread(target=close, name="weft-close").start()
    else:
        close()


_OPEN: weakref.WeakSet[Blocking[Any]] = weakref.WeakSet()


def _close_all() -> None:
    for each in list(_OPEN):
        with suppress(RuntimeError):  # Python 3.12 starts no thread then, and an event loop ends with one
            each.close()


# At the end of the main thread, before the pools of threads end: work that needs one would fail, and that be recorded.
threading._register_atexit(_close_all)  # type: ignore[attr-defined]  # private; there is no public way


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _refuse_in_a_loop() -> None:
    """Raise RuntimeError where a loop runs in this thread: a call would stop it. A notebook runs each cell in a loop,
    which waits for the cell in any case."""
    notebook = sys.modules.get("IPython")
    if _in_a_loop() and (notebook is None or notebook.get_ipython() is None):
        raise RuntimeError(
            f"a call of weft.open_sync() would stop the event loop that runs in this thread: {OTHERWISE}"
        )
