"""The start of a process: it waits for a database server that is not there yet, such as after a power cut, in which the
processes of a fleet begin before their database."""

from __future__ import annotations

import asyncio
import logging

from executor.engine import Engine
from executor.errors import DatabaseDown
from executor.repeated import Repeated
from server.app import build_engine
from server.leave import StopSignals
from server.settings import Settings

LOOK_FOR_STOP_S = 0.1
TRY_EVERY_S = 0.5
_log = logging.getLogger("weft")
_down = Repeated()


async def started(settings: Settings, stop_signals: StopSignals, *, work: bool = True) -> Engine | None:
    """The engine, as soon as its database answers; None if a signal came before that. Raises WeftError, SettingsError
    or OSError for what does not pass: a wrong password, a newer schema, a file that cannot be used."""
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
        for _ in range(round(TRY_EVERY_S / LOOK_FOR_STOP_S)):
            if stop_signals:
                return None
            await asyncio.sleep(LOOK_FOR_STOP_S)
