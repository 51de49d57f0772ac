"""Work in a forked child process: it may be killed, and its exit code says how it ended."""

from __future__ import annotations

import logging
import os
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path

PLAYED, KILLED, BROKEN = 0, -signal.SIGKILL, 3
CHILD_S_MAX = 100


def in_child(work: Callable[[], None], folder: Path) -> int:
    """The exit code of a forked child, negative for a signal. What it raised is in `folder/error`."""
    child = start_child(work, folder)
    until = time.monotonic() + CHILD_S_MAX
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            (folder / "error").write_text(f"it did not end within {CHILD_S_MAX} s")
            return BROKEN
        time.sleep(0.005)


def start_child(work: Callable[[], None], folder: Path) -> int:
    child = os.fork()
    if child == 0:
        code = BROKEN
        try:
            logging.disable(logging.CRITICAL)
            work()
            code = PLAYED
        except BaseException:
            (folder / "error").write_text(traceback.format_exc())
        finally:
            os._exit(code)
    return child
