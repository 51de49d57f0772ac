"""The page of the demo: the state of the fleet, and a button for each action on it."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import httpx
import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from server.client import ClientError

from .members import Fleet, Postgres, Process
from .workload import Workload

LOOK_S: Final = 0.5
METRICS_S: Final = 2.0
CHAOS_S: Final = 3.0
DOWN_S: Final = 1.5
PAGE: Final = {"": "page.html", "page.css": "page.css", "page.js": "page.js"}
KINDS: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
CLAIMS = re.compile(r"^weft_claims_total (\d+)", re.MULTILINE)


class Chaos:
    """Kills a member every few seconds, and starts it again, while it is on."""

    def __init__(self, fleet: Fleet) -> None:
        self.on = False
        self._fleet = fleet
        self._choose = random.Random()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(CHAOS_S)
            running = [each for each in self._fleet.members if each.state == "running"]
            if not self.on or not running:
                continue
            chosen = self._choose.choice(running)
            await chosen.kill()
            await asyncio.sleep(DOWN_S)
            await chosen.start()


async def look_at_workers(fleet: Fleet) -> None:
    """Reads the metrics of all workers, until it is cancelled."""
    async with httpx.AsyncClient(timeout=METRICS_S, trust_env=False) as client:
        while True:
            await asyncio.gather(*(_claims(client, each) for each in fleet.workers))
            await asyncio.sleep(LOOK_S)


async def _claims(client: httpx.AsyncClient, worker: Process) -> None:
    if worker.state != "running" or worker.metrics_url is None:
        return
    try:
        found = CLAIMS.search((await client.get(worker.metrics_url)).text)
    except httpx.HTTPError:
        return  # it was killed in between
    if found:
        worker.note_claims(int(found[1]))


def create_app(fleet: Fleet, workload: Workload, chaos: Chaos, token: str) -> Starlette:
    """Everything is below `/TOKEN/`, so that pages of other sites cannot press a button."""

    async def page(request: Request) -> Response:
        name = PAGE.get(request.path_params["file"])
        if name is None:
            return Response("not found\n", 404)
        content = (Path(__file__).parent / "page" / name).read_bytes()
        return Response(content, media_type=KINDS[name.rpartition(".")[2]], headers=HEADERS)

    async def state(_: Request) -> Response:
        return Response(orjson.dumps(state_of(fleet, workload, chaos)), media_type="application/json", headers=HEADERS)

    async def act(request: Request) -> Response:
        member = fleet.named(request.path_params["name"])
        action = ACTIONS.get(request.path_params["action"])
        if member is None or action is None:
            return Response("not found\n", 404)
        await action(member)
        return await state(request)

    async def set_chaos(request: Request) -> Response:
        chaos.on = request.path_params["to"] == "on"
        fleet.log.add(f"Random kills are {'on' if chaos.on else 'off'}")
        return await state(request)

    async def editor(request: Request) -> Response:
        try:
            return RedirectResponse(await workload.sign_in_link(request.path_params["server"] - 1), 303)
        except (ClientError, IndexError):
            return Response("This server does not answer. Start it, or open another one.\n", 503)

    return Starlette(
        routes=[
            Route(f"/{token}/state", state),
            Route(f"/{token}/members/{{name}}/{{action}}", act, methods=["POST"]),
            Route(f"/{token}/chaos/{{to}}", set_chaos, methods=["POST"]),
            Route(f"/{token}/editor/{{server:int}}", editor),
            Route(f"/{token}/{{file:path}}", page),
        ]
    )


def state_of(fleet: Fleet, workload: Workload, chaos: Chaos) -> dict[str, Any]:
    """Return the state that the page shows."""
    counts = workload.counts
    return {
        "counts": {
            "started": counts.started,
            "open": workload.open,
            "ended": counts.ended,
            "wrong": counts.wrong,
            "lost": counts.lost,
            "slowest_ms": counts.slowest_ms,
        },
        "chaos": chaos.on,
        "members": [
            {
                "name": each.name,
                "state": each.state,
                "pid": each.pid,
                "starts": each.starts,
                "claims": each.claims if each in fleet.workers else None,
            }
            for each in fleet.members
        ],
        "log": [{"at_ms": each.at_ms, "text": each.text} for each in fleet.log.lines],
    }


async def _stop(member: Process | Postgres) -> None:
    if isinstance(member, Process):
        await member.stop()


async def _freeze(member: Process | Postgres) -> None:
    if isinstance(member, Process):
        member.freeze()


async def _proceed(member: Process | Postgres) -> None:
    if isinstance(member, Process):
        member.proceed()


ACTIONS: Final[dict[str, Callable[[Process | Postgres], Awaitable[None]]]] = {
    "start": lambda member: member.start(),
    "kill": lambda member: member.kill(),
    "stop": _stop,
    "freeze": _freeze,
    "continue": _proceed,
}
