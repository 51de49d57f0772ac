"""The loop of a durable function: what is ready runs in order, timers are waits, and nothing reaches outside."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from executor.errors import NotDeterministic
from executor.kernel.handler.base import Leaving
from executor.kernel.run.lane import Lane


class Driven:
    """A lane whose timers and futures the test ends. It stands at second 100."""

    def __init__(self) -> None:
        self.now_ms = 100_000
        self.timers: dict[int, asyncio.Future[Any]] = {}
        self.lane = Lane(self._timer, lambda: self.now_ms)  # type: ignore[abstract]  # it has all methods

    def _timer(self, due_ms: int) -> asyncio.Future[Any]:
        self.timers[due_ms] = self.lane.create_future()
        return self.timers[due_ms]

    def begin(self, main: Callable[[], Coroutine[Any, Any, Any]]) -> asyncio.Task[Any]:
        task = self.lane.create_task(main())
        self.lane.run_idle()
        return task

    def fire(self, due_ms: int) -> None:
        self.now_ms = due_ms
        self.timers.pop(due_ms).set_result(None)
        self.lane.run_idle()


def test_tasks_run_in_the_order_in_which_what_they_await_ends() -> None:
    driven, seen = Driven(), list[str]()
    futures = [driven.lane.create_future() for _ in range(3)]

    async def branch(n: int) -> None:
        seen.append(f"{n} begins")
        seen.append(f"{n} has {await futures[n]}")

    async def main() -> None:
        await asyncio.gather(*(branch(n) for n in range(3)))

    task = driven.begin(main)
    for n in (2, 0, 1):
        futures[n].set_result(f"r{n}")
        driven.lane.run_idle()
    assert seen == ["0 begins", "1 begins", "2 begins", "2 has r2", "0 has r0", "1 has r1"]
    assert task.done()


def test_sleep_and_timeout_of_asyncio_are_timers_of_the_lane() -> None:
    driven = Driven()

    async def main() -> str:
        await asyncio.sleep(5)
        try:
            async with asyncio.timeout(10):
                await driven.lane.create_future()
        except TimeoutError:
            return f"late at {asyncio.get_running_loop().time():g}"
        return "in time"

    task = driven.begin(main)
    assert list(driven.timers) == [105_000]
    driven.fire(105_000)
    assert list(driven.timers) == [115_000]
    driven.fire(115_000)
    assert task.result() == "late at 115"


@pytest.mark.parametrize(("due_ms", "outer"), [(101_000, True), (102_000, False)])
def test_of_nested_timeouts_the_one_that_is_due_ends_its_own_block(due_ms: int, outer: bool) -> None:
    driven = Driven()

    async def main() -> list[str]:
        seen = []
        try:
            async with asyncio.timeout(1):
                try:
                    async with asyncio.timeout(2):
                        await driven.lane.create_future()
                except TimeoutError:
                    seen.append("inner")
        except TimeoutError:
            seen.append("outer")
        return seen

    task = driven.begin(main)
    driven.fire(due_ms)
    assert task.result() == (["outer"] if outer else ["inner"])


def test_the_timer_of_a_block_that_ended_in_time_is_cancelled() -> None:
    driven = Driven()

    async def main() -> None:
        async with asyncio.timeout(10):
            await asyncio.sleep(0)

    task = driven.begin(main)
    driven.lane.run_idle()
    assert task.done() and driven.timers[110_000].cancelled()


def test_queues_locks_and_groups_of_asyncio_work() -> None:
    driven, done = Driven(), list[str]()
    futures = [driven.lane.create_future() for _ in range(4)]

    async def main() -> list[str]:
        todo: asyncio.Queue[int] = asyncio.Queue()
        gate = asyncio.Semaphore(2)

        async def worker(name: str) -> None:
            while not todo.empty():
                n = todo.get_nowait()
                async with gate:
                    await futures[n]
                    done.append(f"{name}{n}")

        for n in range(4):
            await todo.put(n)
        async with asyncio.TaskGroup() as group:
            for name in "abc":
                group.create_task(worker(name))
        return done

    task = driven.begin(main)
    for n in (1, 0, 3, 2):
        futures[n].set_result(None)
        driven.lane.run_idle()
    assert task.result() == ["b1", "a0", "b3", "c2"]


def test_an_error_in_a_group_cancels_the_others() -> None:
    driven, seen = Driven(), list[str]()
    never, fails = driven.lane.create_future(), driven.lane.create_future()

    async def waits() -> None:
        try:
            await never
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(waits())
            await fails

    task = driven.begin(main)
    fails.set_exception(ValueError("no"))
    driven.lane.run_idle()
    error = task.exception()
    assert isinstance(error, ExceptionGroup) and [str(one) for one in error.exceptions] == ["no"]
    assert seen == ["cancelled"] and never.cancelled()


def test_the_end_runs_finally_and_lets_nothing_more_begin() -> None:
    driven, seen = Driven(), list[str]()

    async def inner() -> None:
        try:
            await driven.lane.create_future()
        except Exception:
            seen.append("an except Exception sees it")
        finally:
            seen.append("inner")
            await asyncio.sleep(0)  # it waits again: that is ended as well
            seen.append("continues")

    async def main() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(inner())
                await driven.lane.create_future()
        finally:
            seen.append("main")

    task = driven.begin(main)
    driven.lane.end()
    assert sorted(seen) == ["inner", "main"]
    assert not task.done()


def test_leaving_is_no_exception_that_code_catches() -> None:
    assert not issubclass(Leaving, Exception) and not issubclass(NotDeterministic, Exception)


async def _thread() -> Any:
    return await asyncio.to_thread(os.getpid)


async def _connection() -> Any:
    return await asyncio.open_connection("127.0.0.1", 9)


async def _program() -> Any:
    return await asyncio.create_subprocess_exec("true")


async def _from_a_thread() -> Any:
    return asyncio.get_running_loop().call_soon_threadsafe(print)


@pytest.mark.parametrize("main", [_thread, _connection, _program, _from_a_thread])
def test_what_goes_outside_is_refused_also_if_the_code_catches_it(
    main: Callable[[], Coroutine[Any, Any, Any]],
) -> None:
    driven = Driven()

    async def catching() -> str:
        try:
            await main()
        except BaseException as error:
            return str(error)
        return "it was done"

    task = driven.begin(catching)
    assert "@weft.step" in task.result()
    assert isinstance(driven.lane.refused, NotDeterministic)


def test_every_method_of_a_loop_is_there_or_refused() -> None:
    """One that is not would raise a bare NotImplementedError."""
    base = asyncio.AbstractEventLoop
    known = {"close", "shutdown_asyncgens", "shutdown_default_executor", "stop", "set_debug", "set_task_factory"}
    known |= {
        "set_exception_handler",
        "default_exception_handler",
        "set_default_executor",
        "remove_reader",
        "remove_writer",
    }
    missing = {name for name in vars(base) if not name.startswith("__") and name not in vars(Lane)} - known
    assert missing == set()


def test_a_group_cancels_its_tasks_in_the_same_order_each_time() -> None:
    def cancelled() -> list[int]:
        driven, seen = Driven(), list[int]()

        async def waits(n: int) -> None:
            try:
                await driven.lane.create_future()
            finally:
                seen.append(n)

        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                for n in range(20):
                    group.create_task(waits(n))

        driven.begin(main).cancel()
        driven.lane.run_idle()
        return seen

    kept = [cancelled() for _ in range(5)]  # the objects of all have different addresses
    assert len(kept[0]) == 20 and all(seen == kept[0] for seen in kept)
