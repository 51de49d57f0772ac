"""The connections of the libraries for models: everything passes the guard of our client. Proxies, keys and headers
from the environment of this process reach no server.
"""

from __future__ import annotations

from typing import Final

import httpcore2
import httpx2

from executor.blocks.http.handles import written_as
from executor.blocks.http.httpx2_pools import OneOrigin
from executor.errors import BlockError

REPLY_BYTES_MAX: Final = 16 * 1024 * 1024
# All headers that are sent. The libraries add others from environment variables, and details of this machine.
_HEADERS: Final = frozenset(
    {"accept", "anthropic-beta", "anthropic-version", "connection", "content-length", "content-type", "host",
     "transfer-encoding"}
)  # fmt: skip


class Transport(OneOrigin):
    """The transport of one reply: sends to the origin of `url` alone, with `headers` and nothing else that could be a
    secret, except `query`: the name and value of a query parameter."""

    def __init__(
        self,
        pool: httpcore2.AsyncConnectionPool,
        url: str,
        headers: dict[str, str],
        query: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(pool, url, headers.items())
        self._query = query

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises BlockError(address_refused, response_too_large, secret_host_refused) and httpx2's errors."""
        size = 0
        if self._query is not None:
            name, value = self._query
            request.url = request.url.copy_set_param(name, written_as(value, "f"))

        def take(number: int) -> None:
            nonlocal size
            size += number
            if size > REPLY_BYTES_MAX:
                message = f"the reply of the model is larger than {REPLY_BYTES_MAX} bytes"
                raise BlockError(message, code="response_too_large", retryable=False)

        message = "the reply of the model is compressed, which was not requested"
        return await self.exchange(
            request,
            keeps=_HEADERS.__contains__,
            left=BlockError("a request left the endpoint of its model", code="address_refused", retryable=False),
            compressed=BlockError(message, code="model_connection", retryable=False),
            take=take,
        )
