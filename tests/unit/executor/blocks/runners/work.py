"""Functions that tests run in other processes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from executor.errors import BlockError
from executor.kernel.handler.base import context


def double(n: int) -> dict[str, int]:
    return {"twice": 2 * n, "pid": os.getpid()}


async def soon(n: int) -> int:
    return n + 1


def die(times: int = 1 << 30, seen: str = "", ctx: Any = None) -> str:
    """Ends its process by SIGKILL, as running out of memory does, the first `times` times."""
    if ctx is not None:
        ctx.log("attempt", ctx.attempt)
    if seen:
        with Path(seen).open("a") as file:
            file.write(f"{os.getpid()}\n")
        if len(Path(seen).read_text().split()) > times:
            return "alive"
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


def leave() -> None:
    sys.exit("that was all")


def large(size: int) -> str:
    return "x" * size


def not_json() -> Any:
    return {1, 2}


def sleep(seconds: float, seen: str) -> None:
    """Writes its pid first, and its end."""
    Path(seen).write_text(str(os.getpid()))
    time.sleep(seconds)
    Path(seen).write_text("ended")


def tell(ctx: Any) -> list[Any]:
    before = ctx.last_checkpoint
    for n in range(3):
        ctx.log("line", n)
    ctx.emit("live")
    ctx.checkpoint_from_thread({"at": 3})
    return [before, ctx.idempotency_key, ctx.attempt, ctx.run_id]


def tell_by_context() -> list[Any]:
    context().log("line")
    return [context().idempotency_key, context().attempt]


async def checkpoint_too_large(ctx: Any) -> None:
    await ctx.checkpoint("x" * (2 * 1024 * 1024))


def spin(ms: int, n: int = 0) -> int:
    """Computes for so many milliseconds of this process's time."""
    until = time.process_time() + ms / 1000
    while time.process_time() < until:
        pass
    return n


def evaluate(ctx: Any) -> None:
    ctx.evaluate([])


_released = threading.Event()
_left: list[threading.Thread] = []
_said: list[str] = []


def leave_a_thread(ctx: Any) -> None:
    """Leaves a thread that continues when `release` is called."""

    def body() -> None:
        _released.wait(60)
        ctx.log("late")
        try:
            ctx.checkpoint_from_thread("late")
        except BlockError as error:
            _said.append(error.code)

    _left.append(threading.Thread(target=body))
    _left[0].start()


def release() -> list[str]:
    _released.set()
    _left[0].join(60)
    return _said
