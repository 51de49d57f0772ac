"""Turns an HTTP answer into a block's value, or into the error that its status means."""

from __future__ import annotations

import asyncio
import base64
import codecs
from dataclasses import replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import orjson

from executor.blocks.http.binding import is_bound, without_secrets
from executor.blocks.http.parameters import header_of
from executor.errors import BlockError
from executor.kernel.values.payload import render

if TYPE_CHECKING:
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
    shown = "" if encoding in ("none", "base64") else f": {' '.join(render(body).split())[:_BODY_SHOWN]}"
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
