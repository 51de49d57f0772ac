"""Wake-ups by run id, the last events of runs that are being read, and live text. Nothing here is durable or
promised.

A missed wake-up costs time, never an event. Readers take the events that this process has committed from memory; one
that is further back, or reads a run that another process executes or whose tail was dropped for its size, reads the
disk. Live text is kept for readers who join late until the run leaves memory; it is in the journal when the attempt
ends.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Sequence

from executor.kernel.read.live_texts import Deltas, LiveTexts, Reader
from executor.kernel.read.peers import Peers
from executor.kernel.read.watchers import Bell, Watchers
from executor.kernel.store.run_rows import Record

# The tail of one run keeps at most these events and bytes. A reader that lags further reads pages from disk.
EVENTS_MAX = 1_000
BYTES_MAX = 1024 * 1024
# All tails together.
ALL_BYTES_MAX = 16 * 1024 * 1024


def size_of(records: Sequence[Record]) -> int:
    return sum(200 + len(record.data or b"") + len(record.output or b"") for record in records)


class _Tail:
    """The last appends of a run, without a gap. The journal has at least the event number `newest`."""

    __slots__ = ("appends", "events", "first", "last", "newest", "size")

    def __init__(self) -> None:
        self.newest = 0
        self.appends: deque[tuple[list[Record], int]] = deque()
        self.first = self.last = self.events = self.size = 0

    def clear(self) -> None:
        self.appends.clear()
        self.first = self.last = self.events = self.size = 0

    def add(self, records: Sequence[Record], size: int) -> None:
        if records[0].seq != self.last + 1:
            self.clear()
            self.first = records[0].seq
        self.appends.append((list(records), size))
        self.last = records[-1].seq
        self.events += len(records)
        self.size += size

    def shrink(self) -> None:
        while self.events > EVENTS_MAX or self.size > BYTES_MAX:
            records, size = self.appends.popleft()
            self.events -= len(records)
            self.size -= size
            self.first = records[-1].seq + 1

    def behind(self, after: int) -> list[Record] | None:
        if not self.appends or not self.first - 1 <= after <= self.last:
            return None
        newest = self.appends[-1][0]
        if newest[0].seq == after + 1:  # nearly always, and it is the same list for all readers
            return newest
        found: list[Record] = []
        for records, _ in self.appends:
            if records[-1].seq > after:
                found += records[max(0, after + 1 - records[0].seq) :]
        return found


class Tails:
    """The tails of one process; the run that was added to longest ago is dropped first."""

    def __init__(self, bytes_max: int = ALL_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._size = 0
        self._tails: OrderedDict[str, _Tail] = OrderedDict()

    def begin(self, run: str) -> None:
        self._tails.setdefault(run, _Tail())

    def end(self, run: str) -> None:
        self.forget(run)
        del self._tails[run]

    def add(self, run: str, records: Sequence[Record]) -> None:
        """Add records that are on the disk. Nothing is kept of a run without readers."""
        tail = self._tails.get(run)
        if tail is None or not records:
            return
        size = size_of(records)
        if records[-1].seq < tail.newest or size > BYTES_MAX:
            self.forget(run)  # others have committed since, or it is too large: there is a gap
            return
        before = tail.size
        tail.add(records, size)
        tail.shrink()
        self._size += tail.size - before
        self._tails.move_to_end(run)
        if self._size > self._bytes_max:
            self._shrink()

    def last(self, run: str) -> int:
        """Return the seq of the last event that is here, or 0."""
        tail = self._tails.get(run)
        return 0 if tail is None else tail.last

    def behind(self, run: str, after: int) -> list[Record] | None:
        tail = self._tails.get(run)
        return None if tail is None else tail.behind(after)

    def advance(self, run: str, seq: int) -> None:
        """Note that the journal has event `seq`: this process or another one has committed it."""
        tail = self._tails.get(run)
        if tail is not None and seq > tail.newest:
            tail.newest = seq
            if tail.last < seq:
                self.forget(run)

    def forget(self, run: str) -> None:
        """There is more, and it is not known what."""
        tail = self._tails.get(run)
        if tail is not None and tail.appends:
            self._size -= tail.size
            tail.clear()

    def _shrink(self) -> None:
        for run in list(self._tails):
            self.forget(run)
            if self._size <= self._bytes_max:
                return


class Hub:
    def __init__(self, peers: Peers | None = None) -> None:
        self.peers = peers or Peers()
        self._commits = Watchers()
        self._readers: dict[str, set[Reader]] = {}
        self._deltas: dict[str, set[Deltas]] = {}
        self.tails = Tails()
        self.texts = LiveTexts()
        self.messages = asyncio.Event()  # there may be something to send
        self.alerts = asyncio.Event()  # to operators
        self.signals = 0  # so far; a read that began at another count may have missed a commit

    # --- what has happened

    def committed(self, run: str, records: Sequence[Record]) -> None:
        """Note that this process has committed these events. Do not call it before they are on the disk."""
        self.tails.add(run, records)
        self._wake(run)

    def grown(self, run: str) -> None:
        """Note that this process has committed events of `run` that are not at hand."""
        self.tails.forget(run)
        self._wake(run)

    def signal(self, run: str) -> None:
        """Wake those that wait: something about `run` was committed that is not in its journal."""
        self._wake(run)

    def grown_elsewhere(self, run: str) -> None:
        """Note that another process has committed to `run`, and wake its readers."""
        self.tails.forget(run)
        self.signals += 1
        for reader in self._readers.get(run, ()):
            reader.wake()

    def looked(self, run: str, seq: int | None) -> bool:
        """Note that the journal ends with event `seq` or a later one, or with None that the run is gone. Wakes the
        readers that have less. Returns False if there was none."""
        if seq is None:
            self.tails.forget(run)
        else:
            self.tails.advance(run, seq)
        behind = [reader for reader in self._readers.get(run, ()) if seq is None or reader.after < seq]
        if behind:
            self.signals += 1
        for reader in behind:
            reader.wake()
        return bool(behind)

    def _wake(self, run: str) -> None:
        self.signals += 1
        self._commits.signal(run)
        for reader in self._readers.get(run, ()):
            reader.wake()
        if run in self.peers.followed:
            self.peers.grown(run)

    # --- readers

    def watch(self, run: str) -> asyncio.Future[None]:
        """Return a future for the next signal. Take it BEFORE reading the journal: nothing falls in between."""
        return self._commits.watch(run)

    def enter(self, run: str, reader: Reader) -> None:
        """Add a reader; it is woken by each signal until it leaves."""
        self.tails.begin(run)
        self._readers.setdefault(run, set()).add(reader)
        self.peers.follow(run)

    def leave(self, run: str, reader: Reader) -> None:
        readers = self._readers.get(run)
        if readers is not None and reader in readers:
            readers.remove(reader)
            if not readers:
                del self._readers[run]
                self.tails.end(run)

    def has_readers(self, run: str) -> bool:
        return run in self._readers

    def watched(self) -> list[str]:
        return list(self._readers)

    # --- live text

    def delta(self, run: str, key: str, text: str, seq: int = 0) -> None:
        """Send live text. `seq` is that of the append that recorded the start of the attempt."""
        self.delta_elsewhere(run, key, text, seq)
        if run in self.peers.followed:
            self.peers.text(run, key, text, seq)

    def delta_elsewhere(self, run: str, key: str, text: str, seq: int) -> None:
        """Send live text of a run that another process executes."""
        self.texts.add(run, key, text, seq)
        for reader in self._deltas.get(run, ()):
            reader.put(key, text, max(seq, self.tails.last(run)))

    def deltas(self, run: str, bell: Bell | None = None, *, so_far: bool = False) -> Deltas:
        """Return the text that handlers emit from now on; with `so_far` also what is here of before. Close it after
        use."""

        def leave(reader: Deltas) -> None:
            readers = self._deltas.get(run, set())
            readers.discard(reader)
            if not readers:
                self._deltas.pop(run, None)

        reader = Deltas(leave, bell)
        self._deltas.setdefault(run, set()).add(reader)
        for written in self.texts.of(run) if so_far else ():
            reader.put(*written)
        return reader
