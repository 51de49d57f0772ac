"""A flag that an attempt is over, for code that cannot be stopped: `ctx.cancelled` in threads."""

from __future__ import annotations

import threading

_making = threading.Lock()


class Over:
    """True once the attempt has ended: its run was cancelled, its time is over, or its run is another worker's.
    Whatever the code returns then is ignored. Can be read in any thread.

    while not ctx.cancelled:
        work()
    """

    __slots__ = ("_event", "_over")

    def __init__(self) -> None:
        self._over = False
        self._event: threading.Event | None = None  # made by the first that waits: most attempts have none

    def __bool__(self) -> bool:
        return self._over

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait in a thread until the attempt is over, or for so many seconds. Return True if it is over."""
        with _making:
            if self._event is None:
                self._event = threading.Event()
        if not self._over:  # `end` sees the event, or this sees the end
            self._event.wait(timeout_s)
        return self._over

    def end(self) -> None:
        self._over = True
        if self._event is not None:
            self._event.set()


NEVER = Over()
