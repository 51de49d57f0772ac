"""What is said about a server of tools and what it offers. Plain data: a list of tools can be stored as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

Waiting = Callable[[], AbstractContextManager[Any]]


class ToolServer(Struct, frozen=True):
    """Where the server is. `headers` go to the origin of `url` alone; `timeout_s`: for one call, its connection
    included."""

    url: str
    headers: Mapping[str, str] = {}
    timeout_s: float = 60.0

    @property
    def host(self) -> str:
        """For messages."""
        return urlsplit(self.url).hostname or self.url[:100]

    def __repr__(self) -> str:
        """Without what may be a secret: it may end up in a log."""
        return f"ToolServer(host={self.host!r})"


class ServerTool(Struct, frozen=True):
    """One tool, as its server describes it. `name`: as the server calls it; `schema`: JSON Schema of the arguments, an
    object; `reads`: the server says that it changes nothing."""

    name: str
    description: str
    schema: dict[str, Any]
    reads: bool = False


class ToolServers(Protocol):
    """Asks them. Both methods raise BlockError. Retryable: http_connection, http_timeout, and mcp_failed for answers
    such as 503; out_of_resources, which costs no attempt. Not: mcp_failed otherwise, mcp_missing, mcp_tool_missing,
    address_refused, secret_host_refused, redirect_refused, response_too_large, url_invalid."""

    async def tools(
        self, server: ToolServer, only: Sequence[str] = (), *, waiting: Waiting = nullcontext
    ) -> list[ServerTool]:
        """The tools of a server, in its order. `only`: these, all of which must be there; empty: all of them. `waiting`
        is entered while the request waits for its turn."""
        ...

    async def call(
        self, server: ToolServer, tool: str, arguments: Mapping[str, Any], key: str, *, waiting: Waiting = nullcontext
    ) -> Any:
        """What a tool returned: its structured result if it has one, else its text. `key`: of this call, the same when
        it is repeated; sent along for servers that read it. Raises BlockError(mcp_tool_failed): the tool says that it
        failed."""
        ...
