"""Live text of blocks: what was written so far, and pieces of it on their way to readers."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct

from executor.kernel.read.watchers import Bell

TEXT_MAX: Final = 16 * 1024  # characters of one node, the last ones


TOTAL_MAX: Final = 4 * 1024 * 1024  # characters of all, then the runs that were silent for longest are forgotten


class _Written(Struct):
    text: str
    seq: int


class LiveTexts:
    def __init__(self) -> None:
        self._runs: OrderedDict[str, dict[str, _Written]] = OrderedDict()  # by run and node key, the latest at the end
        self._total = 0

    def add(self, run: str, key: str, text: str, seq: int) -> None:
        """Add text. `seq` is that of the append that recorded the start of the attempt. A new attempt begins anew."""
        nodes = self._runs.setdefault(run, {})
        self._runs.move_to_end(run)
        written = nodes.setdefault(key, _Written("", seq))
        before = len(written.text)
        # One character more than is shown marks that it was cut.
        written.text = ((written.text if written.seq == seq else "") + text)[-TEXT_MAX - 1 :]
        written.seq = seq
        self._total += len(written.text) - before
        while self._total > TOTAL_MAX:
            self.forget(next(iter(self._runs)))

    def of(self, run: str) -> list[tuple[str, str, int]]:
        nodes = self._runs.get(run, {})
        return [(key, _shown(written.text), written.seq) for key, written in nodes.items()]

    def forget(self, run: str) -> None:
        """Forget a run that has left memory: it ended, or waits."""
        self._total -= sum(len(written.text) for written in self._runs.pop(run, {}).values())


def _shown(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"…{text[-TEXT_MAX:]}"


# Deltas that may wait for a slow reader before the oldest are dropped: they are a view of what the journal will hold.
DELTAS_MAX = 1_000


DELTA_JOIN_S = 0.02  # tokens come at up to 100 a second; a person cannot see 20 ms


class Reader(Protocol):
    """A reader of the journal of one run: it has all up to `after`, and is woken when there may be more."""

    after: int

    def wake(self) -> None: ...


class Deltas:
    """The live text of one run, for one reader, from when it was made until `close`. Each piece has the seq of the
    last event that was known when it was written, and belongs after that: the start of its attempt, or a later one."""

    def __init__(self, leave: Callable[[Deltas], None], bell: Bell | None = None) -> None:
        self._items: deque[tuple[str, str, int]] = deque(maxlen=DELTAS_MAX)
        self._bell = bell
        self._timer: asyncio.TimerHandle | None = None
        self._leave = leave

    def put(self, key: str, text: str, seq: int) -> None:
        self._items.append((key, text, seq))
        if self._bell is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DELTA_JOIN_S, self._ring, self._bell)

    def read(self, seq: int | None = None) -> dict[str, str]:
        """Return the text since the last call, by node key; only pieces that belong after event `seq` or an earlier
        one."""
        texts: dict[str, list[str]] = {}
        for _ in range(len(self._items)):
            key, text, behind = self._items.popleft()
            if seq is None or behind <= seq:
                texts.setdefault(key, []).append(text)
            else:
                self._items.append((key, text, behind))
        return {key: "".join(parts) for key, parts in texts.items()}

    def places(self) -> set[int]:
        return {behind for _, _, behind in self._items}

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._leave(self)

    def _ring(self, bell: Bell) -> None:
        self._timer = None
        bell.ring()
