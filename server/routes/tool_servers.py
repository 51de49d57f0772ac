"""A look at an MCP server, before an agent calls its tools."""

from __future__ import annotations

from msgspec import to_builtins
from starlette.responses import Response

from server.http.body import read_as
from server.http.call import Call
from server.http.response import json_response
from server.http.table import RouteSpec
from server.wire.tool_servers import OfferedTool, ToolServerAsked, ToolServerChecked


async def check(call: Call) -> Response:
    """Connects to the server, by the rules of agents, and lists its tools. Calls none. 400: the address, a header
    or the connection cannot be used; 502: the server does not answer, refuses the credential, or does not speak MCP."""
    asked = await read_as(call.request, call.limits, ToolServerAsked)
    tools = await call.engine.tool_servers.tools(to_builtins(asked))
    return json_response(ToolServerChecked([OfferedTool(tool.name, tool.description, tool.reads) for tool in tools]))


TABLE = (
    RouteSpec(
        "POST",
        "/api/mcp/check",
        check,
        "List the tools of an MCP server",
        "workflows",
        needs="editor",
        audit=False,
        body=ToolServerAsked,
        answer=ToolServerChecked,
        statuses=(400, 502),
    ),
)
