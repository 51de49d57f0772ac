"""The server as a process: `serve` listens, runs the application until a signal, and stops it in order. Its log goes to
stderr.

Start order: listen (so that port 0 is known, and callers queue), build the engine, accept. Stop order: end event
streams and long waits, let the engine drain (its runs may be calling this very server), stop accepting, let short
requests finish.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn
from msgspec.structs import replace
from starlette.applications import Starlette

from executor.open.engine import Engine
from server import ui
from server.app import create_app, own_blocks
from server.http.auth import Auth
from server.http.connections import Connection, Connections
from server.http.security import Proxies, warn_of_open_bind
from server.http.streams import Streams
from server.keys import with_token
from server.leave import StopSignals
from server.metrics import ProcessMeters
from server.reach import SettingsError, authority, database_path, server_url
from server.settings import Settings, load_settings
from server.start import EXIT_USAGE, Process, run_process, tune_gc, warm_up
from server.watchdog import Descriptors, Watchdog

Show = Callable[[str], object]
GRACE_S = 5  # for requests under way when the server stops; the time in which the engine drains counts

KEEP_ALIVE_S = 15
TICKS_PER_S = 10  # of uvicorn's main loop
BACKLOG = 2048


def serve(settings: Settings | None = None, show: Show | None = None, *, work: bool = True) -> int:
    """Run until SIGTERM or SIGINT. Once it accepts requests it prints the URL, and a link that signs in if the token
    was made here; `show` is called with the link, or with the URL if none is needed. `settings` default to those of the
    environment. With `work=False` runs are left to `weft worker`. Returns the exit code: 0 stopped, 1 the database
    cannot be used, 2 refused.
    """
    try:
        settings = settings or load_settings()
        settings.check()
        own_blocks(settings)
        listener = _bind(settings)
    except (SettingsError, OSError) as error:
        print(f"weft: {error}", file=sys.stderr)
        return EXIT_USAGE
    try:
        settings = with_token(replace(settings, port=listener.getsockname()[1]))
    except SettingsError as error:
        listener.close()
        print(f"weft: {error}", file=sys.stderr)
        return EXIT_USAGE
    if warning := warn_of_open_bind(settings):
        logging.getLogger("weft").warning(warning)
    with listener:
        return run_process(settings, partial(_serve, settings, listener, show, work), listener=listener, work=work)


class Server(uvicorn.Server):
    """A uvicorn server that reports when it is ready. When it stops, event streams end first (they never would by
    themselves), then the runs. `stop_signals` is true if signals came while the engine was built; then it stops as soon
    as it has started."""

    def __init__(
        self,
        config: uvicorn.Config,
        app: Starlette,
        settings: Settings,
        stop_signals: StopSignals,
        descriptors: int | None = None,
        show: Show | None = None,
        work: bool = True,
    ) -> None:
        super().__init__(config)
        self.server_state: Connections = Connections(settings.limits, descriptors, Proxies(settings.proxies))
        self._descriptors = Descriptors(descriptors)
        self._watchdog = Watchdog()
        self._process: ProcessMeters = app.state.process
        self._ticked_s = 0.0
        self._stop_signals = stop_signals
        self._streams: Streams = app.state.streams
        self._engine: Engine = app.state.engine
        self._auth: Auth = app.state.auth
        self._settings = settings
        self._show = show
        self._work = work

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._stop_signals:
            self.should_exit = True
            return
        tune_gc()
        if self.started:
            await warm_up()
            await self._print_ready()
            if self._work and not self._settings.read_only:
                self._engine.parts.services.models.load_beside()

    async def _print_ready(self) -> None:
        wanted = self._auth.required and (self._settings.token_file or self._show)
        link = await self._auth.link(self._engine) if wanted else None
        page = f"{self._settings.base_url}/"
        if link is not None and self._settings.token_file:
            print(f"weft is ready: {link}", flush=True)
            print(
                f"  It signs in one browser, within 10 minutes. `{self._link_command()}` prints a new one.", flush=True
            )
        else:
            print(f"weft is ready: {page}", flush=True)
        if self._show is not None:
            self._show(link or page)

    def _link_command(self) -> str:
        """Return the command that prints another link, for a shell like the one that started this: it sets what differs
        from the environment."""
        here = f"http://{authority(self._settings.host, self._settings.port)}"
        command = f"{_command()} link" if server_url(os.environ) == here else f"{_command()} --url {here} link"
        try:
            elsewhere = database_path(os.environ) != self._settings.db_path
        except SettingsError:
            elsewhere = True
        return f"WEFT_DB={shlex.quote(os.path.abspath(self._settings.db_path))} {command}" if elsewhere else command

    async def main_loop(self) -> None:
        self._watchdog.start()
        try:
            await super().main_loop()
        finally:
            self._watchdog.stop()

    async def on_tick(self, counter: int) -> bool:
        self._watchdog.beat()
        now_s = time.monotonic()
        if self._ticked_s:
            self._process.ticked(now_s - self._ticked_s - 1 / TICKS_PER_S)
        self._ticked_s = now_s
        self._process.streams = len(self._streams)
        if counter % TICKS_PER_S == 0:
            self._descriptors.check()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a stop signal. The handler of uvicorn waits for ever after a second SIGTERM, and raises each signal
        again at the end."""
        self._stop_signals(sig, frame)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._streams.close()
        self._process.draining = True
        began = time.monotonic()
        await self._engine.stop_working()
        grace_s = max(1, round(GRACE_S - (time.monotonic() - began)))
        self.config.timeout_graceful_shutdown = grace_s
        # Clients that do not take their answers: uvicorn would wait for them, and then report tasks where there are
        # none.
        asyncio.get_running_loop().call_later(grace_s / 2, self.server_state.abort_answered)
        await super().shutdown(sockets)


async def _serve(settings: Settings, listener: socket.socket, show: Show | None, work: bool, context: Process) -> None:
    app = create_app(settings, context.engine, ui.built(), context.metrics.process)
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level=settings.log_level,
        access_log=False,  # server/http/security.py writes it
        server_header=False,
        proxy_headers=False,  # server/http/security.py reads them
        backlog=_backlog(context.descriptors),
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    server = Server(config, app, settings, context.stop_signals, context.descriptors, show, work)
    await server.serve(sockets=[listener])


def _command() -> str:
    called = sys.argv[0]
    return called if Path(called).name == "weft" and shutil.which("weft") is None else "weft"


def _backlog(descriptors: int | None) -> int:
    """Return the length of the backlog. All queued connections are accepted at once, before one of them can be closed:
    they must not use up all descriptors."""
    return BACKLOG if descriptors is None else max(1, min(BACKLOG, descriptors // 4))


def _bind(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Connections inherit it. What a client leaves unread keeps a closed connection, and megabytes of the kernel's
        # memory with it, for as long as the client's machine is up; so the kernel gives up on it (Linux).
        unread_ms = round(settings.limits.stream_send_s * 1000)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, unread_ms)
    try:
        listener.bind((settings.host.strip("[]"), settings.port))
        # From here callers queue instead of being refused: runs that continue at once may call this very server.
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        hint = (
            ". Another process uses this port: stop it, or choose another --port (0 for a free one)."
            if error.errno == errno.EADDRINUSE
            else ""
        )
        raise OSError(f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}{hint}") from None
    return listener
