"""Ends the server process even if something in it does not stop.

Functions of users run in threads, which cannot be stopped, and an `async def` may hold the event loop. A process that
ends at once loses nothing that was acknowledged: unfinished work is found at the next start, as after a crash.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from types import FrameType
from typing import Final

from executor.kernel.process.threads import FunctionThreads

log = logging.getLogger("weft")

# A terminal and `make` may each pass on the same Ctrl-C.
SAME_SIGNAL_S: Final = 1.0
EXIT_AT_ONCE: Final = 1
LEAVE_S: Final = 5


class StopSignals:
    """The handler of SIGTERM and SIGINT. The first asks the server to stop, a later one ends the process at once."""

    def __init__(self) -> None:
        self._first_s: float | None = None

    def __bool__(self) -> bool:
        return self._first_s is not None

    def __call__(self, number: int, frame: FrameType | None = None) -> None:
        now_s = time.monotonic()
        if self._first_s is None:
            self._first_s = now_s
        elif now_s - self._first_s >= SAME_SIGNAL_S:
            # Not by logging: the signal may have come in the middle of a line.
            os.write(2, b"weft: stopped at once by a second signal; runs continue at the next start\n")
            os._exit(EXIT_AT_ONCE)


def leave(functions: FunctionThreads, code: int) -> None:
    """End the process, after the engine is closed: at once if a function still runs, otherwise within LEAVE_S. Python
    itself would wait without a limit for threads of its pools, such as those of `asyncio.to_thread` in a function."""
    held = functions.held()
    if not held:
        threading.Thread(target=_leave_late, args=(code,), name="weft-leave", daemon=True).start()
        return
    for call in held:
        log.error(
            "the Python function %s (%s) has not returned after %.0f s; the server stops without it",
            call.function,
            call.about,
            call.seconds,
        )
    _end(code)


def _leave_late(code: int) -> None:
    time.sleep(LEAVE_S)
    main = threading.main_thread()
    names = ", ".join(sorted(one.name for one in threading.enumerate() if one is not main and not one.daemon))
    log.error("threads have not ended after %d s (%s); the server stops without them", LEAVE_S, names)
    _end(code)


def _end(code: int) -> None:
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)
