"""MCP servers, asked before an agent uses them: do they answer, and which tools have they? `engine.tool_servers`."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, Final

from msgspec import convert, to_builtins

from compiler.bind import is_env_name
from compiler.references import find
from executor.blocks.http.binding import using
from executor.blocks.mcp.base import ServerTool, ToolServer
from executor.blocks.types.agent.servers import with_credential
from executor.blocks.types.agent.tools import ServerParams, tool_server
from executor.blocks.types.connected import signed_in_with
from executor.blocks.vault.connection import Credential
from executor.errors import BadRequest, BlockError
from executor.service.parts import Parts, Topic

CHECK_S: Final = 15.0  # for one server: a person waits for it
# Errors of the request itself: no server was called.
OF_CALLER: Final = frozenset(
    {
        "address_refused",
        "connection_needs_sign_in",
        "connection_unknown",
        "secret_host_refused",
        "secret_invalid",
        "secret_misplaced",
        "url_invalid",
    }
)
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
        try:
            async with self._room:
                rules = await vault.open(_names_in(mcp, {*vault.environment, *vault.names}))
                server = self._server(mcp)
                with vault.bound(rules):
                    found = await self._ask(server, mcp.get("connection") or None)
        except BlockError as error:
            shown, hint = redactor.redact(error.message), redactor.redact(error.hint)
            if error.code == "params_invalid":
                raise BadRequest(shown, code="mcp_invalid", hint=hint) from error
            if error.code in OF_CALLER:
                raise BadRequest(shown, code=error.code, hint=hint) from error
            raise BlockError(shown, code=error.code, retryable=error.retryable, hint=hint) from error
        return convert(redactor.redact_value(to_builtins(found)), list[ServerTool])

    def _server(self, mcp: Mapping[str, Any]) -> ToolServer:
        values = self._parts.vault.values
        headers = {name: _filled(text, f"/headers/{name}", values) for name, text in (mcp.get("headers") or {}).items()}
        url = _filled(mcp["url"], "/url", values)
        return tool_server(ServerParams({"url": url, "headers": headers, "timeout_s": CHECK_S}))

    async def _ask(self, server: ToolServer, connection: str | None) -> list[ServerTool]:
        async def ask(credential: Credential | None) -> list[ServerTool]:
            return await self._parts.services.tool_servers.tools(with_credential(server, credential))

        with using(server.url, server.headers):
            return await signed_in_with(self._parts.connections, connection, ask)


def _names_in(mcp: Mapping[str, Any], known: Collection[str]) -> Collection[str]:
    texts = (mcp["url"], *(mcp.get("headers") or {}).values())
    return {each.text for text in texts for each in find(text) if each.env and is_env_name(each.text, known)}


def _filled(text: str, pointer: str, values: Mapping[str, str]) -> str:
    """Raises BadRequest(mcp_invalid) for a reference that has no value, or only in a run."""
    parts, at = [], 0
    for each in find(text):
        if not each.env:
            message = f"<{each.text[:80]}> has a value in a run only, so this server cannot be checked here"
            raise BadRequest(message, code="mcp_invalid", pointer=pointer)
        if not is_env_name(each.text, values):
            continue
        if each.text not in values:
            hint = f"set the secret {each.text[:80]} in Settings, or the environment variable of the server"
            message = f"there is no secret or environment variable {each.text[:80]}"
            raise BadRequest(message, code="mcp_invalid", pointer=pointer, hint=hint)
        parts += [text[at : each.start], values[each.text]]
        at = each.end
    return "".join((*parts, text[at:]))
