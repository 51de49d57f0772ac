"""`policy.runner: process`: functions in child processes, one attempt at a time in each. A child whose attempt was
cancelled, or is over its time, is killed at once; the next call gets a new one.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import orjson

from executor.blocks.runners import call as calls
from executor.blocks.runners import far
from executor.blocks.runners.children import IDLE_S, Child, Children
from executor.errors import BlockError, Fenced, Lost


class ProcessRunner:
    """`most`: children at the same time; one for each core if it is not set. Belongs to the event loop of its first
    call."""

    def __init__(self, most: int | None = None, *, idle_s: float = IDLE_S) -> None:
        self.most = most or os.cpu_count() or 1
        self._children = Children(_start, self.most, idle_s=idle_s)

    async def call(self, call: calls.Call, listener: calls.Listener) -> Any:
        """See `blocks.runners.call.Runner`. Runs take turns. The wait for a child is outside the time limit."""
        async with self._children.one(call.run_id, listener.waiting) as child:
            answer = await _answer(child, call, listener)
        return calls.result_of(answer)

    async def close(self) -> None:
        await self._children.close()


async def _start() -> Child:
    if far.is_child.is_set():
        sys.exit("the main module starts weft again when a child process imports it")
    try:
        child, _ = await Child.start(far.__name__, orjson.dumps(_main()).decode())
    except OSError as error:
        raise BlockError(
            f"the child process did not start: {error}",
            code="runner_unavailable",
            deferred="not_begun",
            hint='a program that embeds weft must start it below `if __name__ == "__main__":`',
        ) from error
    return child


def _main() -> dict[str, Any]:
    """Return the main module of this process, as `multiprocessing.spawn.prepare` takes it."""
    main = sys.modules["__main__"]
    name, path = getattr(main.__spec__, "name", None), getattr(main, "__file__", None)
    place = {"init_main_from_name": name} if name else {"init_main_from_path": os.path.abspath(path)} if path else {}
    return {"sys_argv": sys.argv, **place}


async def _answer(child: Child, call: calls.Call, listener: calls.Listener) -> calls.Answer:
    """Raises Lost, and BlockError: the function was not called."""
    has_begun = False
    try:
        await child.send(calls.encode(call))
        while not isinstance(message := calls.decode_message(await child.receive()), calls.Answer):
            has_begun = True
            if message.kind == "checkpoint":
                await child.send(calls.encode(await _stored(message, listener)))
            elif message.kind != "begun":
                (listener.log if message.kind == "log" else listener.emit)(message.value)
        return message
    except (OSError, EOFError):
        how = f"ended: {await child.ended()}"
    except ValueError as error:
        how = f"was lost: {error}"
    listener.log(f"(the child process {child.pid} {how})")
    message = f"the child process of the attempt {how}"
    raise Lost(message) if has_begun else calls.not_called(message)


async def _stored(report: calls.Report, listener: calls.Listener) -> calls.Failure | None:
    try:
        await listener.checkpoint(report.value)
    except (BlockError, Fenced) as error:
        return calls.failure_of(error)
    return None
