"""A line in the log for what would otherwise stop the server without a word: an event loop that stands still, and file
descriptors that are used up."""

from __future__ import annotations

import errno
import logging
import os
import sys
import sysconfig
import threading
import time
import traceback
from pathlib import Path

from executor.kernel.process.repeated import Repeated

STILL_S = 2.0
LOOK_S = 0.5
FRAMES = 3  # that are named, innermost first
_STDLIB = sysconfig.get_paths()["stdlib"]
_log = logging.getLogger("weft.server")


class Watchdog:
    """All requests and runs wait while the event loop stands still. A separate thread checks twice a second whether it
    has moved. `beat` on the event loop, more often than every `still_s`, between `start` and `stop` on the same
    thread."""

    def __init__(self, still_s: float = STILL_S, check_s: float = LOOK_S) -> None:
        self._still_s = still_s
        self._check_s = check_s
        self._beat_s = 0.0
        self._ends = threading.Event()
        self._watched = 0

    def start(self) -> None:
        self._watched = threading.get_ident()
        self.beat()
        threading.Thread(target=self._watch, name="weft-watchdog", daemon=True).start()

    def beat(self) -> None:
        self._beat_s = time.monotonic()

    def stop(self) -> None:
        self._ends.set()

    def _watch(self) -> None:
        checked_s = time.monotonic()
        logged_beat_s = 0.0  # the beat for which a missing next beat was logged
        while not self._ends.wait(self._check_s):
            now_s, before_s = time.monotonic(), checked_s
            checked_s = now_s
            if now_s - before_s > self._still_s:
                continue  # this thread stood still as well: the whole process did, or another thread kept the GIL
            beat_s = self._beat_s
            if logged_beat_s and beat_s != logged_beat_s:
                _log.warning("the event loop moves again, after %.1f s", beat_s - logged_beat_s)
                logged_beat_s = 0.0
            if not logged_beat_s and now_s - beat_s > self._still_s:
                logged_beat_s = beat_s
                _log.warning(
                    "the event loop has been standing still for %.1f s, and every request and run with it, in %s: an "
                    "`async def` must not block, a plain `def` has a thread of its own",
                    now_s - beat_s,
                    self._where(),
                )

    def _where(self) -> str:
        frame = sys._current_frames().get(self._watched)
        stack = traceback.extract_stack(frame)
        own = [entry for entry in stack if not _is_python_itself(entry.filename)] or list(stack)
        return ", called by ".join(
            f"{entry.name} ({Path(entry.filename).name}:{entry.lineno})" for entry in list(reversed(own))[:FRAMES]
        )


def _is_python_itself(filename: str) -> bool:
    return filename.startswith("<frozen") or (filename.startswith(_STDLIB) and "site-packages" not in filename)


def raise_limit() -> int | None:
    """Set the soft limit of open files to the hard one. Returns it, or None if there is no such limit."""
    if sys.platform == "win32":
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError) as error:  # macOS reports a hard limit that it does not accept
            _log.debug("the limit of open files stays at %d: %s", soft, error)
    return None if soft == resource.RLIM_INFINITY else soft


class Descriptors:
    """Detects that no descriptors are left; call `check` once a second. uvloop closes connections that it cannot accept
    without an error, so `check` tries to open a file."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._logged = Repeated()

    def check(self) -> None:
        """Log it, at most once a minute, when no descriptor is left."""
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE) and self._logged.due("used up"):
                _log.error(
                    "no file descriptors are left (limit %s): new connections are closed, and blocks that send "
                    "requests fail or wait. Raise the limit (ulimit -n, LimitNOFILE=).",
                    self._limit or "of the system",
                )
