"""An MCP server on a free port of this machine, made with the library `mcp`, beside the test in its event loop."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

HOST = "127.0.0.1"
READS = ToolAnnotations(read_only_hint=True)


class Shop:
    """`called` counts the calls by tool and number, `headers` has those of each request; `pause_s` is how long a call
    takes; `admits` says which Authorization headers are not answered with 401."""

    def __init__(self, more: Callable[[MCPServer], None] | None = None) -> None:
        self.called: Counter[tuple[str, int]] = Counter()
        self.headers: list[dict[str, str]] = []
        self.pause_s = 0.0
        self.admits: Callable[[str], bool] | None = None
        self.place = ""
        self.server = MCPServer("shop")
        self.server.add_tool(self._find, name="find", description="Finds an order.", annotations=READS)
        self.server.add_tool(self._pay, name="pay", description="Pays an order.")
        if more is not None:
            more(self.server)

    @property
    def url(self) -> str:
        return f"http://{self.place}/mcp"

    async def _find(self, id: int) -> dict[str, Any]:
        return await self._work("find", id)

    async def _pay(self, id: int) -> dict[str, Any]:
        if id < 0:
            raise ToolError("there is no such order")
        return await self._work("pay", id)

    async def _work(self, tool: str, id: int) -> dict[str, Any]:
        self.called[tool, id] += 1
        await asyncio.sleep(self.pause_s)
        return {"tool": tool, "order": id}

    def app(self) -> ASGIApp:
        inner = self.server.streamable_http_app()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                headers = {name.decode(): value.decode() for name, value in scope["headers"]}
                self.headers.append(headers)
                if self.admits is not None and not self.admits(headers.get("authorization", "")):
                    await PlainTextResponse("who are you?", 401)(scope, receive, send)
                    return
            await inner(scope, receive, send)

        return app


@asynccontextmanager
async def mcp_shop(more: Callable[[MCPServer], None] | None = None) -> AsyncIterator[Shop]:
    shop = Shop(more)
    listening = socket.socket()
    listening.bind((HOST, 0))
    shop.place = f"{HOST}:{listening.getsockname()[1]}"
    server = uvicorn.Server(
        uvicorn.Config(shop.app(), log_level="warning", access_log=False, ws="none", timeout_graceful_shutdown=5)
    )
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield shop
    finally:
        server.should_exit = True
        await serving
        listening.close()
