"""Python for function blocks, built beside a server that starts: `weft serve --build-python`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

from executor.blocks.sandbox.missing import missing


@contextmanager
def built_beside() -> Iterator[None]:
    """Build in a separate process, which ends with the block. Errors go to stderr."""
    stop = Event()
    builder = Thread(target=_build, args=(stop,), name="build python", daemon=True)
    builder.start()
    try:
        yield
    finally:
        stop.set()
        builder.join(5)


def _build(stop: Event) -> None:
    if (reason := missing()) is not None:
        print(f"Python for function blocks is not built: {reason.hint}", file=sys.stderr)
        return
    from executor.blocks.sandbox.python.component import building, is_built  # and with it wasmtime

    if is_built():
        return
    with building() as is_ours:  # from here on blocks wait for it
        if not is_ours:
            return
        print("Python for function blocks is built in the background, once: about half a minute.", file=sys.stderr)
        command = [sys.executable, "-m", "server", "python", "build", "--held"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:  # noqa: S603
            with suppress(OSError, AttributeError):  # the server comes first
                os.setpriority(os.PRIO_PROCESS, process.pid, 10)
            while process.poll() is None and not stop.wait(0.2):
                pass
            process.send_signal(signal.SIGINT)  # it removes what it has written so far
