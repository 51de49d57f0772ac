"""Threads of plain functions: how many, and what becomes of those nothing waits for."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from executor.errors import BlockError
from executor.kernel.process.threads import FunctionThreads, aside
from tests.support.until import until


async def leave_behind(threads: FunctionThreads, free: threading.Event) -> None:
    begun = threading.Event()

    def work() -> None:
        begun.set()
        free.wait(60)

    call = asyncio.create_task(threads.call(work, function="hold", about="run a, block b"))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    call.cancel()
    await asyncio.wait([call])


async def test_what_returns_and_what_raises() -> None:
    threads = FunctionThreads()
    assert await threads.call(lambda: threading.current_thread().daemon, function="f", about="") is True
    with pytest.raises(ZeroDivisionError):
        await threads.call(lambda: 1 // 0, function="f", about="")
    with pytest.raises(SystemExit):
        await threads.call(lambda: exec("raise SystemExit(3)"), function="f", about="")
    assert threads.held() == []


async def test_a_call_that_was_left_behind_gives_its_place_to_the_next() -> None:
    threads, free = FunctionThreads(running_max=1), threading.Event()
    try:
        await leave_behind(threads, free)
        (held,) = threads.held()
        assert (held.function, held.about, held.left_behind) == ("hold", "run a, block b", True)
        assert held.seconds >= 0
        assert await threads.call(lambda: "next", function="f", about="") == "next"
    finally:
        free.set()
    await until(lambda: not (threads.held()))


async def test_too_many_left_behind_is_an_error_until_one_returns() -> None:
    threads, free = FunctionThreads(left_behind_max=2), threading.Event()
    try:
        for _ in range(2):
            await leave_behind(threads, free)
        with pytest.raises(BlockError, match=r"2 abandoned calls are still running .*\(hold\)") as caught:
            await threads.call(lambda: None, function="f", about="")
        assert (caught.value.code, caught.value.retryable) == ("functions_left_behind", True)
    finally:
        free.set()
    await until(lambda: not (threads.held()))
    assert await threads.call(lambda: 1, function="f", about="") == 1


async def test_a_call_waits_for_a_place() -> None:
    threads, free = FunctionThreads(running_max=1), threading.Event()
    waits: list[str] = []

    @contextmanager
    def waiting() -> Iterator[None]:
        waits.append("begun")
        yield
        waits.append("over")

    first = asyncio.create_task(threads.call(lambda: free.wait(60), function="f", about="", waiting=waiting))
    await asyncio.sleep(0)
    second = asyncio.create_task(threads.call(waits.copy, function="f", about="", waiting=waiting))
    while not waits:
        await asyncio.sleep(0.001)
    free.set()
    assert await first is True
    assert await second == ["begun", "over"]


async def test_work_aside_ends_in_a_forked_process_too() -> None:
    """As that of `weft.testing.crash_everywhere`, which has none of the threads of the process before."""
    assert await aside(lambda: 1) == 1
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10)  # ends a process that waits for a thread
        threads = ThreadPoolExecutor(1)
        os._exit(threads.submit(asyncio.run, aside(lambda: 7)).result())
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
