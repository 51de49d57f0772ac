"""The demo as a process: the fleet, its workload and the page, until Ctrl+C."""

from __future__ import annotations

import asyncio
import secrets
import signal
import socket
from collections.abc import Callable

from server.beside import HOST, BesideServer, listening

from .app import Chaos, create_app, look_at_workers
from .database import Database
from .members import Fleet
from .workload import Workload

LEASE_MS = 3000  # a killed worker's runs are taken over after this; a server's own default is 15 s


def show(servers: int, workers: int, per_s: float, port: int, say: Callable[[str], None]) -> None:
    """Run until SIGINT or SIGTERM. Raises ProgramsMissing, RuntimeError (something did not start), OSError (the
    port)."""
    with listening(port) as listener:
        say("Starting PostgreSQL ...")
        database = Database()
        try:
            asyncio.run(_show(database, servers, workers, per_s, listener, say))
        finally:
            database.remove()


async def _show(
    database: Database, servers: int, workers: int, per_s: float, listener: socket.socket, say: Callable[[str], None]
) -> None:
    stopped = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    fleet = Fleet(database, servers, workers, _free_ports(servers), LEASE_MS)
    showing = asyncio.create_task(_serve(fleet, per_s, listener, say))
    stopping = asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait([showing, stopping], return_when=asyncio.FIRST_COMPLETED)
        if showing.done():
            showing.result()
    finally:
        say("Stopping ...")
        for task in (showing, stopping):
            task.cancel()
        await asyncio.gather(showing, stopping, return_exceptions=True)
        await fleet.close()


async def _serve(fleet: Fleet, per_s: float, listener: socket.socket, say: Callable[[str], None]) -> None:
    """Serve until cancelled."""
    say(f"Starting {len(fleet.servers)} servers and {len(fleet.workers)} workers ...")
    await fleet.start()
    workload, chaos, token = Workload(fleet.urls, fleet.token, per_s), Chaos(fleet), secrets.token_urlsafe(16)
    page = BesideServer(create_app(fleet, workload, chaos, token))
    await page.begin(listener)
    say(f"The fleet is ready: http://{HOST}:{listener.getsockname()[1]}/{token}/")
    say("Open it, and kill what you like. Ctrl+C ends the fleet and deletes its database.")
    try:
        async with asyncio.TaskGroup() as tasks:
            for each in (workload.run(), chaos.run(), look_at_workers(fleet)):
                tasks.create_task(each)
    finally:
        await page.end()


def _free_ports(count: int) -> tuple[int, ...]:
    """Taken all at once, so that they differ."""
    sockets = [listening(0) for _ in range(count)]
    try:
        return tuple(each.getsockname()[1] for each in sockets)
    finally:
        for each in sockets:
            each.close()
