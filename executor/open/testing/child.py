"""Work in forked processes, which may be killed: each begins with the memory that this process has now, and nothing
that it changes there comes back."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

CHILD_S_MAX: Final = 60.0
_POLL_S: Final = 0.003
ERROR_FILE: Final = "error"
DONE, BROKEN = 0, 3


async def in_child(work: Callable[[], Coroutine[Any, Any, None]], folder: Path) -> int:
    """Return the exit code: DONE, BROKEN (`folder/error` has the error), or -9. Raises RuntimeError on a system without
    fork."""
    if not hasattr(os, "fork"):
        raise RuntimeError("crash tests need a system with fork, such as Linux or macOS")
    child = _start(work, folder)
    until_s = time.monotonic() + CHILD_S_MAX
    try:
        while True:
            done, status = os.waitpid(child, os.WNOHANG)  # noqa: ASYNC222  # it does not wait
            if done:
                child = 0
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > until_s:
                (folder / ERROR_FILE).write_text(f"it did not end within {CHILD_S_MAX:g} s")
                return BROKEN
            await asyncio.sleep(_POLL_S)
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)  # noqa: ASYNC222  # it was killed


def _start(work: Callable[[], Coroutine[Any, Any, None]], folder: Path) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # its warning that this process may have threads; see the how-to
        child = os.fork()
    if child:
        return child
    code = BROKEN
    try:
        signal.set_wakeup_fd(-1)  # that of the parent's event loop
        asyncio._set_running_loop(None)
        logging.disable(logging.CRITICAL)
        asyncio.run(work())
        code = DONE
    except BaseException:
        (folder / ERROR_FILE).write_text(traceback.format_exc())
    finally:
        os._exit(code)
