"""The client of blocks. Loading the library takes a second, so it happens with the first call, beside the
event loop.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from executor.blocks.http.client import GuardedClient
from executor.blocks.mcp.base import ServerTool, ToolServer
from executor.errors import BlockError
from executor.kernel.handler.needs import Waiting
from executor.kernel.process.extras import install

if TYPE_CHECKING:
    from executor.blocks.mcp.session import Sessions

SESSIONS_MAX = 50  # per process at the same time; further ones wait
_SESSION = "executor.blocks.mcp.session"


class ToolClient:
    """Shared by all blocks of a process; belongs to the event loop of its first call. Every connection is made by the
    rules of `http`.

    Its methods raise BlockError. Retryable: http_connection, http_timeout, and mcp_failed for answers such as 503;
    out_of_resources, which costs no attempt. Not: mcp_failed otherwise, mcp_missing, mcp_tool_missing, address_refused,
    secret_host_refused, redirect_refused, response_too_large, url_invalid."""

    def __init__(self, http: GuardedClient, *, sessions: int = SESSIONS_MAX) -> None:
        self._http = http
        self._room = asyncio.Semaphore(sessions)
        self._sessions: Sessions | None = None

    async def tools(
        self, server: ToolServer, only: Sequence[str] = (), *, waiting: Waiting = nullcontext
    ) -> list[ServerTool]:
        """Return the tools of a server, in its order. `only`: these, all of which must be there; empty: all of them.
        `waiting` is entered while the request waits for its turn."""
        async with self._session(waiting) as sessions:
            return await sessions.tools(server, only)

    async def call(
        self, server: ToolServer, tool: str, arguments: Mapping[str, Any], key: str, *, waiting: Waiting = nullcontext
    ) -> Any:
        """Call a tool and return its structured result if it has one, else its text. `key` identifies the call and is
        the same when it is repeated; sent along for servers that read it. Raises BlockError(mcp_tool_failed) if the
        tool reports that it failed."""
        async with self._session(waiting) as sessions:
            return await sessions.call(server, tool, arguments, key)

    async def close(self) -> None:
        """Close all connections."""
        if self._sessions is not None:
            await self._sessions.close()

    @asynccontextmanager
    async def _session(self, waiting: Waiting) -> AsyncIterator[Sessions]:
        sessions = self._sessions or await self._begin()
        with waiting() if self._room.locked() else nullcontext():
            await self._room.acquire()
        try:
            yield sessions
        finally:
            self._room.release()

    async def _begin(self) -> Sessions:
        if _SESSION not in sys.modules:
            if find_spec("mcp") is None:
                raise BlockError(
                    "tools of MCP servers need a library that is not installed on this server",
                    code="mcp_missing",
                    retryable=False,
                    hint=install("mcp"),
                )
            await asyncio.to_thread(import_module, _SESSION)
        from executor.blocks.mcp.session import Sessions

        if self._sessions is None:  # another call may have been quicker
            self._sessions = Sessions(self._http.guard())
        return self._sessions
