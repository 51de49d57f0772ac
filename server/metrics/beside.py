"""`GET /metrics`, `GET /healthz` and `GET /readyz` on a port of their own, without a token, for a Prometheus and for a
supervisor.

They show numbers, names of workflows and blocks, and no data of workflows. The port is on loopback unless
WEFT_METRICS_HOST is set.
"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from executor.errors import WeftError
from executor.open.engine import Engine
from server.beside import HOST, BesideServer, listening
from server.metrics import ProcessMeters
from server.reach import authority

HEADERS = {"X-Content-Type-Options": "nosniff"}


class Metrics:
    """`engine` is set by the process as soon as it has one. `port` and `address` (`host:port`) are those of the
    listener, None before `listen`."""

    def __init__(self, process: ProcessMeters) -> None:
        self.engine: Engine | None = None
        self.process = process
        self.port: int | None = None
        self.address: str | None = None
        self._server: BesideServer | None = None

    async def listen(self, port: int, host: str = HOST) -> None:
        listener = listening(port, host)
        self.port = listener.getsockname()[1]
        self.address = authority(host, self.port)
        routes = [
            Route("/metrics", self._metrics),
            Route("/healthz", self._alive),
            Route("/readyz", self._ready),
        ]
        self._server = BesideServer(Starlette(routes=routes))
        await self._server.begin(listener)

    async def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.end()

    async def _metrics(self, request: Request) -> Response:
        from server.metrics.collect import exposition  # its library is not for a process that is not scraped

        body, media = await exposition(self.engine, self.process, request.headers.get("accept", ""))
        return Response(body, headers={**HEADERS, "Content-Type": media})

    async def _alive(self, _: Request) -> Response:
        """Return whether the process works, whatever the state of its database: a restart would not repair that."""
        try:
            if self.engine is not None:
                await self.engine.healthy()
        except WeftError as error:
            return PlainTextResponse(f"{error}\n", 503, headers=HEADERS)
        return PlainTextResponse("ok\n", headers=HEADERS)

    async def _ready(self, _: Request) -> Response:
        status, text = await self._readiness()
        return PlainTextResponse(text, status, headers=HEADERS)

    async def _readiness(self) -> tuple[int, str]:
        if self.engine is None or self.process.draining:
            return 503, "draining\n" if self.process.draining else "waiting for the database\n"
        try:
            await self.engine.readable()
        except WeftError as error:
            return 503, f"{error}\n"
        return 200, "ok\n"
