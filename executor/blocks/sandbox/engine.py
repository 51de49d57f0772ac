"""The one engine of a process, and the clock of its hard deadlines: a daemon thread that advances the engine's epoch
every 5 ms while guests run.

The clock keeps running for a second after the last guest call, so that steady work does not pay for waking it, and then
sleeps: an idle process has no wake-ups. A late tick makes a deadline later, never earlier, so a loaded machine gets no
false timeouts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TypeVar

import wasmtime

T = TypeVar("T")

TICK_MS = 5
_LINGER_S = 1.0


def once(make: Callable[[], T]) -> Callable[[], T]:
    """`make`, called once over all threads; threads that come meanwhile wait for it. If it raises, the next tries.

    Not `functools.lru_cache`: it lets two threads that come together make one each, and keeps one of them. Two engines
    in one process are worse than slow: wasmtime aborts the whole process when a module of one meets a function of the
    other."""
    made: list[T] = []
    making = threading.Lock()

    @wraps(make)
    def get() -> T:
        if not made:
            with making:
                if not made:
                    made.append(make())
        return made[0]

    return get


@once
def engine() -> wasmtime.Engine:
    """The engine of this process, whose epoch is advanced by `ticker`."""
    config = wasmtime.Config()
    config.epoch_interruption = True
    return wasmtime.Engine(config)


@once
def ticker() -> Ticker:
    return Ticker()


def ticks(ms: int) -> int:
    """Return the epochs that are at least `ms` long: one more, because the present one has partly passed."""
    return ms // TICK_MS + 2


class Ticker:
    def __init__(self) -> None:
        self._engine = engine()
        self._changed = threading.Condition()
        self._active = 0
        self._parked = False
        self._thread: threading.Thread | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Advance epochs inside this block."""
        with self._changed:
            self._active += 1
            if self._thread is None or not self._thread.is_alive():  # also after a fork: threads do not survive it
                self._thread = threading.Thread(target=self._tick, name="weft-sandbox-ticker", daemon=True)
                self._parked = False
                self._thread.start()
            elif self._parked:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._active -= 1

    def _tick(self) -> None:
        last_active = time.monotonic()
        while True:
            time.sleep(TICK_MS / 1000)
            self._engine.increment_epoch()
            if self._active:
                last_active = time.monotonic()
            elif time.monotonic() - last_active > _LINGER_S:
                with self._changed:
                    self._parked = True
                    self._changed.wait_for(lambda: self._active > 0)
                    self._parked = False
                last_active = time.monotonic()
