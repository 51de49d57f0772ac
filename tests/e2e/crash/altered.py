"""`python -m tests.e2e.crash.altered serve`: the `weft` command as it is, but

    ALTERED_CLOCK    its wall clock is the `Wall` in this file, which the test sets while it runs
    ALTERED_BUSY_MS  how long one try to write waits for another process's lock
  ALTERED_TRIES    how often a write is tried; belongs to the former
    ALTERED_GC_S     a deletion of old runs takes them one by one, with pauses of so many seconds

The clock that only measures how long something takes (CLOCK_MONOTONIC) keeps running, as it does when a machine's time
is set. It is what the wall clock is reckoned from, so all processes with one file read the same time.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path

_TIMES = struct.Struct("<qqd")  # wall clock and CLOCK_MONOTONIC at one moment, in ns; wall seconds per second
_SLOTS_AT = 8


class Wall:
    """Two slots and a byte that says which one counts: who reads never meets half a change."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(_SLOTS_AT + 2 * _TIMES.size))
            with path.open("r+b") as file:
                self._map = mmap.mmap(file.fileno(), 0)
            self._write(time.time_ns(), 1.0)
        else:
            with path.open("r+b") as file:
                self._map = mmap.mmap(file.fileno(), 0)

    def now_ns(self) -> int:
        wall_ns, at_ns, speed = _TIMES.unpack_from(self._map, _SLOTS_AT + self._map[0] * _TIMES.size)
        return int(wall_ns + (time.monotonic_ns() - at_ns) * speed)

    def now_ms(self) -> int:
        return self.now_ns() // 1_000_000

    def step(self, seconds: float) -> None:
        _, _, speed = _TIMES.unpack_from(self._map, _SLOTS_AT + self._map[0] * _TIMES.size)
        self._write(self.now_ns() + round(seconds * 1e9), speed)

    def run(self, speed: float) -> None:
        """From now on `speed` seconds pass in each."""
        self._write(self.now_ns(), speed)

    def _write(self, wall_ns: int, speed: float) -> None:
        slot = 1 - self._map[0]
        _TIMES.pack_into(self._map, _SLOTS_AT + slot * _TIMES.size, wall_ns, time.monotonic_ns(), speed)
        self._map[0] = slot


def _alter() -> None:
    if path := os.environ.get("ALTERED_CLOCK"):
        wall = Wall(Path(path))
        time.time_ns = wall.now_ns
        time.time = lambda: wall.now_ns() / 1e9
    if busy_ms := os.environ.get("ALTERED_BUSY_MS"):
        from executor.kernel.store.sqlite.store import SQLiteStore
        from executor.kernel.store.writer import Retry

        defaults = SQLiteStore.__init__.__kwdefaults__
        assert defaults is not None
        defaults["busy_timeout_ms"] = int(busy_ms)
        defaults["retry"] = Retry(attempts=int(os.environ["ALTERED_TRIES"]) - 1)

    if pause_s := os.environ.get("ALTERED_GC_S"):
        from executor.service.upkeep import gc

        gc.RUNS_PER_BATCH, gc.PAUSE_S = 1, float(pause_s)


if __name__ == "__main__":
    _alter()
    from server.cli import main

    main()
