"""The waits of an entry of a durable function: which calls are to have one, and which have one that is open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from executor.errors import BlockError
from executor.kernel.core.facts import WaitStep
from executor.kernel.handler.base import Suspend
from executor.kernel.run.made import Entry, Made
from executor.kernel.run.step_work import Ended, StepWork

WAITS_MAX: Final = 100  # that are open at the same time; further ones open when some of these are over

Changes = tuple[list[tuple[Suspend, WaitStep]], tuple[int, ...]]  # waits to open, and steps whose waits are to close


class LaneWaits:
    """`open`: the steps with open waits. `made`: the calls, by number. `arrived` gets the end of a call whose wait
    cannot be asked for."""

    def __init__(
        self, entry: Entry, made: Mapping[int, Made], work: StepWork, arrived: Callable[[int, Ended], None]
    ) -> None:
        self.open = set(entry.open)
        self._asked: list[int] = []
        self._known = entry.known
        self._made = made
        self._work = work
        self._arrived = arrived

    @property
    def are_settled(self) -> bool:
        """Returns True if none is to open or to close."""
        return not self._asked and all(n in self._made and not self._made[n].future.done() for n in self.open)

    def ask(self, n: int) -> None:
        if n not in self.open:
            self._asked.append(n)

    def over(self, n: int) -> None:
        self.open.discard(n)

    async def changes(self, timers: Iterable[int] = ()) -> Changes:
        """Return the waits to open for the calls that have asked, and for these timers; and the waits to close."""
        drops = tuple(sorted(n for n in self.open if n not in self._made or self._made[n].future.done()))
        waits: list[tuple[Suspend, WaitStep]] = []
        for n in sorted([*self._asked, *timers]):
            made = self._made.get(n)
            if made is None or made.future.done():
                continue
            if len(self.open) - len(drops) + len(waits) == WAITS_MAX:
                break
            try:
                suspend = await _suspend(made)
            except BlockError as error:
                self._asked.remove(n)
                await self._work.begin(made.call)
                self._arrived(n, await self._work.fail(made.call, error))
            else:
                waits.append((suspend, made.call.wait_step(n in self._known)))
        return waits, drops

    def changed(self, changes: Changes) -> None:
        waits, drops = changes
        self.open = self.open.difference(drops).union(step.n for _, step in waits)
        self._asked = [n for n in self._asked if n not in self.open]


async def _suspend(made: Made) -> Suspend:
    if made.due_ms is not None:
        return Suspend("timer", due_ms=made.due_ms)
    assert made.suspend is not None
    return await made.suspend()
