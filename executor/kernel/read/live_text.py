"""Text that running attempts have emitted so far, for readers who join late: a chat page that is loaded again.

Kept in the memory of each process that receives it, until the run leaves memory. Nothing depends on it: the text is in
the journal when the attempt ends.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msgspec import Struct

TEXT_MAX: Final = 16 * 1024  # characters of one node, the last ones
TOTAL_MAX: Final = 4 * 1024 * 1024  # characters of all, then the runs that were silent for longest are forgotten


class _Said(Struct):
    text: str
    seq: int


class LiveTexts:
    def __init__(self) -> None:
        self._runs: OrderedDict[str, dict[str, _Said]] = OrderedDict()  # by run and node key, the latest at the end
        self._total = 0

    def add(self, run: str, key: str, text: str, seq: int) -> None:
        """Add text. `seq` is that of the append that recorded the start of the attempt. A new attempt begins anew."""
        nodes = self._runs.setdefault(run, {})
        self._runs.move_to_end(run)
        said = nodes.setdefault(key, _Said("", seq))
        before = len(said.text)
        # One character more than is shown marks that it was cut.
        said.text = ((said.text if said.seq == seq else "") + text)[-TEXT_MAX - 1 :]
        said.seq = seq
        self._total += len(said.text) - before
        while self._total > TOTAL_MAX:
            self.forget(next(iter(self._runs)))

    def of(self, run: str) -> list[tuple[str, str, int]]:
        """Return node keys, their texts, and the seqs after which they belong."""
        nodes = self._runs.get(run, {})
        return [(key, _shown(said.text), said.seq) for key, said in nodes.items()]

    def forget(self, run: str) -> None:
        """Forget a run that has left memory: it ended, or waits."""
        self._total -= sum(len(said.text) for said in self._runs.pop(run, {}).values())


def _shown(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"…{text[-TEXT_MAX:]}"
