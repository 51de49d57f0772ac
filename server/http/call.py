"""One request as a handler sees it: the request, and the parts of the server that it may use."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar, cast

from msgspec import Struct
from starlette.datastructures import QueryParams
from starlette.requests import Request

from executor.kernel.store.topics.audit import present_act
from executor.open.engine import Engine
from server.http.auth import Auth
from server.http.principals import Principal
from server.http.query import read_query
from server.http.rates import HookRates, LinkRates
from server.http.streams import Streams
from server.metrics.process import ProcessMeters
from server.oidc.sign_in import SignIn
from server.settings import Limits, Settings

Query = TypeVar("Query", bound=Struct)
NO_QUERY = QueryParams()


class Call:
    """`queried`: the struct of query parameters that the route declares. `interface`: folder of the built editor."""

    __slots__ = (
        "auth",
        "engine",
        "hook_rates",
        "interface",
        "limits",
        "link_rates",
        "oidc",
        "principal",
        "process",
        "queried",
        "request",
        "settings",
        "streams",
    )

    def __init__(self, request: Request, limits: Limits, queried: type[Struct] | None = None) -> None:
        state = request.app.state
        self.request = request
        self.limits = limits
        self.queried = queried
        self.engine: Engine = state.engine
        self.settings: Settings = state.settings
        self.auth: Auth = state.auth
        self.oidc: SignIn | None = state.oidc
        self.streams: Streams = state.streams
        self.process: ProcessMeters = state.process
        self.link_rates: LinkRates = state.link_rates
        self.hook_rates: HookRates = state.hook_rates
        self.interface: Path | None = state.interface
        self.principal: Principal | None = None  # None on public routes

    @property
    def who(self) -> Principal:
        """The principal of the request. Only for routes that are not public."""
        assert self.principal is not None, f"{self.request.url.path} is public"
        return self.principal

    @property
    def provider(self) -> str | None:
        """The name of the sign-in provider, for the button."""
        return None if self.oidc is None else self.oidc.settings.label

    def note(self, detail: str) -> None:
        """Add a detail to the audit entry, besides the route and its path."""
        act = present_act()
        if act is not None:
            act.detail = detail

    def path(self, name: str) -> str:
        """A variable of the path, decoded."""
        return cast(str, self.request.path_params[name])

    def query(self, type: type[Query]) -> Query:
        """The query parameters. Raises BadRequest (400)."""
        assert type is self.queried, f"{self.request.url.path} describes {self.queried} and reads {type}"
        return read_query(self.request.query_params if self.request.scope["query_string"] else NO_QUERY, type)

    @property
    def address(self) -> str:
        """The address of the client. If WEFT_BEHIND_PROXY names the proxy, it is the address that the proxy reports."""
        return self.request.client.host if self.request.client else ""

    @property
    def device(self) -> str:
        """The User-Agent of the browser."""
        return self.request.headers.get("user-agent", "")

    def accepts(self, media: str) -> bool:
        """True when the Accept header names this media type."""
        accept = self.request.headers.get("accept", "").lower()
        return any(part.partition(";")[0].strip() == media for part in accept.split(","))
