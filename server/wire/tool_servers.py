"""The shapes of a look at an MCP server. None has a secret in it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Text = Annotated[str, Meta(max_length=8_000)]


class ToolServerAsked(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool server as an agent names it (`mcp`), with `${NAME}` for secrets. `connection`: name of a stored one."""

    url: Annotated[str, Meta(min_length=1, max_length=8_000)]
    headers: Annotated[dict[str, Text], Meta(max_length=100)] = {}
    connection: Annotated[str, Meta(max_length=100)] = ""


class OfferedTool(Struct, frozen=True):
    """A tool as the server describes it. `reads`: by its description the tool changes nothing."""

    name: str
    description: str
    reads: bool


class ToolServerChecked(Struct, frozen=True):
    """In the order of the server."""

    tools: list[OfferedTool]
