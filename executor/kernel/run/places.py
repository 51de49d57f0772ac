"""Places of limits of blocks (`policy.limit`): attempts of this process that wait for one.

An attempt asks the store before its handler begins, and waits outside its time limit. A place that becomes free is
given to the attempt that has waited longest, in any process: at once by the process in which an attempt has ended, if
attempts wait there as well; others are woken by the bus, and look from time to time in any case, as long as attempts
wait here. A look costs the same however many wait.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from executor.errors import BlockError, Fenced, StoreError
from executor.kernel.process.repeated import OUTAGE
from executor.kernel.read.peers import PLACES, Peers
from executor.kernel.read.watchers import Bell
from executor.kernel.store.topics.places import Ask, Assigned
from executor.kernel.store.topics.store import Store

log = logging.getLogger("weft.places")

ASKS_MAX: Final = 64  # of one transaction
LOOK_S: Final = 5.0  # messages of a bus may be lost
LOOK_WITHOUT_BUS_S: Final = 1.0  # what this process commits it knows at once; this is for other ones
AGAIN_S: Final = 0.01  # another process was looking
FAILED_S: Final = 0.5  # the database failed


class Place(NamedTuple):
    """The place of an attempt that has one or waits for one; the append that ends the attempt leaves it."""

    node: str
    attempt: int
    key: str


class Waiting:
    """An attempt that wants a place. `asked`: the store knows it by `number`. `begins`: it has the place. `left`: the
    attempt has ended, and must not ask any more."""

    __slots__ = ("ask", "asked", "begins", "left", "number")

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.number = 0
        self.left = False
        self.asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.begins: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def leave(self) -> Place:
        self.left = True
        return Place(self.ask.node, self.ask.attempt, self.ask.key)

    def fail(self, error: Exception) -> None:
        for future in (self.asked, self.begins):
            if not future.done():
                future.set_exception(error)
                future.exception()  # who waits may be gone


class Places:
    """One for a process. `name`: by which the store knows it."""

    def __init__(self, store: Store, peers: Peers, name: str | None = None) -> None:
        self.name = name or f"p-{secrets.token_hex(6)}"
        self._store = store
        self._peers = peers
        self._asks: list[Waiting] = []
        self._waiting: dict[int, Waiting] = {}  # by number
        self._keys: Counter[str] = Counter()  # of those that wait here
        self._free: set[str] = set()  # keys with places to assign
        self._told: set[str] = set()  # keys that may have them, by messages of others
        self._bell = Bell()
        self._task: asyncio.Task[None] | None = None
        self._pause_until_s = 0.0
        self._closed = False

    def __len__(self) -> int:
        return len(self._asks) + len(self._waiting)

    async def claim(self, waiting: Waiting) -> None:
        """Returns when the attempt may begin. Raises Fenced, and BlockError when the process stops before that.
        Whatever comes of it, the attempt has to leave the place."""
        key = waiting.ask.key
        if self._closed:
            raise _not_begun(key)
        self._asks.append(waiting)
        self._keys[key] += 1
        self._ring()
        try:
            await self._asked(waiting)
            await waiting.begins
        finally:
            self._keys[key] -= 1
            if not self._keys[key]:
                del self._keys[key]
            if waiting in self._asks:  # once more, after the database failed
                self._asks.remove(waiting)
            if self._waiting.get(waiting.number) is waiting:
                del self._waiting[waiting.number]

    async def _asked(self, waiting: Waiting) -> None:
        """Wait until the request is stored, even if cancelled: the release must be written after it."""
        try:
            await asyncio.shield(waiting.asked)
        except asyncio.CancelledError:
            if waiting not in self._asks:
                await asyncio.wait([waiting.asked])
            raise

    def release(self, keys: Iterable[str]) -> None:
        """Free the places of attempts whose end is on disk."""
        for key in keys:
            if key in self._keys:
                self._free.add(key)
                self._ring()
            self._peers.notify(PLACES, key)

    def receive(self, key: str | None = None) -> None:
        """Note that places with the key are free, or reserved for this process. With None any key may be."""
        self._told.update(self._keys if key is None else {key} & self._keys.keys())
        if self._told:
            self._ring()

    def close(self) -> None:
        """End those that wait, as not begun: the process stops."""
        self._closed = True
        for waiting in (*self._asks, *self._waiting.values()):
            waiting.fail(_not_begun(waiting.ask.key))
        self._asks.clear()

    async def stop(self) -> None:
        self.close()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    # --- one task, as long as any wait

    def _ring(self) -> None:
        self._bell.ring()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work(), name="places")

    async def _work(self) -> None:
        while self._asks or self._waiting:
            try:
                await self._poll()
            except StoreError as error:
                OUTAGE.log(log, error, "places of limits could not be assigned")
                # The places may be assigned on disk although the answer was lost: asking again returns them.
                self._asks = [*self._waiting.values(), *self._asks]
                self._waiting.clear()
                await asyncio.sleep(FAILED_S)

    async def _poll(self) -> None:
        if self._asks:
            await self._ask()
        elif self._free and self._pause_until_s <= _now_s():
            keys, self._free = self._free & self._keys.keys(), set()
            if keys:
                self._assigned(sorted(keys), await self._store.assign_places(self.name, sorted(keys)))
        elif self._told:
            keys, self._told = self._told & self._keys.keys(), set()
            self._free.update(await self._store.places_to_assign(self.name, sorted(keys)))
        else:
            await self._rest()

    async def _rest(self) -> None:
        self._bell.clear()
        look_s = LOOK_S if self._peers.is_connected else LOOK_WITHOUT_BUS_S
        until_s = self._pause_until_s if self._free else _now_s() + look_s
        try:
            async with asyncio.timeout_at(until_s):
                await self._bell.wait()
        except TimeoutError:
            if not self._free:
                self._told.update(self._keys)

    async def _ask(self) -> None:
        asks = self._asks[:ASKS_MAX]
        del self._asks[: len(asks)]
        for waiting in asks:
            if waiting.left:  # left over, while the database could not be written to
                waiting.fail(_not_begun(waiting.ask.key))
        asks = [waiting for waiting in asks if not waiting.left]
        if not asks:
            return
        try:
            assigned = await self._store.ask_places(self.name, [waiting.ask for waiting in asks])
        except BaseException:
            self._asks[:0] = asks
            raise
        for waiting, number in zip(asks, assigned.asked, strict=True):
            if number is None:
                waiting.fail(Fenced(f"run {waiting.ask.run_id}: epoch {waiting.ask.epoch} is no longer current"))
                continue
            waiting.number = number
            if not waiting.asked.done():
                waiting.asked.set_result(None)
            if self._closed:
                waiting.fail(_not_begun(waiting.ask.key))
            else:
                self._waiting[number] = waiting
        self._assigned(sorted({waiting.ask.key for waiting in asks}), assigned)

    def _assigned(self, keys: list[str], assigned: Assigned) -> None:
        for number in assigned.begin:
            waiting = self._waiting.pop(number, None)
            if waiting is not None and not waiting.begins.done():
                waiting.begins.set_result(None)
        if assigned.others:
            for key in keys:
                self._peers.notify(PLACES, key)
        if assigned.again:
            self._free.update(assigned.again)
            self._pause_until_s = _now_s() + AGAIN_S


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _not_begun(key: str) -> BlockError:
    message = f"the process stopped while the block waited for limit {key}"
    return BlockError(message, code="not_begun", retryable=True, deferred="not_begun")
