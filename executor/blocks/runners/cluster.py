"""The code that runs on the scheduler and the workers of a Dask cluster. weft is installed there, too.

The scheduler repeats a task whose worker has died. Only the plan may decide that a function is called again, and the
next call is another attempt: so each execution asks the scheduler first, and only the first one is permitted. It is
permitted by the client, which has noted by then that the function is called: if a task is lost before, the function was
not called.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from distributed import Scheduler, Worker, get_worker
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.utils import sync

from executor.blocks.runners.call import Report
from executor.blocks.runners.far import carry_out
from executor.errors import BlockError

CLAIM = "weft_begin"
PERMIT = "weft_permit"
KNOWN = "weft_known"
BEGUN_BEFORE = b""


class Claims(SchedulerPlugin):
    """On the scheduler: the tasks that have begun, or wait for the permission of their client, and its topic."""

    name = "weft-begins"
    idempotent = True

    def __init__(self) -> None:
        self._begun: dict[Any, tuple[str, asyncio.Future[bool]]] = {}

    async def start(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        scheduler.handlers[CLAIM] = self.claim
        scheduler.handlers[PERMIT] = self.permit
        scheduler.handlers[KNOWN] = self.known

    async def claim(self, key: Any, topic: str) -> bool:
        """Return True if this is the first execution, and the client has noted it. A task that the scheduler has
        forgotten does not begin: it may have begun before."""
        key = tuple(key)
        if key in self._begun or key not in self._scheduler.tasks:
            return False
        permitted = asyncio.get_running_loop().create_future()
        self._begun[key] = topic, permitted
        self._tell(key, begun=True)
        return await permitted

    def permit(self, key: Any) -> None:
        """Called by the client when it has noted that the function is called."""
        self._decide(self._begun.get(tuple(key)), True)

    def known(self, key: Any) -> bool:
        return tuple(key) in self._scheduler.tasks

    def transition(self, key: Any, start: Any, finish: Any, *args: Any, **more: Any) -> None:
        if key not in self._begun:
            return
        if finish == "forgotten":
            self._decide(self._begun.pop(key), False)
        elif finish == "released" and start in ("processing", "memory"):
            self._tell(key, lost=True)  # with its worker; or it was cancelled, and this is of no interest

    def restart(self, scheduler: Scheduler) -> None:
        for asked in self._begun.values():
            self._decide(asked, False)
        self._begun.clear()

    def _decide(self, asked: tuple[str, asyncio.Future[bool]] | None, permitted: bool) -> None:
        if asked is not None and not asked[1].done():
            asked[1].set_result(permitted)

    def _tell(self, key: Any, **what: bool) -> None:
        self._scheduler.log_event(self._begun[key][0], {"key": list(key), **what})


def execute(call: bytes, key: tuple[str, str, int], topic: str) -> bytes:
    """On a worker, in one of its threads: see `carry_out`. Returns BEGUN_BEFORE if it was not called here."""
    worker = get_worker()
    claim = getattr(worker.scheduler, CLAIM)
    if not sync(worker.loop, claim, key=list(key), topic=topic):
        return BEGUN_BEFORE
    return carry_out(call, _EventVoice(worker, key, topic))


class _EventVoice:
    """Sends messages by way of the scheduler, in order with the result."""

    def __init__(self, worker: Worker, key: tuple[str, str, int], topic: str) -> None:
        self._worker = worker
        self._key = list(key)
        self._topic = topic

    def report(self, report: Report) -> None:
        self._worker.log_event(self._topic, {"key": self._key, "report": msgspec.to_builtins(report)})

    def ask(self, report: Report) -> None:
        raise BlockError(
            "checkpoints are not available on a Dask cluster",
            code="runner_unfit",
            retryable=False,
            hint="use policy.runner: process, or split the work into several blocks",
        )
