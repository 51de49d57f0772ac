"""Commands of weft as processes that have imported it when they start: each is forked from a process that has. That
takes a tenth of a second where importing takes one, and a model three more.

    python -m tests.support.forked        is that process: `Forks` starts it, and asks it on its standard input
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

ROOT = Path(__file__).parents[2]
MESSAGE_BYTES_MAX = 1 << 17


class Forks:
    """Starts processes; they and it live on without each other."""

    def __init__(self) -> None:
        own, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self._process = subprocess.Popen([sys.executable, "-m", __name__], cwd=ROOT, stdin=its.fileno())
        self._control = own

    def start(self, words: list[str], environ: Mapping[str, str], stderr: IO[bytes] | None = None) -> Forked:
        """Run `weft` with these words."""
        pipes = [os.pipe(), os.pipe()]
        errors = 2 if stderr is None else stderr.fileno()
        message = json.dumps({"words": words, "environ": dict(environ)}).encode()
        try:
            socket.send_fds(self._control, [message], [pipes[0][1], errors, pipes[1][1]])
        finally:
            for _, end in pipes:
                os.close(end)
        return Forked(os.fdopen(pipes[0][0]), os.fdopen(pipes[1][0]))

    def close(self) -> None:
        self._control.close()
        self._process.wait(30)


class Forked:
    """Stands for a forked server as `subprocess.Popen` does for a child."""

    def __init__(self, stdout: IO[str], end: IO[str]) -> None:
        self.stdout = stdout
        self._end = end
        self.pid = int(end.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._end], [], [], 0)[0]:
            self.returncode = int(self._end.readline())
            self._end.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not select.select([self._end], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("weft", timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _warm(environ: Mapping[str, str]) -> None:
    """Import what this process will."""
    import server.cli.processes
    import server.process  # noqa: F401  # and with it all that a server needs

    if "WEFT_MODEL_DEV" in environ:
        import executor.blocks.llm.provider  # noqa: F401  # and with it the libraries of the models


def _main() -> NoReturn:
    control = socket.socket(fileno=0)
    _warm({})
    while True:
        data, files, *_ = socket.recv_fds(control, MESSAGE_BYTES_MAX, 3)
        if not data:
            os._exit(0)
        asked = json.loads(data)
        _warm(asked["environ"])
        with suppress(ChildProcessError):  # those that have ended
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if os.fork() == 0:
            break
        for file in files:
            os.close(file)
    control.close()
    stdout, stderr, end = files
    pid = os.fork()
    if pid:  # waits for the other
        os.close(stdout)
        os.write(end, f"{pid}\n".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.write(end, f"{code}\n".encode())
        os._exit(0)
    os.close(end)
    _become(asked, stdout, stderr)


def _become(asked: dict[str, Any], stdout: int, stderr: int) -> NoReturn:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for file, place in ((stdout, 1), (stderr, 2)):
        os.dup2(file, place)
        os.close(file)
    os.environ.clear()
    os.environ.update(asked["environ"])
    sys.path[1:1] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in sys.path]
    sys.argv = ["weft", *asked["words"]]
    from server.cli import main

    main()


if __name__ == "__main__":
    _main()
