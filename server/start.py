"""The frame of a process of weft: it waits for a database server that is not there yet, such as after a power cut, in
which the processes of a fleet begin before their database, opens the engine, runs the process, and ends it in order."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager

import anyio.lowlevel
from msgspec import Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from executor.errors import DatabaseDown, WeftError
from executor.kernel.process.repeated import Repeated
from executor.kernel.store.sqlite.connection import FULL, full_hint
from executor.open.engine import GC_THRESHOLDS, Engine
from server.app import build_engine
from server.beside import BesideServer
from server.http.errors import problem_of
from server.leave import StopSignals, leave
from server.logs import keep_from_log, log_to_stderr
from server.metrics import ProcessMeters
from server.metrics.beside import Metrics
from server.reach import SettingsError
from server.settings import Settings
from server.watchdog import raise_limit

EXIT_NO_DATABASE, EXIT_USAGE = 1, 2
POOL_THREADS = 32  # for compiling large documents, checks, names of other servers
GRACE_S = 8.0  # for handlers that run when the process stops
CLOSE_S = 2.0  # for the rest, after the grace
LOOK_FOR_STOP_S = 0.1
TRY_EVERY_S = 0.5
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
NO_DATABASE_HINT = "Set a file in a writable folder with --db or WEFT_DB. To restore a backup, use `weft restore`."
NO_SERVER_HINT = "WEFT_DB is its address. Is PostgreSQL 15 or newer running there, and may this user connect to it?"
_log = logging.getLogger("weft")
_down = Repeated()


class Process(Struct):
    """`descriptors`: the number of files and sockets that it may open, or None if unbounded."""

    engine: Engine
    metrics: Metrics
    stop_signals: StopSignals
    descriptors: int | None


def run_process(
    settings: Settings,
    main: Callable[[Process], Awaitable[None]],
    *,
    listener: socket.socket | None = None,
    work: bool = True,
    grace_s: float = GRACE_S,
) -> int:
    """Run `main`, which ends after SIGTERM or SIGINT. Returns the exit code: 0 stopped, 1 the database cannot be used,
    2 refused."""
    log_to_stderr(settings.log_level, settings.unloggable, settings.log_format)
    stop_signals = StopSignals()
    for name in (signal.SIGTERM, signal.SIGINT):  # uvicorn handles signals only while it serves
        signal.signal(name, stop_signals)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_run(settings, main, stop_signals, listener, work, grace_s))


async def _run(
    settings: Settings,
    main: Callable[[Process], Awaitable[None]],
    stop_signals: StopSignals,
    listener: socket.socket | None,
    work: bool,
    grace_s: float,
) -> int:
    descriptors = raise_limit()
    # asyncio's own pool has six threads on two cores, and functions of users may take some for long.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(POOL_THREADS, "weft-pool"))
    metrics = Metrics(ProcessMeters())
    try:
        if settings.metrics_port is not None:  # before anything is claimed: the port may be in use
            await metrics.listen(settings.metrics_port, settings.metrics_host)
    except OSError as error:
        where = f"{settings.metrics_host}:{settings.metrics_port}"
        print(f"weft: cannot listen on {where}: {error.strerror or error}", file=sys.stderr)
        return EXIT_USAGE
    try:
        try:
            engine = await started(settings, stop_signals, work=work, listener=listener)
        except (WeftError, SettingsError, OSError) as error:
            _print_unusable(settings, error)
            return EXIT_NO_DATABASE
        if engine is None:
            return 0
        metrics.engine = engine
        keep_from_log(engine.parts.redactor)
        try:
            await main(Process(engine, metrics, stop_signals, descriptors))
        finally:
            try:
                await asyncio.wait_for(engine.close(grace_s), grace_s + CLOSE_S)
            except TimeoutError:
                _log.error("the process did not drain in time; its runs continue when its lease ends")
    finally:
        await metrics.close()
    leave(engine.parts.services.functions, 0)
    return 0


def tune_gc() -> None:
    """Imported modules stay: to search them for garbage again and again costs a busy process a quarter of its time. To
    search them once now, for the 2,000 objects that imports leave behind, would be a tenth of the start."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def _print_unusable(settings: Settings, error: Exception) -> None:
    print(f"weft: cannot open {settings.database}: {error}", file=sys.stderr)
    full = isinstance(error, OSError) and error.errno in FULL
    hint = full_hint(settings.db_path) if full else getattr(error, "hint", "")
    no_database = NO_DATABASE_HINT if settings.db_address is None else NO_SERVER_HINT
    print(f"  {hint or no_database}", file=sys.stderr)


async def warm_up() -> None:
    """Called once the process listens, before it is ready. anyio imports its backend with the first call that needs it,
    and no descriptor may be left for that by then."""
    await anyio.lowlevel.checkpoint()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it exists; None is asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


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
