"""Tools of MCP servers for an agent. The list of the tools of a server is a step, so after a crash the model is offered
the same ones, even if the server has changed. Descriptions and results are data of that server and bounded; the author
may restrict the tools that the model is offered.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import ValidationError, convert, to_builtins
from msgspec.structs import replace

from executor.blocks.http.binding import using
from executor.blocks.mcp.base import ServerTool, ToolServer
from executor.blocks.services import services_of
from executor.blocks.types.agent.tools import Tool, session_headers
from executor.blocks.types.connected import signed_in
from executor.blocks.types.params import invalid
from executor.blocks.vault.connection import Credential
from executor.errors import BlockError
from executor.kernel.handler.base import StepContext

OFFERED_MAX: Final = 128  # tools of an agent, if some are of MCP servers
_NAME_MAX: Final = 64
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]+")


async def with_servers(ctx: StepContext, tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """Return the tools, with each server replaced by its tools. Raises BlockError if a server cannot be reached."""
    servers = [tool for tool in tools.values() if tool.server is not None]
    if not servers:
        return dict(tools)
    listed = await asyncio.gather(*[_listed(ctx, tool) for tool in servers], return_exceptions=True)
    by_entry: dict[str, list[ServerTool]] = {}
    for tool, found in zip(servers, listed, strict=True):
        if isinstance(found, BaseException):
            raise found
        by_entry[tool.name] = found
    # Names of the author come first: a server cannot take one of them.
    taken = {name for name, tool in tools.items() if tool.server is None}
    offered: dict[str, Tool] = {}
    for name, tool in tools.items():
        if tool.server is None:
            offered[name] = tool
            continue
        for remote in by_entry[name]:
            unique = _name(f"{name}_{remote.name}", taken)
            taken.add(unique)
            description = remote.description or tool.description
            offered[unique] = replace(tool, name=unique, description=description, schema=remote.schema, remote=remote)
    if len(offered) > OFFERED_MAX:
        hint = "list the tools of an MCP server that the model may call"
        raise invalid(f"the agent has {len(offered)} tools; the limit is {OFFERED_MAX}", hint)
    return offered


async def call_remote(ctx: StepContext, tool: Tool, arguments: Mapping[str, Any], call: str) -> Any:
    """Call a tool of an MCP server and return its result. `call` identifies the call of the agent. Raises
    BlockError."""
    assert tool.server is not None and tool.remote is not None
    server, name, key = tool.server, tool.remote.name, f"{ctx.idempotency_key}:{call}"

    async def ask(credential: Credential | None) -> Any:
        signed = with_credential(server, credential)
        return await services_of(ctx).tool_servers.call(signed, name, arguments, key, waiting=ctx.waiting)

    with using(server.url, server.headers):
        return await signed_in(ctx, tool.connection, ask)


async def _listed(ctx: StepContext, tool: Tool) -> list[ServerTool]:
    server, only = tool.server, tool.only
    assert server is not None

    async def ask(credential: Credential | None) -> Any:
        return await services_of(ctx).tool_servers.tools(with_credential(server, credential), only, waiting=ctx.waiting)

    async def work() -> Any:
        with using(server.url, server.headers):
            return to_builtins(await signed_in(ctx, tool.connection, ask))

    asked = {"url": server.url, "tools": only}
    output = await ctx.step("tool", f"tools of {tool.name}", asked, work, effect="read")
    try:
        return convert(output, list[ServerTool])
    except ValidationError as error:  # a secret stood where a name was
        message = f"the tools of {tool.name} cannot be read back: {error}"
        raise BlockError(message, code="mcp_failed", retryable=False) from error


def with_credential(server: ToolServer, credential: Credential | None) -> ToolServer:
    if credential is None:
        return server
    headers = dict(server.headers)
    url = credential.put(server.url, headers)
    return replace(server, url=url, headers=session_headers(headers))


def _name(wanted: str, taken: set[str]) -> str:
    """Return a tool name that models accept: letters, digits, _ and -, at most 64 characters, unique."""
    plain = _FOREIGN.sub("_", wanted)[:_NAME_MAX]
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain[: _NAME_MAX - len(str(number)) - 1]}_{number}"
    return name
