"""Wake-ups between the processes on a database: receives messages from the bus and wakes what they concern here.

The bus gives no guarantee of delivery: it joins and drops messages as it likes. `Peers` has what is sent.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import orjson

from executor.kernel.read import peers as topics
from executor.kernel.run.parts import Parts

log = logging.getLogger("weft.bus")

Message = tuple[str, str]  # topic and item, see `peers`
# Idle workers that are woken for the same runs look one after the other: the first ones take them all.
LOOK_WITHIN_S: Final = 0.01


class Bus(Protocol):
    def open(self, receive: Callable[[Sequence[Message]], None], connected: Callable[[], None]) -> None:
        """Begin to connect, and return at once. Both functions are called on the running event loop: `receive` gets
        messages of other processes, `connected` is called when some may have been missed."""

    def post(self, topic: str, item: str) -> None:
        """Queue a message for the other processes. Never waits, never raises; equal messages are joined."""

    async def close(self) -> None:
        """Send what is queued, as far as that is possible."""


class Wakes:
    """Between a bus and the parts of a process. `works`: it claims runs; `look`: for what was committed to a run that
    is read here, or to all of them; `schedules`: they have changed."""

    def __init__(
        self, bus: Bus, parts: Parts, *, works: bool, look: Callable[[str | None], None], schedules: Callable[[], None]
    ) -> None:
        self._bus = bus
        self._hub = parts.hub
        self._owned = parts.owned
        self._peers = parts.peers
        self._works = works
        self._look = look
        self._schedules = schedules
        self._places = parts.places
        self._claiming: asyncio.TimerHandle | None = None

    def open(self) -> None:
        self._peers.connect(self._bus.post)
        self._bus.open(self.receive, self.connected)

    async def close(self) -> None:
        if self._claiming is not None:
            self._claiming.cancel()
        await self._bus.close()

    def connected(self) -> None:
        """Handle a connection, the first or another: any message may have been missed."""
        self._peers.forget_sent()
        self._look(None)
        self._places.receive()
        if self._works:
            self._owned.due.set()
            self._wake_senders()
            self._schedules()

    def receive(self, messages: Sequence[Message]) -> None:
        for topic, item in messages:
            match topic:
                case topics.RUN:
                    self._look(item)
                case topics.LEFT:
                    self._hub.texts.forget(item)
                    self._look(item)
                    self._owned.left_elsewhere(item)
                case topics.INBOX:
                    loop = self._owned.loops.get(item)
                    if loop is not None:
                        loop.inbox_changed()
                    else:
                        self._claim_soon()
                case topics.DUE:
                    self._claim_soon()
                case topics.FAMILY:
                    self._owned.end_family(item)
                case topics.FOLLOW:
                    self._peers.followed_again(item)
                    if item in self._owned.loops:  # what was committed before this was received
                        self._peers.grown(item)
                case topics.PLACES:
                    self._places.receive(item)
                case topics.MESSAGES:
                    self._wake_senders()
                case topics.SCHEDULES if self._works:
                    self._schedules()
                case topics.TEXT:
                    self._text(item)
                case _:  # of a newer version
                    pass

    def _text(self, item: str) -> None:
        try:
            run, key, seq, text, _ = orjson.loads(item)
        except ValueError:  # of another version, which cuts differently
            return
        self._hub.delta_elsewhere(run, key, text, seq)

    def _wake_senders(self) -> None:
        self._hub.messages.set()
        self._hub.alerts.set()

    def _claim_soon(self) -> None:
        if self._works and self._claiming is None:
            delay_s = random.uniform(0, LOOK_WITHIN_S)
            self._claiming = asyncio.get_running_loop().call_later(delay_s, self._claim)

    def _claim(self) -> None:
        self._claiming = None
        self._owned.due.set()
