"""Due times of one run: they become facts, or messages where a row decides."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from executor.errors import StoreError
from executor.kernel.core import commands as c
from executor.kernel.core import facts as f
from executor.kernel.core import messages as m
from executor.kernel.process.repeated import OUTAGE
from executor.kernel.run.inbox import Inbox
from executor.kernel.run.loaded import LoadedRun
from executor.kernel.run.parts import Parts
from executor.kernel.run.results import Arrivals, Payload, assigned
from executor.kernel.values.payload import encode as encode_payload

log = logging.getLogger("weft.run")


RETRY_EXPIRY_MS = 1_000


class Deadlines:
    def __init__(self, run: LoadedRun, parts: Parts, inbox: Inbox, arrivals: Arrivals) -> None:
        self._run = run
        self._store = parts.store
        self._timers = parts.timers
        self._clock = parts.clock
        self._inbox = inbox
        self._arrivals = arrivals
        self._numbers: set[int] = set()  # of the timers that are set
        self._expiries: set[asyncio.Task[None]] = set()

    def set(self, command: c.SetTimer) -> None:
        """The result comes when it is due."""
        self._set(command.due_ms, lambda: self._due(command))

    def close(self) -> None:
        for number in self._numbers:
            self._timers.cancel(number)
        for task in self._expiries:
            task.cancel()

    def _set(self, due_ms: int, callback: Callable[[], None]) -> None:
        number = 0
        numbers = self._numbers

        def fire() -> None:
            numbers.discard(number)
            callback()

        number = self._timers.set(due_ms, fire)
        numbers.add(number)

    def _due(self, command: c.SetTimer) -> None:
        key = command.key
        wait = self._run.state.wait_of(key, command.attempt)
        if wait is not None and wait.due_ms != command.due_ms:
            return  # of the retry that led to this attempt, which began sooner; the wait has a timer of its own
        if wait is not None and wait.kind != "timer":
            # An answer may be on its way: the row decides which was first, and a message brings its decision.
            wait_id = self._run.codec.wait_id(key, wait.attempt)
            task = asyncio.create_task(self._expire(command, wait_id, by_row=wait.kind != "signal"))
            self._expiries.add(task)
            task.add_done_callback(self._expiries.discard)
            return
        at_ms = max(self._clock.now_ms(), command.due_ms)
        payload = Payload()
        if wait is not None:
            output = {"status": "completed", "due_ms": command.due_ms, "resumed_ms": at_ms}
            payload = Payload(encode_payload(output))
            if wait.step is None:
                payload.patches = assigned(self._run.plan.nodes[key[1]], output)
        self._arrivals.add(f.TimerFired(at_ms, key, command.attempt), payload)

    async def _expire(self, command: c.SetTimer, wait_id: str, by_row: bool) -> None:
        """Not `by_row`: the run itself takes signals, so the order of its own facts decides, and its append closes the
        row."""
        now_ms = self._clock.now_ms()
        expired = m.encode(m.Expired(wait_id, now_ms))
        try:
            if by_row:
                await self._store.expire_wait(self._run.id, wait_id, expired, now_ms)
            else:
                await self._store.post_message(self._run.id, expired, now_ms)
        except StoreError as error:
            OUTAGE.log(log, error, "waits could not be expired")
            self._set(now_ms + RETRY_EXPIRY_MS, lambda: self._due(command))
            return
        self._inbox.changed()
