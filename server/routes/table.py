"""The route table: what each route is, who may call it, and what OpenAPI says about it. `routes()` turns it into
Starlette.

Every route asks for the token unless it is declared public here, so that a new route is closed until somebody opens it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from executor.engine import Engine
from server.auth import Auth
from server.settings import Settings
from server.sse import Streams

Handler = Callable[["Call"], Awaitable[Response]]


class Call:
    """One request as a handler sees it: the request, and the parts of the server it may use."""

    __slots__ = ("auth", "engine", "request", "settings", "streams")

    def __init__(self, request: Request) -> None:
        state = request.app.state
        self.request = request
        self.engine: Engine = state.engine
        self.settings: Settings = state.settings
        self.auth: Auth = state.auth
        self.streams: Streams = state.streams

    def path(self, name: str) -> str:
        return cast(str, self.request.path_params[name])

    def query(self, name: str) -> str | None:
        """A query parameter; an empty one counts as absent."""
        return self.request.query_params.get(name) or None

    @property
    def address(self) -> str:
        """The other end of the connection; behind a proxy the proxy's."""
        return self.request.client.host if self.request.client else ""

    def accepts(self, media: str) -> bool:
        """True when the Accept header names this media type."""
        accept = self.request.headers.get("accept", "").lower()
        return any(part.partition(";")[0].strip() == media for part in accept.split(","))


class Param(Struct, frozen=True):
    """A query or header parameter, for OpenAPI."""

    name: str
    summary: str
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "string"})
    where: str = "query"


class RouteSpec(Struct, frozen=True):
    """One method of one path.

    public    needs no token
    body      struct of the request body, or None
    answer    struct of the 2xx body, a JSON Schema, or None for bodies that are not JSON
    statuses  the codes besides the first that the route answers on purpose
    media     media types of the 2xx body, the usual one first
    documented  shown in openapi.json
    """

    method: str
    path: str
    handler: Handler
    summary: str
    tag: str = "runs"
    public: bool = False
    body: Any = None
    answer: Any = None
    status: int = 200
    statuses: tuple[int, ...] = ()
    params: tuple[Param, ...] = ()
    media: tuple[str, ...] = ("application/json",)
    documented: bool = True


def routes(table: Sequence[RouteSpec]) -> list[Route]:
    """Starlette routes, one for each path, so that a wrong method is a 405 that names the right ones."""
    by_path: dict[str, dict[str, RouteSpec]] = {}
    for spec in table:
        by_path.setdefault(spec.path, {})[spec.method] = spec
    # A node key may hold slashes, send@review#5/fan[2], and a path is decoded before it is matched.
    return [
        Route(path.replace("{key}", "{key:path}"), _endpoint(specs), methods=list(specs))
        for path, specs in by_path.items()
    ]


def _endpoint(specs: dict[str, RouteSpec]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        spec = specs["GET" if request.method == "HEAD" else request.method]
        call = Call(request)
        if not spec.public:
            call.auth.require(request)
        return await spec.handler(call)

    return endpoint
