"""The inbox of one run in memory: which messages were read, and which the next append deletes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Final

from executor.kernel.core import messages as m
from executor.kernel.run.border import Border
from executor.kernel.run.loaded import LoadedRun
from executor.kernel.run.messages import Messages
from executor.kernel.run.parts import Parts
from executor.kernel.run.recorder import Recorder
from executor.kernel.run.results import Arrivals
from executor.kernel.store.topics.inbox import InboxRow

log = logging.getLogger("weft.run")

IN_HAND: Final = 0  # the number of a message that is not stored: the first append does without it


class Inbox:
    """The inbox of one run. `consumed` has the numbers of messages that were read and that no append has deleted yet.
    `migration` is the number and text of a message that asks for another plan; the append that moves the run deletes
    it, or it is refused. `newest_n` is the newest message read. `is_empty` is True for a run that is not stored yet."""

    def __init__(
        self,
        run: LoadedRun,
        parts: Parts,
        recorder: Recorder,
        border: Border,
        arrivals: Arrivals,
        is_empty: bool = False,
    ) -> None:
        self.consumed: list[int] = []
        self.migration: tuple[int, m.Migrate] | None = None
        self.newest_n = 0
        self.may_have_messages = not is_empty
        self._run = run
        self._store = parts.store
        self._arrivals = arrivals
        self._in_hand: Sequence[InboxRow] = ()
        self._make_messages = partial(Messages, run, parts, recorder, border, arrivals)

    @cached_property
    def _messages(self) -> Messages:  # most runs get none
        return self._make_messages()

    def put_in_hand(self, message: bytes) -> None:
        """Set the message that is not stored, as the first append takes the run for it. Others are read after that
        commit, and before anything starts: it returns how far the inbox goes (`read_upto`)."""
        self._in_hand = (InboxRow(self._run.id, IN_HAND, message),)
        self.may_have_messages = True

    def changed(self) -> None:
        """There may be messages, or signals for a wait that has opened."""
        self.may_have_messages = True
        self._arrivals.changed.set()

    async def read_if_changed(self) -> None:
        if self.may_have_messages:
            self.may_have_messages = False
            await self._read()

    async def read_upto(self, n: int) -> None:
        """Read at least the messages up to number `n`, which others have committed."""
        if n > self.newest_n:
            self.newest_n = n
            self.may_have_messages = False
            await self._read()

    def changed_upto(self, n: int) -> None:
        """Others have committed messages up to number `n`; they are read before the next turn."""
        if n > self.newest_n:
            self.changed()

    def pop_consumed(self) -> tuple[int, ...]:
        """Return the numbers of consumed messages, for the append that deletes them."""
        consumed = tuple(self.consumed)
        self.consumed.clear()
        return consumed

    async def match_signals(self) -> None:
        await self._messages.match_signals()

    async def _read(self) -> None:
        signals = False
        rows, self._in_hand = self._in_hand, ()
        for row in rows or await self._store.read_inbox(self._run.id):
            if row.n in self.consumed or (self.migration is not None and row.n == self.migration[0]):
                continue
            self.newest_n = max(self.newest_n, row.n)
            message = m.decode(row.message)
            if isinstance(message, m.Migrate):
                self.migration = (row.n, message)
                continue
            self.consumed.append(row.n)
            signals = signals or isinstance(message, m.SignalSent)
            await self._messages.receive(message)
        if signals or any(wait.kind == "signal" for _, wait in self._run.state.open_waits()):
            await self.match_signals()
