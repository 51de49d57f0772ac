"""MCP servers, asked before an agent uses them: do they answer, and which tools have they? `engine.tool_servers`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from msgspec import convert, to_builtins

from executor.blocks.http.binding import using
from executor.blocks.mcp.base import ServerTool, ToolServer
from executor.blocks.types.agent.servers import with_credential
from executor.blocks.types.agent.tools import ServerParams, tool_server
from executor.blocks.types.connected import signed_in_with
from executor.blocks.vault.connection import Credential
from executor.service.parts import Parts, Topic
from executor.service.topics.before_runs import filled, names_in, shown_errors

INVALID: Final = "mcp_invalid"
CHECK_S: Final = 15.0  # for one server: a person waits for it
CHECKS_MAX: Final = 4  # per process at the same time; agents need sessions, too


class ToolServers(Topic):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._room = asyncio.Semaphore(CHECKS_MAX)

    async def tools(self, mcp: Mapping[str, Any]) -> list[ServerTool]:
        """List all tools of a server. `mcp`: `url`, `headers` and `connection`, as the tool of an agent has them, by
        the rules of the block. Results and errors have no secrets in them. Raises BadRequest(mcp_invalid, or one of
        OF_CALLER); BlockError like ToolClient, or because a secret could not be read."""
        vault, redactor = self._parts.vault, self._parts.redactor
        with shown_errors(self._parts, INVALID):
            async with self._room:
                texts = (mcp["url"], *(mcp.get("headers") or {}).values())
                rules = await vault.open(names_in(texts, {*vault.environment, *vault.names}))
                server = self._server(mcp)
                with vault.bound(rules):
                    found = await self._ask(server, mcp.get("connection") or None)
        return convert(redactor.redact_value(to_builtins(found)), list[ServerTool])

    def _server(self, mcp: Mapping[str, Any]) -> ToolServer:
        values = self._parts.vault.values
        given = (mcp.get("headers") or {}).items()
        headers = {name: filled(text, f"/headers/{name}", values, INVALID) for name, text in given}
        url = filled(mcp["url"], "/url", values, INVALID)
        return tool_server(ServerParams({"url": url, "headers": headers, "timeout_s": CHECK_S}))

    async def _ask(self, server: ToolServer, connection: str | None) -> list[ServerTool]:
        async def ask(credential: Credential | None) -> list[ServerTool]:
            return await self._parts.services.tool_servers.tools(with_credential(server, credential))

        with using(server.url, server.headers):
            return await signed_in_with(self._parts.connections, connection, ask)
