"""The start of a process: it waits for a database server that is not there yet, such as after a power cut, in which the
processes of a fleet begin before their database."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from executor.errors import DatabaseDown
from executor.kernel.process.repeated import Repeated
from executor.open.engine import Engine
from server.app import build_engine
from server.beside import BesideServer
from server.http.errors import problem_of
from server.leave import StopSignals
from server.settings import Settings

LOOK_FOR_STOP_S = 0.1
TRY_EVERY_S = 0.5
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_log = logging.getLogger("weft")
_down = Repeated()


async def started(
    settings: Settings, stop_signals: StopSignals, *, work: bool = True, listener: socket.socket | None = None
) -> Engine | None:
    """Return the engine, as soon as its database answers, or None if a signal came before that. Meanwhile requests at
    `listener` are answered with 503, and /healthz with 200. Raises WeftError, SettingsError or OSError for permanent
    errors: a wrong password, a newer schema, a file that cannot be used."""
    async with AsyncExitStack() as until_then:
        stands_in = listener is None
        while True:
            building = asyncio.create_task(build_engine(settings, work=work), name="start")
            while not (await asyncio.wait([building], timeout=LOOK_FOR_STOP_S))[0]:
                if stop_signals:  # while another process holds the lock it would try for long
                    building.cancel()
                    await asyncio.wait([building])
            try:
                return building.result()
            except asyncio.CancelledError:
                return None
            except DatabaseDown as error:
                if count := _down.due(error.code):
                    _log.warning("waiting for %s (%d tries): %s", settings.database, count, error)
            if not stands_in and listener is not None:
                stands_in = True
                await until_then.enter_async_context(_stand_in(listener))
            for _ in range(round(TRY_EVERY_S / LOOK_FOR_STOP_S)):
                if stop_signals:
                    return None
                await asyncio.sleep(LOOK_FOR_STOP_S)


@asynccontextmanager
async def _stand_in(listener: socket.socket) -> AsyncIterator[None]:
    """Clients are answered, instead of waiting for as long as the database is away."""
    routes = [Route("/healthz", _alive), Route("/{path:path}", _not_yet, methods=METHODS)]
    server = BesideServer(Starlette(routes=routes))
    await server.begin(listener.dup())
    try:
        yield
    finally:
        await server.end()


async def _alive(_: Request) -> Response:
    return PlainTextResponse("waiting for the database\n")


async def _not_yet(_: Request) -> Response:
    return problem_of(DatabaseDown("the server waits for its database", hint="Send the same request again."))
