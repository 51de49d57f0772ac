"""Functions that a child process calls on itself, to end with its server and to set its bounds."""

from __future__ import annotations

import math
import signal
import sys
from contextlib import suppress

if sys.platform != "win32":
    import resource


def end_with_parent() -> None:
    """Make the child end with its server, and not by the keyboard before it. On Linux it ends even if the server is
    killed: else it would work without a server, and beside the next attempt. Elsewhere it ends after its call."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def bound_itself(memory_bytes: int) -> None:
    """Bound the addresses to `memory_bytes`. A crash writes no file with the memory."""
    if sys.platform != "win32":
        _lower(resource.RLIMIT_CORE, 0, for_good=True)
        _lower(resource.RLIMIT_AS, memory_bytes, for_good=True)


def bound_files_and_cpu(file_bytes: int, seconds: float) -> None:
    """Bound files and time until the next call: no file becomes larger, and the process ends when it has computed for
    so many seconds."""
    if sys.platform != "win32":
        used = resource.getrusage(resource.RUSAGE_SELF)
        _lower(resource.RLIMIT_FSIZE, file_bytes)
        _lower(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + seconds))


def _lower(what: int, limit: int, *, for_good: bool = False) -> None:
    """Set a limit, but never above the one of the operator."""
    _, most = resource.getrlimit(what)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    with suppress(ValueError, OSError):  # the system does not have this one
        resource.setrlimit(what, (limit, limit if for_good else most))
