"""The HTTP of the library for MCP: its client takes a transport, and this one sends to one origin alone, over
connections that the guard makes. The environment's settings of proxies reach no server.
"""

from __future__ import annotations

from typing import Final

import anyio
import httpcore2
import httpx2

from executor.blocks.http.httpx2_pools import OneOrigin
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
