"""The route table: what each route is, who may call it, and what OpenAPI says about it. `routes()` turns it into
Starlette.

Every route asks for the token unless it is declared public here: a new route is closed by default.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from executor.store.patience import patience
from server.http.call import Call
from server.settings import Limits

Handler = Callable[[Call], Awaitable[Response]]


class Param(Struct, frozen=True):
    """A header, or what may stand in a path, for OpenAPI. Query parameters are a struct."""

    name: str
    summary: str
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "string"})
    where: Literal["header", "path"] = "header"
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
    body      type of the request body, or None
    body_bytes  bound of the body; None is that of the settings
    answer    type of the 2xx body, a tuple of types of which it is one, or None for bodies that are not JSON
    query     struct of the query parameters, see server/http/query.py
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
    query: type[Struct] | None = None
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
        bounds = limits if spec.body_bytes is None else replace(limits, request_bytes=spec.body_bytes)
        call = Call(request, bounds, spec.query)
        with patience(limits.write_s):
            if not spec.public:
                call.session = await call.auth.require(request)
            return await spec.handler(call)

    return endpoint
