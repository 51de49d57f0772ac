"""Watches a file, and starts again when it or a file beside it changes.

Each text is read in a process of its own first. If it has errors, they are shown, and the server continues with the
last good text; else the server is restarted with the new one. Its runs continue there: they are in the database, and
those of an older version keep its plan.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from executor.service.replay.journals import Journal, write
from server.dev.canvas import Canvas, Refused
from server.dev.changes import changes
from server.dev.journals import HINT, Fit
from server.reach import find

CHECK_S = 60.0
Say = Callable[[str], object]


class _Found(msgspec.Struct, frozen=True):
    documents: dict[str, dict[str, object]]
    steps: bool
    durable: list[str]


async def develop(file: Path, environ: Mapping[str, str], say: Say, show: Say | None) -> int:
    """Run until SIGINT, SIGTERM or SIGHUP. `environ` is that of the server; `show` gets the link to the canvas once.
    Exit code 1: the server cannot start."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    work = _Development(file, dict(environ), say, show)
    try:
        saved = changes(file.parent, stop)
        await anext(saved)  # a change while the first text is read is one as well
        await work.begin()
        if work.failed:
            return 1
        async for _ in saved:
            await work.begin()
        return 0
    finally:
        await work.end()


class _Development:
    """`failed`: there is no server, and another text would change nothing."""

    def __init__(self, file: Path, environ: dict[str, str], say: Say, show: Say | None) -> None:
        self._file = file
        self._environ = environ
        self._functions = environ.get("WEFT_FUNCTIONS", "")
        self._say = say
        self._show = show
        self._server: ServerProcess | None = None
        self._shown: set[str] = set()  # workflows whose link was printed: it signs in once
        self.failed = False

    async def begin(self) -> None:
        """Start with the present text of the file."""
        found = await self._check()
        if found is None:
            left = "the last good version continues" if self._server is not None else "waiting for a change"
            self._say(f"{self._file.name} has errors: {left}.")
            return
        named = [self._functions, str(self._file) if found.steps else ""]
        self._environ["WEFT_FUNCTIONS"] = ",".join(filter(None, named))
        await self.end()
        try:
            self._server = await ServerProcess.start(self._environ)
        except NotStarted:
            self._say("The server did not start.")
            self.failed = True
            return
        self._environ["WEFT_PORT"] = self._server.url.rpartition(":")[2]  # keep the port from now on
        await self._deploy(self._server.url, found)

    async def end(self) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            await server.stop()

    async def _check(self) -> _Found | None:
        """Return the workflows of the file, or None if it has errors, which are on stderr."""
        output = await self._run("server.dev.check")
        return None if output is None else msgspec.json.decode(output, type=_Found)

    async def _run(self, module: str, input: bytes = b"") -> bytes | None:
        """Return what a module prints about the file, or None if it fails, with its errors on stderr."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, str(self._file)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**self._environ, "WEFT_FUNCTIONS": self._functions},
        )
        try:
            async with asyncio.timeout(CHECK_S):
                output, _ = await process.communicate(input)
        except TimeoutError:
            process.kill()
            await process.wait()
            self._say(f"{self._file.name} was not read within {CHECK_S:.0f} seconds: does it wait for something?")
            return None
        return output if process.returncode == 0 else None

    async def _deploy(self, url: str, found: _Found) -> None:
        async with Canvas(url, find(self._environ, url)) as canvas:
            for name, document in found.documents.items():
                try:
                    version, created = await canvas.deploy(name, document)
                    draft = await canvas.draft(name, version, document)
                    link = await canvas.link(draft) if name not in self._shown else None
                except Refused as error:
                    self._say(f"{name}: {error}")
                    continue
                self._say(f"{name} version {version} is {'active' if created else 'unchanged'}")
                if link is not None:
                    self._shown.add(name)
                    self._say(f"  {link}")
                    if self._show is not None:
                        self._show(link)
                        self._show = None
            try:
                journals = [one for name in found.durable for one in await canvas.open_journals(name)]
            except Refused as error:
                self._say(f"The open runs were not read: {error}")
                return
        await self._fit(journals)

    async def _fit(self, journals: Sequence[Journal]) -> None:
        """Report which open runs of durable functions continue with the text, and where the others part from it."""
        if not journals:
            return
        output = await self._run("server.dev.fit", write(journals).encode())
        fits = msgspec.json.decode(output, type=list[Fit]) if output is not None else []
        for one in fits:
            if one.parts:
                self._say(f"run {one.run} of {one.workflow} does not fit this text: {one.parts}")
        if any(one.parts for one in fits):
            self._say(f"  {HINT}")
        if count := sum(not one.parts for one in fits):
            self._say(f"{count} open {'run continues' if count == 1 else 'runs continue'} with this text.")


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
