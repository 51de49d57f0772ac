"""Work on the event loop in slices: the view of a run of 100,000 steps takes a second, in which other runs and requests
proceed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Final

from executor.journal.projection import NodeState, Projection

SLICE_S: Final = 0.005


class Slices:
    """`await rest()` between two small pieces of work: it lets other tasks run when a slice is over."""

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until = time.perf_counter() + SLICE_S

    async def rest(self) -> None:
        if time.perf_counter() >= self._until:
            await asyncio.sleep(0)
            self._until = time.perf_counter() + SLICE_S


class SlicedProjection(Projection):
    """Its nodes do not end, and are not freed, all at once: each is when it is taken out."""

    _has_ended = False

    def end(self) -> None:
        self._has_ended = True

    def taken_out(self) -> Iterator[NodeState]:
        """The nodes, in the order in which they came."""
        for key in list(self.nodes):
            state = self.nodes.pop(key)
            if self._has_ended:
                state.end()
            yield state
