"""What is said about a server of tools and what it offers. Plain data: a list of tools can be stored as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any
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
