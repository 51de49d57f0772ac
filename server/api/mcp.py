"""weft as an MCP server, over streamable HTTP without sessions: each request is independent, so any server of a fleet
can answer it. The route requires a viewer, and each tool requires the role of its route in the API.

Tools need only five methods, so no library is used: bounds of bodies, credentials, the checks of origins and the audit
are those of every route (decision 37)."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins
from starlette.responses import Response

from executor.service.views import view_of
from server.api.mcp_tools import UnknownTool, call_tool, list_tools
from server.api.runs import KEY, idempotency_key
from server.http.response import Json
from server.http.table import Call, Routes, RouteSpec

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


Id = str | int


class McpMessage(Struct, frozen=True):
    """A request, or a notification: it has no `id`. Answers of a client have no `method`; nothing asks for them."""

    jsonrpc: Literal["2.0"]
    method: Annotated[str, Meta(max_length=200)] | None = None
    id: Id | None = None
    params: dict[str, Any] | None = None


class McpError(Struct, frozen=True):
    """Codes are those of JSON-RPC: -32601 for an unknown method, -32602 for wrong parameters."""

    code: int
    message: str


class McpAnswer(Struct, frozen=True):
    """An answer: either `result` or `error`."""

    jsonrpc: str
    id: Id
    result: dict[str, Any] | UnsetType = UNSET
    error: McpError | UnsetType = UNSET


route = Routes("workflows", RouteSpec)


@route("POST", "/api/mcp/check", "List the tools of an MCP server", needs="editor", audit=False, statuses=(502,))
async def check(call: Call, body: ToolServerAsked) -> ToolServerChecked:
    """Connects to the server, by the rules of agents, and lists its tools. Calls none. 400: the address, a header
    or the connection cannot be used; 502: the server does not answer, refuses the credential, or does not speak MCP."""
    tools = await call.engine.tool_servers.tools(to_builtins(body))
    return ToolServerChecked([view_of(OfferedTool, tool) for tool in tools])


VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
METHOD_UNKNOWN: Final = -32601
PARAMS_INVALID: Final = -32602

INSTRUCTIONS: Final = (
    "Tools that begin with run_ start workflows of this weft server. A run that has not ended within the time of a "
    "call continues: ask for it with `runs`. `waits` lists what runs wait for, and `answer` answers it."
)


@route(
    "POST",
    "/mcp",
    "A message of MCP",
    tag="mcp",
    needs="viewer",
    audit=False,
    answer=McpAnswer,
    statuses=(202,),
    empty=(202,),
    params=(KEY,),
)
async def receive(call: Call, body: McpMessage) -> Response:
    """One message of MCP. 202 for notifications, which are not needed. A tool that fails, or that needs a higher role
    than the caller's, answers with a result that has `isError`."""
    key = idempotency_key(call)
    if body.id is None or body.method is None:
        return Response(status_code=202)
    params = body.params or {}
    match body.method:
        case "initialize":
            wanted = params.get("protocolVersion")
            result: Any = {
                "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": {"name": "weft", "version": version("weft")},
                "instructions": INSTRUCTIONS,
            }
        case "ping":
            result = {}
        case "tools/list":
            cursor = params.get("cursor")
            if not isinstance(cursor, str | None):
                return _failed(body, PARAMS_INVALID, "cursor must be text")
            result = await list_tools(call, cursor)
        case "tools/call":
            name, arguments = params.get("name"), params.get("arguments")
            if not isinstance(name, str) or not isinstance(arguments, dict | None):
                return _failed(body, PARAMS_INVALID, "a call has a name and arguments")
            try:
                result = await call_tool(call, name, arguments or {}, params.get("_meta"), key)
            except UnknownTool:
                return _failed(body, PARAMS_INVALID, f"there is no tool {name[:100]!r}")
        case _:
            return _failed(body, METHOD_UNKNOWN, f"the method {body.method!r} is not supported")
    return Json(McpAnswer("2.0", body.id, result))


def _failed(message: McpMessage, code: int, text: str) -> Response:
    assert message.id is not None
    return Json(McpAnswer("2.0", message.id, UNSET, McpError(code, text)))
