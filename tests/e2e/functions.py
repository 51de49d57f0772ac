"""Python functions that a server of these tests offers."""

import asyncio
import time


def quick() -> str:
    return "done"


def asleep(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"


def spin() -> None:
    while True:
        pass


async def aside() -> None:
    await asyncio.to_thread(time.sleep, 600)


async def block() -> None:
    while True:
        pass


async def stand_still() -> None:
    time.sleep(4)
