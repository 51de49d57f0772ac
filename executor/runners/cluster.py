"""What runs on the scheduler and the workers of a Dask cluster. weft is installed there, too.

The scheduler repeats a task whose worker has died. Whether a function may be called again is the plan's to decide, and
the next call is another attempt: so each execution asks the scheduler first, and only the first one is permitted.
"""

from __future__ import annotations

from typing import Any

import msgspec
from distributed import Scheduler, Worker, get_worker
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.utils import sync

from executor.errors import BlockError
from executor.runners.call import Said
from executor.runners.far import carry_out

CLAIM = "weft_claim"
KNOWN = "weft_known"
BEGUN_BEFORE = b""


class Claims(SchedulerPlugin):
    """On the scheduler: the tasks that have begun, and who hears of them, until they are forgotten there."""

    name = "weft-claims"
    idempotent = True

    def __init__(self) -> None:
        self._begun: dict[Any, str] = {}

    async def start(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        scheduler.handlers[CLAIM] = self.claim
        scheduler.handlers[KNOWN] = self.known

    def claim(self, key: Any, topic: str) -> bool:
        """Whether this is the first execution. A task that is forgotten, as it was cancelled or lost, does not begin:
        a worker may have it all the same, and nothing here knows any more whether it began before."""
        key = tuple(key)
        if key in self._begun or key not in self._scheduler.tasks:
            return False
        self._begun[key] = topic
        self._tell(key, begun=True)
        return True

    def known(self, key: Any) -> bool:
        """Whether the task has come in, and can be cancelled."""
        return tuple(key) in self._scheduler.tasks

    def transition(self, key: Any, start: Any, finish: Any, *args: Any, **more: Any) -> None:
        if key not in self._begun:
            return
        if finish == "forgotten":
            del self._begun[key]
        elif finish == "released" and start in ("processing", "memory"):
            self._tell(key, lost=True)  # with its worker; or it was cancelled, and this is of no interest

    def restart(self, scheduler: Scheduler) -> None:
        self._begun.clear()

    def _tell(self, key: Any, **what: bool) -> None:
        self._scheduler.log_event(self._begun[key], {"key": list(key), **what})


def execute(call: bytes, key: tuple[str, str, int], topic: str) -> bytes:
    """On a worker, in one of its threads: see `carry_out`. BEGUN_BEFORE: it was not called, for it was called once."""
    worker = get_worker()
    claim = getattr(worker.scheduler, CLAIM)
    if not sync(worker.loop, claim, key=list(key), topic=topic):
        return BEGUN_BEFORE
    return carry_out(call, _EventVoice(worker, key, topic))


class _EventVoice:
    """By way of the scheduler, in order with the result."""

    def __init__(self, worker: Worker, key: tuple[str, str, int], topic: str) -> None:
        self._worker = worker
        self._key = list(key)
        self._topic = topic

    def say(self, said: Said) -> None:
        self._worker.log_event(self._topic, {"key": self._key, "said": msgspec.to_builtins(said)})

    def ask(self, said: Said) -> None:
        if said.kind == "checkpoint":
            raise BlockError(
                "checkpoints are not available on a Dask cluster",
                code="runner_unfit",
                retryable=False,
                hint="use policy.runner: process, or split the work into several blocks",
            )
