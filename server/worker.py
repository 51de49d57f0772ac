"""`weft worker` as a process: it executes runs of a database that other processes serve, and answers no requests of
users.

Stop order: no more claims, running handlers get their grace, every lease is released, the worker's row is deleted. Then
the runs are free for other workers, and the process ends with code 0.
"""

from __future__ import annotations

import asyncio
import sys

from server.app import own_blocks
from server.reach import SettingsError
from server.settings import Settings
from server.start import EXIT_USAGE, GRACE_S, Process, run_process, tune_gc, warm_up
from server.watchdog import Watchdog

TICK_S = 0.1


def work(settings: Settings, *, grace_s: float = GRACE_S) -> int:
    """Execute runs until SIGTERM or SIGINT. Prints a line when it claims runs. Returns the exit code, see
    `run_process`."""
    try:
        settings.check_shared()
        own_blocks(settings)
    except SettingsError as error:
        print(f"weft: {error}", file=sys.stderr)
        return EXIT_USAGE

    async def main(process: Process) -> None:
        await _until_stopped(process)
        process.metrics.process.draining = True
        await process.engine.stop_working(grace_s)

    return run_process(settings, main, grace_s=grace_s)


async def _until_stopped(process: Process) -> None:
    engine, metrics = process.engine, process.metrics
    tune_gc()
    watchdog = Watchdog()
    watchdog.start()
    where = "" if metrics.address is None else f", metrics on http://{metrics.address}/metrics"
    await warm_up()
    print(f"weft is ready: worker {engine.worker_name}{where}", flush=True)
    engine.parts.services.models.load_beside()
    now_s = asyncio.get_running_loop().time
    try:
        while not process.stop_signals:
            began_s = now_s()
            await asyncio.sleep(TICK_S)
            metrics.process.ticked(now_s() - began_s - TICK_S)
            watchdog.beat()
    finally:
        watchdog.stop()
