"""`GET /metrics` in the text format of Prometheus, and `GET /healthz`, of a worker. On loopback alone and without a
token: it has numbers of the process and nothing about workflows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from executor.engine import Engine
from executor.errors import WeftError
from server.beside import BesideServer, listening

HEALTHY_S = 2.0
TEXT = "text/plain; version=0.0.4; charset=utf-8"
HEADERS = {"X-Content-Type-Options": "nosniff"}


class Metrics:
    """`engine`, `lag_s` and `draining` are set by the process. `port`: where it listens, None: it does not."""

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self.lag_s = 0.0
        self.draining = False
        self.port: int | None = None
        self._server: BesideServer | None = None

    async def listen(self, port: int) -> None:
        """0: a free port. Raises OSError."""
        listener = listening(port)
        self.port = listener.getsockname()[1]
        routes = [Route("/metrics", self._metrics), Route("/healthz", self._health)]
        self._server = BesideServer(Starlette(routes=routes))
        await self._server.begin(listener)

    async def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.end()

    def text(self) -> str:
        """What `/metrics` answers."""
        return "".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _metric("weft_worker_draining", "gauge", "1 while the worker stops", int(self.draining))
        yield from _metric("weft_event_loop_lag_seconds", "gauge", "By how much the last tick was late", self.lag_s)
        if self.engine is None:
            return
        figures = self.engine.figures
        yield from _metric("weft_runs_active", "gauge", "Runs that this process has in memory", figures.runs)
        yield from _metric("weft_attempts_active", "gauge", "Attempts of blocks under way", figures.attempts)
        yield from _metric("weft_claims_total", "counter", "Runs claimed, new ones included", figures.claims)
        yield from _metric("weft_commits_total", "counter", "Groups of changes committed", figures.commits)

    async def _metrics(self, _: Request) -> Response:
        return Response(self.text(), media_type=TEXT, headers=HEADERS)

    async def _health(self, _: Request) -> Response:
        status, text = await self._healthy()
        return PlainTextResponse(text, status, headers=HEADERS)

    async def _healthy(self) -> tuple[int, str]:
        if self.engine is None or self.draining:
            return 503, "draining\n" if self.draining else "starting\n"
        try:
            async with asyncio.timeout(HEALTHY_S):
                await self.engine.healthy()
        except (WeftError, TimeoutError):
            return 503, "the database cannot be read\n"
        return 200, "ok\n"


def _metric(name: str, kind: str, help: str, value: float) -> Iterator[str]:
    yield f"# HELP {name} {help}.\n# TYPE {name} {kind}\n{name} {value:g}\n"
