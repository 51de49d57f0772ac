"""The server as a child process: started, asked whether it is ready, stopped in order."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Final

READY: Final = b"weft is ready: "
LINE_MAX: Final = 1024 * 1024
STOP_S: Final = 20.0  # a server waits 8 seconds for functions, and 5 for threads of functions


class NotStarted(Exception):
    """The server ended before it was ready; its message is on stderr."""


class ServerProcess:
    """`url` has no slash at the end."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, reader: asyncio.Task[None]) -> None:
        self._process = process
        self._reader = reader
        self.url = url

    @classmethod
    async def start(cls, environ: Mapping[str, str]) -> ServerProcess:
        """Ready when this returns. Raises NotStarted."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "server.dev.child"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**environ, "PYTHONUNBUFFERED": "1"},
            limit=LINE_MAX,
            start_new_session=True,  # Ctrl-C in the terminal ends the parent, which stops this process
        )
        assert process.stdout is not None
        while not (line := await process.stdout.readline()).startswith(READY):
            if not line:
                await process.wait()
                raise NotStarted
            _show(line)  # functions are read before the server is ready, and may print
        if b"/sign-in#" in line:
            await process.stdout.readline()  # a hint about more links, for people who start the server themselves
        url = line.removeprefix(READY).decode().strip().partition("/sign-in#")[0].rstrip("/")
        return cls(process, url, asyncio.create_task(_read_on(process.stdout), name="output of the server"))

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), STOP_S)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._reader


async def _read_on(output: asyncio.StreamReader) -> None:
    """Copy the output of functions until it ends."""
    while piece := await output.read(LINE_MAX):
        _show(piece)


def _show(text: bytes) -> None:
    """Write to stderr, where the file's output also goes while it is checked."""
    sys.stderr.write(text.decode(errors="replace"))
    sys.stderr.flush()
