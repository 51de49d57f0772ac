"""Python functions that a server of these tests offers."""

import time


def quick() -> str:
    return "done"


def asleep(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"


def spin() -> None:
    while True:
        pass


async def block() -> None:
    while True:
        pass
