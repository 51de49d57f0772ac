"""Sessions with MCP servers, by the library `mcp`, of which the client for streamable HTTP is used and nothing else: no
programs of this machine, no OAuth, no answers to questions of a server. The only file that depends on that library; it
comes with the extra `mcp`.

Each list and each call is a session of its own: a run may come back to an agent after days, in another process.

The HTTP of the library for MCP: its client takes a transport, and this one sends to one origin alone, over
connections that the guard makes. The environment's settings of proxies reach no server.
"""

from __future__ import annotations

import asyncio
import logging
import re
import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final, TypeVar, cast

import anyio
import httpcore2
import httpx2
import orjson
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    HEADER_MISMATCH,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    InputRequiredResult,
    PaginatedRequestParams,
)
from pydantic import TypeAdapter, ValidationError

from compiler.schema import schema_error
from executor.blocks.http.backend import GuardedBackend
from executor.blocks.http.exchanges import parse_url, unbroken
from executor.blocks.http.httpx2_pools import Connections, OneOrigin
from executor.blocks.mcp.base import ServerTool, ToolServer
from executor.errors import BlockError

ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024  # for all answers of one session together
# The headers that are sent, besides those that begin with `mcp-` and those of the author.
_HEADERS: Final = frozenset(
    {"accept", "connection", "content-length", "content-type", "host", "last-event-id", "transfer-encoding"}
)
_CLOSE_S: Final = 2.0


class Transport(OneOrigin):
    """The transport of one session with the server at `url`. `problem`: why a request could not be made or read,
    because the library only logs some reasons; `status`: of the last answer, if it was an error."""

    def __init__(self, pool: httpcore2.AsyncConnectionPool, url: str, headers: dict[str, str]) -> None:
        super().__init__(pool, url, [*headers.items(), ("User-Agent", "weft")])
        self._size = 0
        self.problem: BlockError | None = None
        self.status: int | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises BlockError(redirect_refused, secret_host_refused, address_refused, response_too_large) and httpx2's
        errors."""
        try:
            if request.method == "DELETE":  # the end of a session, for which no result waits
                with anyio.fail_after(_CLOSE_S):
                    return await self._last(request)
            return await self._send(request)
        except BlockError as error:
            self.problem = error
            raise

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        left = "the redirect of an MCP server leads to another server"
        compressed = "the answer of the MCP server is compressed, which was not requested"
        response = await self.exchange(
            request,
            keeps=lambda name: name in _HEADERS or name.startswith("mcp-"),
            left=BlockError(left, code="redirect_refused", retryable=False),
            compressed=BlockError(compressed, code="mcp_failed", retryable=False),
            take=self._take,
        )
        if request.method == "POST":
            self.status = response.status_code if response.status_code >= 400 else None
        return response

    async def _last(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._send(request)
        await response.aclose()
        return httpx2.Response(response.status_code)

    def _take(self, size: int) -> None:
        self._size += size
        if self._size > ANSWER_BYTES_MAX:
            message = f"the answers of the MCP server are larger than {ANSWER_BYTES_MAX} bytes"
            self.problem = BlockError(message, code="response_too_large", retryable=False)
            raise self.problem


# Servers choose what these would write to the log of this one, and at length.
for _name in ("mcp", "client", "httpx2"):  # the second is that of its sessions
    logging.getLogger(_name).setLevel(logging.CRITICAL)

T = TypeVar("T")
TOOLS_MAX: Final = 100  # per server
PAGES_MAX: Final = 20
NAME_MAX: Final = 128
DESCRIPTION_MAX: Final = 2_000
SCHEMA_BYTES_MAX: Final = 32 * 1024  # per tool
TEXT_MAX: Final = 256 * 1024  # characters of a result
KEY: Final = "weft/idempotencyKey"  # in `_meta` of a call
_CONNECT_S: Final = 5.0
_SHOWN: Final = 300
_RETRYABLE: Final = frozenset({408, 425, 429})
_RESULT: TypeAdapter[Any] = TypeAdapter(CallToolResult | InputRequiredResult)
_SELF: Final = Implementation(name="weft", version=version("weft"))
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]+")


class Sessions:
    """The sessions of one process; belongs to an event loop."""

    def __init__(self, guard: GuardedBackend) -> None:
        self._connections = Connections(guard)

    async def tools(self, server: ToolServer, only: Sequence[str]) -> list[ServerTool]:
        """See ToolClient."""

        async def work(client: Client) -> list[ServerTool]:
            found: dict[str, ServerTool] = {}
            cursor: str | None = None
            for _ in range(PAGES_MAX):
                page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
                for tool in page.tools:
                    if (not only or tool.name in only) and (read := _tool(tool)) is not None:
                        found.setdefault(read.name, read)
                cursor = page.next_cursor
                if cursor is None or len(found) > TOOLS_MAX:
                    break
            return list(found.values())

        tools = await self._within(server, work)
        missing = [name for name in only if name not in {tool.name for tool in tools}]
        if missing:
            message = f"the MCP server {server.host} has no usable tool {missing[0][:NAME_MAX]!r}"
            raise BlockError(message, code="mcp_tool_missing", retryable=False)
        if len(tools) > TOOLS_MAX:
            message = f"the MCP server {server.host} has more than {TOOLS_MAX} tools"
            raise BlockError(message, code="mcp_failed", retryable=False, hint="list those that the model may call")
        return tools

    async def call(self, server: ToolServer, tool: str, arguments: Mapping[str, Any], key: str) -> Any:
        """See ToolClient."""
        params = CallToolRequestParams(name=tool, arguments=dict(arguments), _meta=cast(Any, {KEY: key}))

        async def work(client: Client) -> Any:
            # Not `Client.call_tool`, which checks results against a schema of the server, for as long as that takes.
            request = CallToolRequest(params=params)
            try:
                return await client.session.send_request(request, _RESULT)
            except MCPError as error:
                if error.code != HEADER_MISMATCH:
                    raise
            await client.session.list_tools()  # finds the arguments that are headers as well
            return await client.session.send_request(request, _RESULT)

        result = await self._within(server, work)
        if not isinstance(result, CallToolResult):
            message = f"the tool {tool[:NAME_MAX]!r} asks for input, which an agent cannot give"
            raise BlockError(message, code="mcp_tool_failed", retryable=False)
        shown = _text(result)
        if result.is_error:
            raise BlockError(shown[:TEXT_MAX] or "the tool failed", code="mcp_tool_failed", retryable=False)
        if result.structured_content is not None:
            data = orjson.dumps(result.structured_content)
            return result.structured_content if len(data) <= TEXT_MAX else _cut(data.decode())
        return _cut(shown)

    async def close(self) -> None:
        """Close all connections."""
        await self._connections.close()

    async def _within(self, server: ToolServer, work: Callable[[Client], Awaitable[T]]) -> T:
        url = str(parse_url(server.url))
        pool = await self._connections.pool(url.startswith("https://"))
        transport = Transport(pool, url, dict(server.headers))
        try:
            async with asyncio.timeout(server.timeout_s):
                return await unbroken(_session(url, transport, server.timeout_s, work))
        except TimeoutError as error:
            message = f"{server.host}: no complete answer of the MCP server within {server.timeout_s:g} s"
            raise BlockError(message, code="http_timeout") from error
        except Exception as error:
            raise _block_error(server, transport, error) from error


async def _session(url: str, transport: Transport, timeout_s: float, work: Callable[[Client], Awaitable[T]]) -> T:
    client = httpx2.AsyncClient(
        transport=transport, trust_env=False, timeout=httpx2.Timeout(timeout_s, connect=_CONNECT_S)
    )
    results: list[T] = []
    try:
        streams = streamable_http_client(url, http_client=client, max_sse_event_size=ANSWER_BYTES_MAX)
        async with Client(streams, mode="auto", cache=None, client_info=_SELF) as session:
            results.append(await work(session))
    except Exception:
        if not results:  # failures after the result change nothing
            raise
    return results[0]


def _tool(tool: Any) -> ServerTool | None:
    """Convert a tool, or return None if it cannot be offered to a model."""
    schema = {"type": "object", "properties": {}, **tool.input_schema}
    data = orjson.dumps(schema)
    usable = len(data) <= SCHEMA_BYTES_MAX and schema["type"] == "object" and schema_error(data) is None
    if not usable or len(tool.name) > NAME_MAX or _NAME.fullmatch(tool.name) is None:
        return None
    reads = tool.annotations is not None and tool.annotations.read_only_hint is True
    return ServerTool(tool.name, _plain(tool.description or tool.title or "")[:DESCRIPTION_MAX], schema, reads)


def _plain(text: str) -> str:
    """Remove characters that are invisible to people and read by models."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Co", "Cn", "Cs"))


def _text(result: CallToolResult) -> str:
    """Return the texts of a result. Other content is named."""
    parts: list[str] = []
    for block in result.content:
        match block.type:
            case "text":
                parts.append(block.text)
            case "resource" if hasattr(block.resource, "text"):
                parts.append(block.resource.text)
            case "resource":
                parts.append(f"[resource {str(block.resource.uri)[:_SHOWN]}]")
            case "resource_link":
                parts.append(f"[link {block.name[:_SHOWN]}: {str(block.uri)[:_SHOWN]}]")
            case _:
                parts.append(f"[{block.type} {block.mime_type}, {len(block.data) * 3 // 4} bytes]")
    return "\n".join(parts)


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}\n[cut: it has {len(text)} characters]"


def _block_error(server: ToolServer, transport: Transport, error: Exception) -> BlockError:
    """The library raises groups from its tasks, and some errors reach it only as the end of a stream."""
    found = _first(error)
    if transport.problem is not None:
        return transport.problem
    if isinstance(found, BlockError):
        return found
    shown = f"{server.host}: {str(found)[:_SHOWN] or type(found).__name__}"
    if isinstance(found, httpx2.TimeoutException):
        return BlockError(shown, code="http_timeout")
    if isinstance(found, httpx2.TransportError):
        return BlockError(shown, code="http_connection", retryable=not isinstance(found, httpx2.UnsupportedProtocol))
    if isinstance(found, MCPError):
        status = transport.status
        if status is not None:
            message = f"{server.host}: the MCP server answered {status}: {found.message[:_SHOWN]}"
            retryable = status in _RETRYABLE or status >= 500
            return BlockError(message, code="mcp_failed", retryable=retryable, answer_status=status)
        return BlockError(f"{server.host}: {found.message[:_SHOWN]}", code="mcp_failed", retryable=False)
    if isinstance(found, ValidationError):
        shown = f"{server.host}: the answer of the MCP server cannot be read"
    return BlockError(shown, code="mcp_failed", retryable=False)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
