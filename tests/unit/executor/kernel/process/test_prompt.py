from __future__ import annotations

import asyncio
from contextvars import Context, ContextVar

import pytest

from executor.kernel.process.prompt import Prompt


def prompt() -> Prompt[int]:
    return Prompt(asyncio.get_running_loop())


async def settled(future: Prompt[int], result: int, error: BaseException | None = None) -> None:
    """In a callback, as the writer does it; returns in the same pass of the loop."""
    done = asyncio.Event()

    def settle() -> None:
        future.settle(result, error)
        done.set()

    asyncio.get_running_loop().call_soon(settle)
    await done.wait()


async def test_who_awaits_it_continues_in_the_callback_that_settles_it() -> None:
    future, seen = prompt(), list[int]()

    async def wait() -> None:
        seen.append(await future)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    at_once: list[list[int]] = []

    def settle() -> None:
        future.settle(7, None)
        at_once.append(list(seen))

    asyncio.get_running_loop().call_soon(settle)
    await task
    assert at_once == [[7]]


async def test_who_awaits_it_continues_in_its_own_context() -> None:
    """An empty one counts as false: what was set behind the await was then set in another one."""
    future, variable = prompt(), ContextVar("variable", default=0)

    async def wait() -> None:
        await future
        token = variable.set(1)
        await asyncio.sleep(0)
        variable.reset(token)

    task = Context().run(asyncio.create_task, wait())
    await asyncio.sleep(0)
    await settled(future, 7)
    await task


async def test_an_error_is_raised_where_it_is_awaited() -> None:
    future = prompt()
    task = asyncio.ensure_future(asyncio.wait_for(future, 30))
    await asyncio.sleep(0)
    await settled(future, 0, ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await task


async def test_one_that_was_settled_before_is_awaited_as_any_other() -> None:
    future = prompt()
    await settled(future, 7)
    assert await future == 7
    called: list[object] = []
    future.add_done_callback(called.append)
    assert called == []
    await asyncio.sleep(0)
    assert called == [future]


async def test_a_caller_that_was_cancelled_gets_nothing() -> None:
    future = prompt()

    async def wait() -> int:
        return await future

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    await settled(future, 7)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert future.cancelled()


async def test_several_may_wait_and_some_may_leave() -> None:
    future, called = prompt(), list[object]()
    future.add_done_callback(called.append)
    future.add_done_callback(print)
    assert future.remove_done_callback(print) == 1
    done = asyncio.wait([future], timeout=30)
    await settled(future, 7)
    assert called == [future]
    assert (await done)[0] == {future}
