"""`ctx.http`: requests of a handler, by the rules of the HTTP client of blocks; and an HTTP answer as a block's value,
or as the error that its status means.

Private addresses are refused as for an `http` block, secrets go to their hosts only, and waiting for a connection does
not count against the time limit.
"""

from __future__ import annotations

import asyncio
import base64
import codecs
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

import orjson

from executor.blocks.http.binding import is_bound, without_secrets
from executor.blocks.http.parts import header_of
from executor.errors import BlockError
from executor.kernel.values.payload import render

if TYPE_CHECKING:
    from executor.blocks.http.client import GuardedClient
    from executor.blocks.http.exchanges import Answer


_RETRYABLE = frozenset({408, 425, 429})
_BODY_SHOWN = 300
_ASIDE_BYTES = 64 * 1024
# In others a server could spell a secret so that it is not found: EBCDIC, UTF-7, UTF-16 without a mark.
_CHARSETS = frozenset({"ascii", "utf-8", "utf-8-sig", "iso8859-1", *(f"cp{page}" for page in range(1250, 1259))})
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_RETRY_AFTER_MAX_MS = 24 * 3600 * 1000  # a longer one is a mistake or an attempt to hold the run


def decoded(answer: Answer) -> tuple[Any, str]:
    """Return the body as a JSON value, and its form: json, text, base64 (bytes that are not text), none (there is no
    body)."""
    if not answer.body:
        return None, "none"
    kind = header_of("Content-Type", answer.headers.get("content-type", "text/plain"))
    media = kind.get_content_type()
    if media == "application/json" or media.endswith("+json"):
        try:
            return orjson.loads(answer.body), "json"
        except orjson.JSONDecodeError:
            pass  # labelled JSON but is not: then it is text
    try:
        charset = codecs.lookup(kind.get_content_charset("utf-8")).name
        if charset in _CHARSETS or (charset.startswith("utf-16") and answer.body.startswith(_MARKS)):
            # One charset with a byte order mark, which decides.
            return answer.body.decode("utf-16" if charset.startswith("utf-16") else charset), "text"
    except (ValueError, LookupError):  # a name with a NUL in it is a ValueError
        pass
    return base64.b64encode(answer.body).decode(), "base64"


async def plain(answer: Answer, json: bool) -> Answer:
    """Remove secrets from the bytes of the body, if this call uses one: a server may declare a charset with other
    letters. `json`: the body becomes a value; JSON has one charset, and is cleaned when it is recorded."""
    if not is_bound() or not answer.body or (json and decoded(answer)[1] == "json"):
        return answer
    text = answer.body.decode("latin-1")
    clean = await asyncio.to_thread(without_secrets, text) if len(text) > _ASIDE_BYTES else without_secrets(text)
    return answer if clean == text else replace(answer, body=clean.encode("latin-1", "replace"))


def status_error(method: str, answer: Answer, now_ms: int) -> BlockError:
    """Return `http_status`, with the beginning of the body. 408, 425, 429 and 500 and more are tried again, not before
    `Retry-After`. `now_ms`: when the answer came."""
    retryable = answer.status >= 500 or answer.status in _RETRYABLE
    retry_after = answer.headers.get("retry-after")
    body, encoding = decoded(answer)
    shown = "" if encoding in ("none", "base64") else f": {_begin(_said(body))}"
    import httpx  # loaded already, by the client

    where = httpx.URL(answer.url).copy_with(query=None)
    retry_at_ms = _retry_at_ms(retry_after, now_ms) if retryable else None
    return BlockError(
        f"{method} {where} answered {answer.status} {answer.reason}".rstrip() + shown,
        code="http_status",
        retryable=retryable,
        retry_at_ms=retry_at_ms,
        deferred="asked" if answer.status == 429 and retry_at_ms is not None else None,
        answer_status=answer.status,
        # 408, 425, 429 and "come later" are about a request that was not looked at.
        uncertain=answer.status >= 500 and not (answer.status == 503 and retry_after is not None),
    )


def _begin(body: Any) -> str:
    """Return the beginning of a body on one line. Secrets go first: one that is written over several lines could not be
    found on one."""
    text = render(body)[:_ASIDE_BYTES]
    return " ".join((without_secrets(text) if is_bound() else text).split())[:_BODY_SHOWN]


def _said(body: Any) -> Any:
    """Return the message in a JSON body, such as the `detail` of a problem, else the body."""
    error = body.get("error") if isinstance(body, dict) else None
    for part in (error, body):
        if isinstance(part, dict):
            for name in ("detail", "message", "error_description", "title", "error"):
                if isinstance(part.get(name), str) and part[name].strip():
                    return part[name]
    return body


def _retry_at_ms(value: str | None, now_ms: int) -> int | None:
    """Retry-After is a number of seconds or an HTTP date."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdecimal():
        wait_ms = int(value[:9]) * 1000
    else:
        try:
            date = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        wait_ms = round((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1000) - now_ms
    return now_ms + min(max(wait_ms, 0), _RETRY_AFTER_MAX_MS)


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
        """Send a GET request. The options are those of `request`."""
        return await self.request("GET", url, **options)

    async def post(self, url: str, json: Any = None, **options: Any) -> Response:
        """`request` with POST and its options."""
        return await self.request("POST", url, json=json, **options)
