"""The route table: each route, the role that may call it, and its description in OpenAPI. `routes()` turns it into
Starlette.

Every route asks for an admin unless its RouteSpec names a lesser role, or is public: a new route is closed by
default. This is the one place that enforces it.

Changes that a route makes are recorded in the audit, in the same transaction as the change (`store.topics.audit`).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import UnionType
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Struct, field
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from executor.errors import NotFound, ReadOnly, WeftError
from executor.kernel.process.acting import Act, Role, acting, present_act
from executor.kernel.process.observe import parent_of, with_parent
from executor.kernel.process.tracing import Served
from executor.kernel.store.patience import patience
from executor.open.engine import Engine
from server.http.auth import ANYONE, Auth
from server.http.errors import Forbidden, status_of
from server.http.principal import Principal
from server.http.rates import Rates
from server.http.request import header, query_of, read_as, read_query
from server.http.response import Json, PackedJson
from server.http.security import ACTOR, ROUTE, Answer
from server.http.streams import Streams
from server.metrics import ProcessMeters
from server.oidc.provider import SignIn
from server.settings import Limits, Settings
from server.ui import Extras, extras

T = TypeVar("T")


class Call:
    """A request, and what its handler uses. `interface`: folder of the built editor."""

    def __init__(self, request: Request, limits: Limits) -> None:
        state = request.app.state
        self.request = request
        self.limits = limits
        self.engine: Engine = state.engine
        self.settings: Settings = state.settings
        self.auth: Auth = state.auth
        self.oidc: SignIn | None = state.oidc
        self.streams: Streams = state.streams
        self.process: ProcessMeters = state.process
        self.rates: Rates = self.auth.rates
        self.interface: Path | None = state.interface
        self.principal: Principal | None = None  # None on public routes

    def header(self, name: bytes) -> str | None:
        return header(self.request.scope, name)

    @property
    def who(self) -> Principal:
        """The principal of the request. Only for routes that are not public."""
        assert self.principal is not None, f"{self.request.url.path} is public"
        return self.principal

    @property
    def provider(self) -> str | None:
        return None if self.oidc is None else self.oidc.settings.label

    def record(self, detail: str) -> None:
        """Add a detail to the audit entry, besides the route and its path."""
        act = present_act()
        if act is not None:
            act.detail = detail

    @property
    def address(self) -> str:
        """The address of the client. If WEFT_BEHIND_PROXY names the proxy, it is the address that the proxy reports."""
        return self.request.client.host if self.request.client else ""

    @property
    def device(self) -> str:
        return self.header(b"user-agent") or ""

    @property
    def media_type(self) -> str:
        return (self.header(b"content-type") or "").partition(";")[0].strip().lower()

    @property
    def extras(self) -> Extras:
        """Parts that the interface adds to pages made here, if it was built: fonts, checks while a form is filled in, a
        notice when the question was answered elsewhere."""
        return extras(self.interface, "resume")

    async def follow_link(self, found: Awaitable[T]) -> T:
        """Return what a link leads to. A link to nothing counts against the address of the client. Raises NotFound,
        TooManyTries."""
        try:
            return await found
        except NotFound:
            self.rates.link_missed(self.address)
            raise

    def accepts(self, media: str) -> bool:
        """True when the Accept header names this media type."""
        accept = (self.header(b"accept") or "").lower()
        return any(part.partition(";")[0].strip() == media for part in accept.split(","))


def links_to(path: str, *ways: str) -> tuple[Link, ...]:
    """Return the links to what an answer has the name of: `GET` to the path itself, `POST /run` below it."""
    named = {name: f"$response.body#/{name}" for name in re.findall(r"{(\w+)}", path)}
    return tuple(Link(method, path + rest, named) for method, _, rest in (way.partition(" ") for way in ways))


Handler = Callable[..., Awaitable[Any]]  # of a Call, and by name of what RouteSpec derives from its annotations
H = TypeVar("H", bound=Handler)
P = ParamSpec("P")


class Param(Struct, frozen=True):
    """A header, or what may stand in a path, for OpenAPI. Query parameters are a struct."""

    name: str
    summary: str
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "string"})
    where: Literal["header", "path"] = "header"
    required: bool = False


class Link(Struct, frozen=True):
    """A link in OpenAPI: a request that uses a value of this answer. `parameters` are those of the other route, as
    runtime expressions such as `$response.body#/run`."""

    method: str
    path: str
    parameters: dict[str, str]


class RouteSpec(Struct, frozen=True):
    """One method of one path. Parameters of the handler are variables of the path, and `query` and `body`, which are
    read before it runs; it returns the body of the answer, or a Response: Json[T] for another status or headers. So
    `body`, `query` and `answer` are stated here only where the handler reads or writes them itself.

    tag       the topic in OpenAPI; empty for that of its Routes
    needs     the least role that may call it
    public    asks for no credential
    audit     whether its changes are recorded with their actor; by default all methods but GET. Starts of runs
              are not: they are frequent, and the journal of a run has its starter
    body      type of the request body, or None
    takes     media type of a body that is not JSON
    body_bytes  bound of the body; None is that of the settings
    answer    type of the 2xx body, a tuple of alternatives, or None for bodies that are not JSON
    query     struct of the query parameters, see server/http/request.py
    given     the names of the handler's parameters
    status    the usual code; 405 for a method that is there only to be refused with a hint of its own
    statuses  the codes besides the first that the route answers on purpose; server/http/openapi.py adds those that
              go with a token, a body, parameters or a path that names something
    always    there is an answer for each name in the path: it makes what is not there, or the answer is empty
    empty     the 2xx codes that have no body
    media     media types of the 2xx body, the usual one first
    documented  shown in openapi.json
    links     requests that use the answer
    signs     it signs in or out, and is there on a read-only server too, which refuses all else but GET
    """

    handler: Handler
    method: str
    path: str
    summary: str
    tag: str = ""
    needs: Role = "admin"
    public: bool = False
    audit: bool | None = None
    body: Any = None
    takes: str | None = None
    body_bytes: int | None = None
    answer: Any = None
    status: int = 200
    statuses: tuple[int, ...] = ()
    always: bool = False
    empty: tuple[int, ...] = (204,)
    query: type[Struct] | None = None
    params: tuple[Param, ...] = ()
    media: tuple[str, ...] = ("application/json",)
    documented: bool = True
    links: tuple[Link, ...] = ()
    signs: bool = False
    given: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The route in metrics, logs and the audit."""
        return f"{self.method} {self.path}"

    @property
    def is_audited(self) -> bool:
        return self.method not in ("GET", "HEAD") if self.audit is None else self.audit


class Routes(Generic[P]):
    """The routes of one topic, in the order of their handlers. It is the decorator that adds one: its parameters are
    those of RouteSpec without the handler."""

    def __init__(self, tag: str, make: Callable[Concatenate[Handler, P], RouteSpec]) -> None:
        self.table: list[RouteSpec] = []
        self._tag, self._make = tag, make

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Callable[[H], H]:
        return lambda handler: self._add(handler, self._make(handler, *args, **kwargs))

    def page(self, *args: P.args, **kwargs: P.kwargs) -> Callable[[H], H]:
        """Add a page for browsers: it asks for no credential, and is no part of the API."""
        return lambda handler: self._add(
            handler, replace(self._make(handler, *args, **kwargs), public=True, documented=False)
        )

    def _add(self, handler: H, stated: RouteSpec) -> H:
        spec = _derived(stated)
        self.table.append(spec if spec.tag else replace(spec, tag=self._tag))
        return handler


def _derived(spec: RouteSpec) -> RouteSpec:
    hints = get_type_hints(spec.handler, include_extras=True)
    answers, given = _bodies(hints.pop("return")), tuple(hints)[1:]
    unknown = [name for name in given if name not in ("query", "body") and f"{{{name}}}" not in spec.path]
    assert not unknown, f"{spec.method} {spec.path} has no {unknown}"
    return replace(
        spec,
        given=given,
        body=hints.get("body", spec.body),
        query=hints.get("query", spec.query),
        answer=spec.answer if not answers else answers[0] if len(answers) == 1 else answers,
    )


def _bodies(returned: Any) -> tuple[Any, ...]:
    """Return the types of JSON in the type that a handler returns."""
    if get_origin(returned) in (Union, UnionType):
        return tuple(body for one in get_args(returned) for body in _bodies(one))
    if get_origin(returned) in (Json, PackedJson):
        return get_args(returned)
    return () if isinstance(returned, type) and issubclass(returned, Response) else (returned,)


async def answer(spec: RouteSpec, call: Call) -> Response:
    """Read what the handler is given, and call it. Raises BadRequest (400), BodyInvalid (422)."""
    request, given = call.request, {}
    for name in spec.given:
        if name == "query":
            assert spec.query is not None
            given[name] = read_query(query_of(request.scope), spec.query)
        elif name == "body":
            given[name] = await read_as(request, call.limits, spec.body)
        else:
            given[name] = request.path_params[name]
    found = await spec.handler(call, **given)
    return found if isinstance(found, Response) else Json(found, spec.status)


async def traced(spec: RouteSpec, call: Call) -> Response:
    """Return the answer, with a span that ends when the answer begins."""
    sent = call.header(b"traceparent")
    if sent is None:
        return await answer(spec, call)
    tracing, clock = call.engine.parts.services.tracing, call.engine.parts.clock
    caller = parent_of(sent)
    if caller is None or tracing is None:
        with with_parent(sent):
            return await answer(spec, call)
    span, start_ms, status = secrets.token_hex(8), clock.now_ms(), 500
    try:
        with with_parent(f"00-{caller.trace}-{span}-01"):
            response = await answer(spec, call)
        status = response.status_code
        return response
    except WeftError as error:
        status = status_of(error)
        raise
    except HTTPException as error:
        status = error.status_code
        raise
    finally:
        tracing.served(Served(caller, span, spec.method, spec.path, status, start_ms, clock.now_ms()))


class Table:
    """The application of all routes. Paths of no route, and methods that a path has not, are left to `others`:
    Starlette's router, which has the same routes. That tries one route after the other."""

    def __init__(self, table: Sequence[RouteSpec]) -> None:
        by_path: dict[str, dict[str, RouteSpec]] = {}
        for spec in table:
            by_path.setdefault(spec.path, {})[spec.method] = spec
        # A node key may hold slashes, send@review#5/fan[2], and so may the name of a signal; a path is decoded before
        # it is matched.
        every = [
            _Route(path.replace("{key}", "{key:path}").replace("/signals/{name}", "/signals/{name:path}"), specs)
            for path, specs in by_path.items()
        ]
        self._constant = {route.path: route for route in every if "{" not in route.path}
        self._variable = [route for route in every if "{" in route.path]
        # Constant paths first: a method that one has not is refused with the methods of that path.
        self.routes = [*self._constant.values(), *self._variable]
        self.others: ASGIApp
        patterns = (re.sub(r"\?P<\w+>", "?:", route.path_regex.pattern) for route in self._variable)
        self._any_variable = re.compile("|".join(f"({pattern})" for pattern in patterns))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self.find(scope) if scope["type"] == "http" else None
        if found is None:
            await self.others(scope, receive, send)
            return
        spec, scope["path_params"] = found
        await _handle(spec, scope, receive, send)

    def find(self, scope: Scope) -> tuple[RouteSpec, dict[str, str]] | None:
        path, method = scope["path"], scope["method"]
        if scope.get("root_path"):
            return None
        params: dict[str, str] = {}
        route = self._constant.get(path)
        if route is None:
            found = self._any_variable.match(path)
            if found is None or found.lastindex is None:
                return None
            route = self._variable[found.lastindex - 1]
            whole = route.path_regex.match(path)
            assert whole is not None
            params = whole.groupdict()
        spec = route.specs.get("GET" if method == "HEAD" else method)
        return None if spec is None else (spec, params)


class _Route(Route):
    """One path, so that a wrong method is a 405 that names the right ones. Methods that are only refused (status 405)
    are not in `Allow`."""

    def __init__(self, path: str, specs: dict[str, RouteSpec]) -> None:
        super().__init__(path, self.handle, methods=list(specs))
        self.specs = specs
        offered = {method for method, spec in specs.items() if spec.status != 405}
        self._allow = ", ".join(sorted(offered | ({"HEAD"} if "GET" in offered else set())))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        spec = self.specs.get("GET" if scope["method"] == "HEAD" else scope["method"])
        if spec is None:
            raise HTTPException(405, headers={"Allow": self._allow})
        await _handle(spec, scope, receive, send)


async def _handle(spec: RouteSpec, scope: Scope, receive: Receive, send: Send) -> None:
    scope[ROUTE] = spec.label
    response = await _respond(Request(scope, receive, send), spec)
    if isinstance(send, Answer):
        await send.send(response, receive)
    else:
        await response(scope, receive, send)


async def _respond(request: Request, spec: RouteSpec) -> Response:
    """Check that the caller may use the route, and return its answer. Errors become answers in `security.Guard`."""
    settings: Settings = request.scope["app"].state.settings
    if settings.read_only and spec.method != "GET" and not spec.signs:
        hint = "Ask the server that executes the runs."
        raise ReadOnly("This server is read-only: it executes and changes nothing.", hint=hint)
    limits = settings.limits
    call = Call(request, limits if spec.body_bytes is None else replace(limits, request_bytes=spec.body_bytes))
    with patience(limits.write_s):
        if spec.public:
            return await answer(spec, call)
        call.principal = who = await call.auth.require(request)
        request.scope[ACTOR] = who.actor
        if not who.may(spec.needs):
            raise Forbidden(f"This needs the role {spec.needs}; yours is {who.role}.", needs=spec.needs, role=who.role)
        if who.workflows is not None:
            await check_workflows(call, who.workflows)
        if spec.method == "GET" or who is ANYONE:
            return await traced(spec, call)
        now_ms, path = call.engine.parts.clock.now_ms(), request.url.path
        act = Act(who.actor, who.via, spec.label, path, now_ms, person=who.answerer.name, reach=who.reach)
        act.is_recorded = not spec.is_audited
        with acting(act):
            return await traced(spec, call)


async def check_workflows(call: Call, workflows: Sequence[str]) -> None:
    """Check that a token for some workflows is used only for paths of one of them. Raises Forbidden."""
    params = call.request.path_params
    path = call.request.url.path
    name: str | None = None
    if path.startswith("/api/workflows/"):
        name = await call.engine.store.named(params.get("name", ""))  # by its title it is reached, too
    elif path.startswith("/api/runs/") and "id" in params:
        row = await call.engine.store.get_run(params["id"])
        name = None if row is None else row.workflow
        if "other" in params:
            other = await call.engine.store.get_run(params["other"])
            name = name if other is not None and other.workflow == name else None
    elif path.startswith("/api/files/"):
        if await call.engine.store.holds_file(params["id"], workflows):
            return
    elif path in ("/api/version", "/api/me", "/api/files", "/mcp"):  # the last looks at each workflow itself
        return
    if name not in workflows:
        raise Forbidden("This token is only for some workflows.", hint="Use a token without that restriction.")
