"""One request as a handler sees it: the request, and the parts of the server that it may use."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar, cast

from msgspec import Struct
from starlette.requests import Request

from executor.engine import Engine
from server.http.auth import Auth
from server.http.query import read_query
from server.http.rates import HookRates, LinkRates
from server.http.sse import Streams
from server.settings import Limits, Settings

Query = TypeVar("Query", bound=Struct)


class Call:
    """`queried`: the struct of query parameters that the route declares. `interface`: folder of the built editor."""

    __slots__ = (
        "auth",
        "engine",
        "hook_rates",
        "interface",
        "limits",
        "link_rates",
        "queried",
        "request",
        "session",
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
        self.streams: Streams = state.streams
        self.link_rates: LinkRates = state.link_rates
        self.hook_rates: HookRates = state.hook_rates
        self.interface: Path | None = state.interface
        self.session: str | None = None  # that lets the request in, if it needs one

    def path(self, name: str) -> str:
        """A variable of the path, decoded."""
        return cast(str, self.request.path_params[name])

    def query(self, type: type[Query]) -> Query:
        """The query parameters. Raises BadRequest (400)."""
        assert type is self.queried, f"{self.request.url.path} describes {self.queried} and reads {type}"
        return read_query(self.request.query_params, type)

    @property
    def address(self) -> str:
        """The other end of the connection; behind a proxy the proxy's."""
        return self.request.client.host if self.request.client else ""

    def accepts(self, media: str) -> bool:
        """True when the Accept header names this media type."""
        accept = self.request.headers.get("accept", "").lower()
        return any(part.partition(";")[0].strip() == media for part in accept.split(","))
