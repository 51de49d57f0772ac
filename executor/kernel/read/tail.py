"""The last events of runs that are being read, as this process has committed them: readers take them from memory
instead of reading them back from the disk.

Nothing is promised of it. A reader that is further back, events that another process has committed, a run whose tail
was dropped for its size: all of that is read from the disk.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence

from executor.kernel.store.run_rows import Record

# The tail of one run keeps at most these events and bytes. A reader that lags further reads pages from disk.
EVENTS_MAX = 1_000
BYTES_MAX = 1024 * 1024
# All tails together.
ALL_BYTES_MAX = 16 * 1024 * 1024


def size_of(records: Sequence[Record]) -> int:
    """About as many bytes as they take in memory."""
    return sum(200 + len(record.data or b"") + len(record.output or b"") for record in records)


class _Tail:
    """The last appends of a run, without a gap. The journal has at least the event number `heard`."""

    __slots__ = ("appends", "events", "first", "heard", "last", "size")

    def __init__(self) -> None:
        self.heard = 0
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
        """Note that the run has a reader now."""
        self._tails.setdefault(run, _Tail())

    def end(self, run: str) -> None:
        """Note that the run has no reader any more."""
        self.forget(run)
        del self._tails[run]

    def add(self, run: str, records: Sequence[Record]) -> None:
        """Add records that are on the disk. Nothing is kept of a run without readers."""
        tail = self._tails.get(run)
        if tail is None or not records:
            return
        size = size_of(records)
        if records[-1].seq < tail.heard or size > BYTES_MAX:
            self.forget(run)  # others have committed since, or it is too large: there is a gap
            return
        before = tail.size
        tail.add(records, size)
        tail.shrink()
        self._size += tail.size - before
        self._tails.move_to_end(run)
        if self._size > self._bytes_max:
            self._shrink()

    def behind(self, run: str, after: int) -> list[Record] | None:
        """Return all events after `after`, or None if this process does not have them. Do not change the list."""
        tail = self._tails.get(run)
        return None if tail is None else tail.behind(after)

    def heard(self, run: str, seq: int) -> None:
        """Note that the journal has event `seq`: this process or another one has committed it."""
        tail = self._tails.get(run)
        if tail is not None and seq > tail.heard:
            tail.heard = seq
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
