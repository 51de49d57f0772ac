"""The ends of waits whose node has an attempt under way: it receives them while it runs.

An end has its place among the ends of the attempt's steps when it is decided, which is its place in the journal. The
attempt receives it when it is on disk. An append that is refused takes it back: it is decided again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Settling(Protocol):
    def settle(self, stored: bool) -> None: ...


class WaitEnd:
    """The end of the wait of step `n`, which is event `seq`. `stored` is None until it is on disk, or was taken back;
    then `changed` is called."""

    __slots__ = ("changed", "n", "seq", "stored")

    def __init__(self, n: int, seq: int) -> None:
        self.n = n
        self.seq = seq
        self.stored: bool | None = None
        self.changed: Callable[[], None] = lambda: None

    def settle(self, stored: bool) -> None:
        self.stored = stored
        self.changed()


class WaitEnds:
    """The ends that one attempt receives, in order. `listener` is called with each of them."""

    __slots__ = ("ends", "listener")

    def __init__(self) -> None:
        self.ends: list[WaitEnd] = []
        self.listener: Callable[[WaitEnd], None] | None = None

    def add(self, n: int, seq: int) -> WaitEnd:
        end = WaitEnd(n, seq)
        self.ends.append(end)
        if self.listener is not None:
            self.listener(end)
        return end

    def listen(self, listener: Callable[[WaitEnd], None]) -> None:
        for end in self.ends:
            listener(end)
        self.listener = listener
