"""All that a run writes whose creator awaits its end, so that a short run need not be read back: only of a run that
begins and ends in this process, in one piece, and has no children and no large outputs. For all others, and for a run
that writes more than is kept here, the database is read."""

from __future__ import annotations

from msgspec.structs import replace

from executor.kernel.store.run_rows import Append, NewRun, Record, RunRow

# A run that writes more is long: reading it back adds little to what it took.
RECORDS_MAX = 2_000


BYTES_MAX = 512 * 1024


class AwaitedRun:
    """`records`: its journal so far. `ended`: its row, once it has ended and `records` are complete. `is_here`: it is
    created by this process, which takes it into memory. `has_usage`: its steps have."""

    __slots__ = ("_bytes_left", "_row", "ended", "has_usage", "is_here", "records")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.ended: RunRow | None = None
        self.is_here = self.has_usage = False
        self._row: RunRow | None = None
        self._bytes_left = BYTES_MAX

    def begin(self, row: RunRow, new: NewRun) -> None:
        """Note that the run is created in memory; `row` is as it is when it is owned."""
        self._row = row
        self.is_here = True
        self._keep(new.records)

    def add(self, append: Append) -> None:
        row = self._row
        if row is None:
            return
        if append.root is not None or append.move is not None or append.blobs:
            self._forget()
            return
        self.has_usage |= bool(append.usage)
        self._keep(append.records)
        if append.finished and append.status is not None and self._row is not None:
            self.ended = replace(
                row,
                status=append.status,
                output=append.output,
                error=append.error,
                seq=len(self.records),
                lease_owner=None,
                lease_until_ms=None,
                stalls=0,
                finished_at_ms=append.now_ms,
            )

    def _keep(self, records: tuple[Record, ...]) -> None:
        self.records += records
        for record in records:
            if record.output is not None:
                self._bytes_left -= len(record.output)
            if record.data is not None:
                self._bytes_left -= len(record.data)
        if self._bytes_left < 0 or len(self.records) > RECORDS_MAX:
            self._forget()

    def _forget(self) -> None:
        self._row = None
        self.records = []
