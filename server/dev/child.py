"""The server of `weft dev`: `weft serve` that is killed when its stdin ends: with the process that started it."""

from __future__ import annotations

import logging
import os
import signal
import sys
from threading import Thread

from executor.kernel.process.tracebacks import log
from server.process import serve


def main() -> int:
    Thread(target=_end_with_stdin, daemon=True).start()
    log.setLevel(logging.INFO)  # tracebacks of functions, with all their frames
    return serve()


def _end_with_stdin() -> None:
    while os.read(0, 4096):  # not sys.stdin: a thread that reads it holds a lock that the end of Python waits for
        pass
    # The process that started this one was killed: it stops this one before it closes the pipe. To drain now would
    # execute steps in a server that is believed dead, and each print() in them would raise BrokenPipeError.
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
