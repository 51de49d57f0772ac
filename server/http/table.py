"""The route table: what each route is, who may call it, and what OpenAPI says about it. `routes()` turns it into
Starlette.

Every route asks for the token unless it is declared public here, so that a new route is closed until somebody opens it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from executor.engine import Engine
from executor.store.patience import patience
from server.http.auth import Auth
from server.http.sse import Streams
from server.settings import Limits, Settings

Handler = Callable[["Call"], Awaitable[Response]]


class Call:
    """One request as a handler sees it: the request, and the parts of the server it may use."""

    __slots__ = ("auth", "engine", "limits", "request", "session", "settings", "streams")

    def __init__(self, request: Request, limits: Limits) -> None:
        state = request.app.state
        self.request = request
        self.limits = limits
        self.engine: Engine = state.engine
        self.settings: Settings = state.settings
        self.auth: Auth = state.auth
        self.streams: Streams = state.streams
        self.session: str | None = None  # that lets the request in, if it needs one

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
    """A query or header parameter, or what may stand in a path, for OpenAPI."""

    name: str
    summary: str
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "string"})
    where: str = "query"
    required: bool = False


class Link(Struct, frozen=True):
    """What can be asked next with what the answer holds, for OpenAPI. `parameters`: of that route, as runtime
    expressions such as `$response.body#/run`."""

    method: str
    path: str
    parameters: dict[str, str]


class RouteSpec(Struct, frozen=True):
    """One method of one path.

    public    needs no token
    body      struct of the request body, or None
    body_bytes  bound of the body; None is that of the settings
    answer    struct of the 2xx body, a tuple of structs of which it is one, a JSON Schema, or None for bodies that are
              not JSON
    status    the usual code; 405 for a method that is there only to be refused with a hint of its own
    statuses  the codes besides the first that the route answers on purpose; those that go with a token, a body or
              parameters are known to server/http/openapi.py
    media     media types of the 2xx body, the usual one first
    documented  shown in openapi.json
    links     what to ask next
    """

    method: str
    path: str
    handler: Handler
    summary: str
    tag: str = "runs"
    public: bool = False
    body: Any = None
    body_bytes: int | None = None
    answer: Any = None
    status: int = 200
    statuses: tuple[int, ...] = ()
    params: tuple[Param, ...] = ()
    media: tuple[str, ...] = ("application/json",)
    documented: bool = True
    links: tuple[Link, ...] = ()


def routes(table: Sequence[RouteSpec]) -> list[Route]:
    """Starlette routes, one for each path, so that a wrong method is a 405 that names the right ones."""
    by_path: dict[str, dict[str, RouteSpec]] = {}
    for spec in table:
        by_path.setdefault(spec.path, {})[spec.method] = spec
    # A node key may hold slashes, send@review#5/fan[2], and so may the name of a signal; a path is decoded before it is
    # matched.
    return [
        _Route(path.replace("{key}", "{key:path}").replace("/signals/{name}", "/signals/{name:path}"), specs)
        for path, specs in by_path.items()
    ]


class _Route(Route):
    """Leaves methods that are only refused (status 405) out of `Allow`."""

    def __init__(self, path: str, specs: dict[str, RouteSpec]) -> None:
        super().__init__(path, _endpoint(specs), methods=list(specs))
        offered = {method for method, spec in specs.items() if spec.status != 405}
        self._allow = ", ".join(sorted(offered | ({"HEAD"} if "GET" in offered else set())))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in (self.methods or ()):
            raise HTTPException(405, headers={"Allow": self._allow})
        await self.app(scope, receive, send)


def _endpoint(specs: dict[str, RouteSpec]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        spec = specs["GET" if request.method == "HEAD" else request.method]
        limits: Limits = request.app.state.settings.limits
        call = Call(request, limits if spec.body_bytes is None else replace(limits, request_bytes=spec.body_bytes))
        with patience(limits.write_s):
            if not spec.public:
                call.session = await call.auth.require(request)
            return await spec.handler(call)

    return endpoint
