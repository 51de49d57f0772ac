"""`ctx.http`: requests of a handler, by the rules of the HTTP client of blocks.

Private addresses are refused as for an `http` block, secrets go to their hosts only, and waiting for a connection does
not count against the time limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

import orjson

from executor.blocks.types.http_answer import status_error
from executor.errors import BlockError

if TYPE_CHECKING:
    from executor.blocks.http.client import GuardedClient
    from executor.blocks.http.exchanges import Answer

BYTES_MAX: Final = 5 * 1024 * 1024


class Response:
    """`headers`: names in lower case; `url`: after redirects; `ms`: from sending to the last byte."""

    __slots__ = ("_answer", "_method", "_now_ms", "body", "headers", "ms", "reason", "status", "url")

    def __init__(self, method: str, answer: Answer, now_ms: int) -> None:
        self.status = answer.status
        self.reason = answer.reason
        self.headers = answer.headers
        self.body = answer.body
        self.url = answer.url
        self.ms = answer.ms
        self._answer = answer
        self._method = method
        self._now_ms = now_ms

    @property
    def text(self) -> str:
        """The body as UTF-8."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Raises BlockError(response_invalid): the body is not JSON."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            message = f"{self._method} {self.url} answered {self.status} with a body that is not JSON: {error}"
            raise BlockError(message, code="response_invalid", retryable=self.status >= 500) from error

    def raise_for_status(self) -> Response:
        """Raises BlockError(http_status) from status 400 on, as an `http` block does: 408, 425, 429 and 500 and more
        are tried again, not before `Retry-After`."""
        if self.status >= 400:
            raise status_error(self._method, self._answer, self._now_ms)
        return self


class Http:
    """The HTTP client of one attempt, by its idempotency key. `waiting` holds its time limit; `clock` is in Unix ms."""

    __slots__ = ("_client", "_clock", "_idempotency_key", "_waiting")

    def __init__(
        self,
        client: GuardedClient,
        idempotency_key: str,
        waiting: Callable[[], AbstractContextManager[None]],
        clock: Callable[[], int],
    ) -> None:
        self._client = client
        self._idempotency_key = idempotency_key
        self._waiting = waiting
        self._clock = clock

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        content: bytes | None = None,
        timeout_s: float = 30.0,
        max_bytes: int = BYTES_MAX,
        follow_redirects: bool = True,
    ) -> Response:
        """Return the whole response, whatever its status. `json`: any JSON value as the body. Methods other than GET
        and HEAD send the idempotency key of the attempt as `Idempotency-Key`, unless `headers` has one. Raises
        BlockError: see executor.blocks.http.client."""
        sent = dict(headers or {})
        names = {name.lower() for name in sent}
        if json is not None:
            if content is not None:
                raise ValueError("a request has json or content, not both")
            content = orjson.dumps(json)
            if "content-type" not in names:
                sent["Content-Type"] = "application/json"
        method = method.upper()
        if method not in ("GET", "HEAD") and "idempotency-key" not in names:
            sent["Idempotency-Key"] = self._idempotency_key
        answer = await self._client.request(
            method,
            url,
            headers=sent,
            content=content,
            timeout_s=timeout_s,
            max_bytes=max_bytes,
            follow_redirects=follow_redirects,
            waiting=self._waiting,
        )
        return Response(method, answer, self._clock())

    async def get(self, url: str, **options: Any) -> Response:
        """`request` with GET and its options."""
        return await self.request("GET", url, **options)

    async def post(self, url: str, json: Any = None, **options: Any) -> Response:
        """`request` with POST and its options."""
        return await self.request("POST", url, json=json, **options)
