"""`weft worker` as a process: it executes runs of a database that other processes serve, and answers no requests of
users.

Stop order: no more claims, running handlers get their grace, every lease is released, the worker's row is deleted. Then
the runs are free for other workers, and the process ends with code 0.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

from executor.errors import WeftError
from executor.open.engine import Engine
from server.app import own_blocks
from server.leave import StopSignals, leave
from server.logs import keep_from_log, log_to_stderr
from server.metrics.beside import Metrics
from server.metrics.collect import ProcessMeters
from server.process import EXIT_USAGE, POOL_THREADS, cannot_open, loop_factory
from server.settings import Settings
from server.start import started
from server.variables import SettingsError
from server.watchdog import Watchdog, raise_limit

GRACE_S = 8.0  # for handlers that run when the worker stops
CLOSE_S = 10.0  # for the rest, after the grace
TICK_S = 0.1
EXIT_NO_DATABASE = 1


def work(settings: Settings, *, grace_s: float = GRACE_S) -> int:
    """Execute runs until SIGTERM or SIGINT. Prints a line when it claims runs. Returns the exit code: 0 stopped, 1 the
    database cannot be used, 2 refused."""
    try:
        settings.check_shared()
        own_blocks(settings)
    except SettingsError as error:
        print(f"weft: {error}", file=sys.stderr)
        return EXIT_USAGE
    log_to_stderr(settings.log_level, settings.unloggable, settings.log_format)
    stop_signals = StopSignals()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, stop_signals)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_work(settings, stop_signals, grace_s))


async def _work(settings: Settings, stop_signals: StopSignals, grace_s: float) -> int:
    raise_limit()
    # asyncio's own pool has six threads on two cores, and functions of users may take some for long.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(POOL_THREADS, "weft-pool"))
    process = ProcessMeters()
    metrics = Metrics(process)
    try:
        if settings.metrics_port is not None:
            await metrics.listen(
                settings.metrics_port, settings.metrics_host
            )  # before anything is claimed: the port may be in use
    except OSError as error:
        where = f"{settings.metrics_host}:{settings.metrics_port}"
        print(f"weft: cannot listen on {where}: {error.strerror or error}", file=sys.stderr)
        return EXIT_USAGE
    try:
        engine = await started(settings, stop_signals)
    except (WeftError, SettingsError, OSError) as error:
        cannot_open(settings, error)
        await metrics.close()
        return EXIT_NO_DATABASE
    if engine is None:
        await metrics.close()
        return 0
    metrics.engine = engine
    keep_from_log(engine.parts.redactor)
    try:
        await _until_stopped(engine, stop_signals, metrics)
        process.draining = True
        await engine.stop_working(grace_s)
    finally:
        try:
            await asyncio.wait_for(engine.close(grace_s), grace_s + CLOSE_S)
        except TimeoutError:
            logging.getLogger("weft").error("the worker did not drain in time; its runs continue when its lease ends")
        await metrics.close()
    leave(engine.parts.services.functions, 0)
    return 0


async def _until_stopped(engine: Engine, stop_signals: StopSignals, metrics: Metrics) -> None:
    gc.collect()
    gc.freeze()  # as a server does: what was imported stays
    gc.set_threshold(10_000, 10, 500)
    watchdog = Watchdog()
    watchdog.start()
    where = "" if metrics.address is None else f", metrics on http://{metrics.address}/metrics"
    print(f"weft is ready: worker {engine.worker_name}{where}", flush=True)
    engine.parts.services.models.load_beside()
    now_s = asyncio.get_running_loop().time
    try:
        while not stop_signals:
            began_s = now_s()
            await asyncio.sleep(TICK_S)
            metrics.process.ticked(now_s() - began_s - TICK_S)
            watchdog.beat()
    finally:
        watchdog.stop()
