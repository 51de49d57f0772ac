"""Refuses what the code of a durable function does past its event loop: it writes files, connects, starts programs.

An audit hook of Python sees these in whatever library they are done. Reading files is permitted, because imports and
tracebacks do; so is what the import system and logging write. A hook stays until the process ends, so it is added with
the first lane.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any, Final

from executor.errors import NotDeterministic
from executor.kernel.process.tracebacks import is_of_users

STEP: Final = "do it inside of a function with @weft.step"
Refuse = Callable[[NotDeterministic], object]

_REFUSED: Final = {
    "open": "it writes a file",
    **dict.fromkeys(("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink"), "it changes files"),
    **dict.fromkeys(("socket.connect", "socket.bind", "socket.sendto"), "it uses the network"),
    **dict.fromkeys(("socket.getaddrinfo", "socket.gethostbyname"), "it asks for an address in the network"),
    **dict.fromkeys(("subprocess.Popen", "os.system", "os.posix_spawn", "os.fork"), "it starts another program"),
    "sqlite3.connect": "it opens a database",
    # Python has an event for it from 3.13 on.
    "time.sleep": "it blocks all runs of the process",
}
_INSTEAD: Final = {"time.sleep": "await weft.sleep(…) instead"}
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PERMITTED: Final = ("<frozen importlib", importlib.__file__, os.path.dirname(logging.__file__) + os.sep)


class _Here(threading.local):
    refuse: Refuse | None = None
    collects = False


_here = _Here()


def watch(refuse: Refuse | None) -> Refuse | None:
    """Watch this thread until the next call, and return what to pass then. `refuse` gets the error first: the code may
    catch it."""
    _install()
    before, _here.refuse = _here.refuse, refuse
    return before


def refusal(what: str, frame: FrameType | None = None) -> NotDeterministic:
    """Return the error for what the code does in this frame, by default in that of the caller, or in one above."""
    frame = frame or sys._getframe(1)
    at: FrameType | None = frame
    while at is not None and not is_of_users(at.f_code.co_filename):
        at = at.f_back
    place = f"{os.path.basename(at.f_code.co_filename)}:{at.f_lineno}: " if at is not None else ""
    return NotDeterministic(f"{place}a durable function cannot do this, because it would differ each time: {what}")


@cache
def _install() -> None:
    sys.addaudithook(_hook)
    gc.callbacks.append(_collect)


def _collect(phase: str, info: dict[str, int]) -> None:
    """Garbage may be that of others, and what removes it is not the code's doing."""
    _here.collects = phase == "start"


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event in _REFUSED and _here.refuse is not None and not _here.collects:
        _check(event, args, _here.refuse)


def _check(event: str, args: tuple[Any, ...], refuse: Refuse) -> None:
    if event == "open" and not (isinstance(args[2], int) and args[2] & _WRITES):
        return
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith(_PERMITTED):
            return
        frame = frame.f_back
    error = refusal(f"{_REFUSED[event]}: {_INSTEAD.get(event, STEP)}", sys._getframe(2))
    refuse(error)
    raise error
