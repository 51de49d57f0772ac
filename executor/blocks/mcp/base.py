"""The shapes of a server of tools and of its tools. Plain data: a list of tools can be stored as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct


class ToolServer(Struct, frozen=True):
    """The address of a server. `headers` go to the origin of `url` alone; `timeout_s`: for one call, its connection
    included."""

    url: str
    headers: Mapping[str, str] = {}
    timeout_s: float = 60.0

    @property
    def host(self) -> str:
        """The host, for messages."""
        return urlsplit(self.url).hostname or self.url[:100]

    def __repr__(self) -> str:
        """Leave out anything that may be a secret: the text may end up in a log."""
        return f"ToolServer(host={self.host!r})"


class ServerTool(Struct, frozen=True):
    """One tool, as its server describes it. `name`: the server's name for it; `schema`: JSON Schema of the arguments,
    an object; `reads`: the server declares that it changes nothing."""

    name: str
    description: str
    schema: dict[str, Any]
    reads: bool = False
