"""How many files and sockets the process may have open: as many as it is allowed, and a line in the log when they are
used up."""

from __future__ import annotations

import errno
import logging
import os
import sys

from executor.repeated import Repeated

_log = logging.getLogger("weft.server")


def raise_limit() -> int | None:
    """The soft limit becomes the hard one. Returns it; None where there is no such limit."""
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
    """`look` once a second. uvloop closes what it cannot accept without a word, so whether descriptors are used up is
    found out by asking for one."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._said = Repeated()

    def look(self) -> None:
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE) and self._said.due("used up"):
                _log.error(
                    "no file descriptors are left (limit %s): new connections are closed, and blocks that send "
                    "requests fail or wait. Raise the limit (ulimit -n, LimitNOFILE=).",
                    self._limit or "of the system",
                )
